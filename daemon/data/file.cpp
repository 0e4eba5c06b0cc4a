#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "base/output_path.h"
#include "data/dataset.h"

namespace odt::data {
namespace {

Status sys_error(const std::string& path, const char* what) {
  const int e = errno;
  const std::string text = absl::StrCat(path, ": cannot ", what, ": ", std::strerror(e));
  if (e == ENOENT) return absl::NotFoundError(text);
  if (e == ENOSPC) return absl::ResourceExhaustedError(text);
  return absl::FailedPreconditionError(text);
}

Status write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error(path, "write");
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return absl::OkStatus();
}

Status write_parts(int fd, std::initializer_list<std::string_view> parts, const std::string& path) {
  for (auto part : parts) ODT_TRY(write_all(fd, part, path));
  return ::fsync(fd) == 0 ? absl::OkStatus() : sys_error(path, "fsync");
}

// No such process, or one that has ended and that nobody has waited for.
bool is_gone(pid_t pid) {
  if (::kill(pid, 0) != 0) return errno == ESRCH;
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(stat, line);
  const auto end = line.rfind(") ");  // of its name
  return end != std::string::npos && end + 2 < line.size() && line[end + 2] == 'Z';
}

// "<name>.tmp.<pid>" or "<name>.tmp.<pid>.<more>" of a process that is gone.
bool is_stale(const std::string& entry, const std::string& name) {
  const std::string prefix = name + ".tmp.";
  if (entry.compare(0, prefix.size(), prefix) != 0) return false;
  const char* const first = entry.data() + prefix.size();
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(first, entry.data() + entry.size(), pid);
  if (error != std::errc() || pid <= 0 || (*end != '\0' && *end != '.')) return false;
  return is_gone(pid);
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return sys_error(path, "open");
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return sys_error(path, "stat");
  if (!S_ISREG(st.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  if (static_cast<std::uint64_t>(st.st_size) > max_bytes)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", st.st_size, " bytes; at most ", max_bytes, " are accepted"));
  std::string out(static_cast<std::size_t>(st.st_size), '\0');
  std::size_t at = 0;
  while (at < out.size()) {
    const ssize_t n = ::read(fd.get(), out.data() + at, out.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error(path, "read");
    if (n == 0) break;
    at += static_cast<std::size_t>(n);
  }
  out.resize(at);
  return out;
}

Status write_file(const std::string& path, std::string_view content) {
  return write_file(path, {content});
}

void clear_stale(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path target(path);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const std::string name = target.filename().string();
  std::vector<fs::path> stale;
  std::error_code e;
  for (auto at = fs::directory_iterator(folder, e); !e && at != fs::directory_iterator();
       at.increment(e))
    if (is_stale(at->path().filename().string(), name)) stale.push_back(at->path());
  for (const auto& entry : stale) fs::remove_all(entry, e);  // a link itself, not what it names
}

Status write_file(const std::string& asked, std::initializer_list<std::string_view> parts) {
  ODT_ASSIGN(const std::string path, output_path(asked));
  clear_stale(path);
  const std::string temp = absl::StrCat(path, ".tmp.", ::getpid());
  {
    const Fd fd(::open(temp.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (fd.get() < 0) return sys_error(path, "create");
    if (auto st = write_parts(fd.get(), parts, path); !st.ok()) {
      ::unlink(temp.c_str());
      return st;
    }
  }
  if (::rename(temp.c_str(), path.c_str()) != 0) {
    const Status st = sys_error(path, "rename");
    ::unlink(temp.c_str());
    return st;
  }
  return absl::OkStatus();
}

}  // namespace odt::data
