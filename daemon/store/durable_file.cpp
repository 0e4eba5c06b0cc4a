#include "store/durable_file.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/failpoint.h"

namespace odt::store {
namespace {

Status io_error(const std::string& path, const char* what) {
  const int code = errno;
  const std::string text = absl::StrCat(path, ": ", what, ": ", std::strerror(code));
  if (code == ENOSPC || code == EDQUOT)
    return with_reason(absl::ResourceExhaustedError(text + "; free disk space"), "DISK_FULL",
                       "free space in the data directory");
  return absl::FailedPreconditionError(text);
}

Status sync_path(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) return io_error(path, "open");
  const int rc = ::fsync(fd);
  const Status status = rc == 0 ? Status() : io_error(path, "fsync");
  ::close(fd);
  return status;
}

Status sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return sync_path(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
}

Status write_and_sync(int fd, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path, "write");
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return ::fsync(fd) == 0 ? Status() : io_error(path, "fsync");
}

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return absl::StrCat(path, ".tmp-", ::getpid(), "-", counter++);
}

}  // namespace

Status write_durably(const std::string& path, std::string_view content) {
  const std::string temporary = temporary_name(path);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
  if (fd < 0) return io_error(temporary, "open");
  Status status = write_and_sync(fd, temporary, content);
  ::close(fd);
  fail_here("file.write");
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = io_error(path, "rename");
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return sync_folder_of(path);
}

Status move_durably(const std::string& from, const std::string& to) {
  ODT_TRY(sync_path(from, O_RDONLY));
  if (::rename(from.c_str(), to.c_str()) == 0) return sync_folder_of(to);
  if (errno != EXDEV) return io_error(to, "rename");
  const std::string temporary = temporary_name(to);
  std::error_code ec;
  std::filesystem::copy_file(from, temporary, ec);
  Status status;
  if (ec) status = absl::FailedPreconditionError(temporary + ": " + ec.message());
  if (status.ok()) status = sync_path(temporary, O_RDONLY);
  if (status.ok() && ::rename(temporary.c_str(), to.c_str()) != 0) status = io_error(to, "rename");
  ::unlink(status.ok() ? from.c_str() : temporary.c_str());
  ODT_TRY(status);
  return sync_folder_of(to);
}

Status sync_tree(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ec;
  for (fs::recursive_directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
    ODT_TRY(sync_path(it->path().string(), O_RDONLY));
  if (ec) return absl::FailedPreconditionError(folder + ": " + ec.message());
  return sync_path(folder, O_RDONLY);
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(path + ": cannot be read");
  std::string content(std::istreambuf_iterator<char>(in), {});
  if (in.bad()) return absl::DataLossError(path + ": read error");
  return content;
}

}  // namespace odt::store
