#include "data/file_set.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/fd.h"
#include "data/npy_array.h"

namespace odt::data {

Status FileSet::add(std::string path, std::uint64_t bytes) {
  if (entries_.size() >= kMaxImportFiles)
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": more than ", kMaxImportFiles, " files"));
  entries_.push_back({std::move(path), bytes});
  return absl::OkStatus();
}

void FileSet::sort() {
  std::sort(entries_.begin(), entries_.end(),
            [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; });
}

std::string FileSet::shown(std::size_t i) const {
  const std::string path = printable(entries_[i].path, 200);
  return path == name_ ? path : absl::StrCat(name_, "/", path);
}

namespace {

// Bytes of a well-formed UTF-8 sequence at the start of text; 0: none.
std::size_t utf8_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char c = at(0);
  if (c < 0x80) return 1;
  const std::size_t n = c >= 0xC2 && c < 0xE0   ? 2
                        : (c & 0xF0) == 0xE0    ? 3
                        : c >= 0xF0 && c < 0xF5 ? 4
                                                : 0;
  if (n == 0 || text.size() < n) return 0;
  std::uint32_t code = c & (0x7Fu >> n);
  for (std::size_t i = 1; i < n; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (at(i) & 0x3Fu);
  }
  const bool short_form = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
  return short_form || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? 0 : n;
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const std::size_t n = utf8_bytes(text);
    const auto c = static_cast<unsigned char>(text[0]);
    // C0, DEL, and C1 (which terminals act on too).
    const bool control = n == 0 || c < 0x20 || c == 0x7F ||
                         (n == 2 && c == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0);
    const std::string_view piece = control ? std::string_view("_") : text.substr(0, n);
    if (out.size() + piece.size() > max_bytes) break;
    out += piece;
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return out;
}

std::string extension_of(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  const auto dot = file.rfind('.');
  return dot == std::string_view::npos ? std::string()
                                       : absl::AsciiStrToLower(std::string(file.substr(dot)));
}

namespace {

Status sys_error(const std::string& shown, const char* what) {
  const int e = errno;
  const std::string text = absl::StrCat(shown, ": cannot ", what, ": ", std::strerror(e));
  return e == ENOENT ? absl::NotFoundError(text) : absl::InvalidArgumentError(text);
}

Result<std::string> read_open_file(int fd, const std::string& shown) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return sys_error(shown, "stat");
  if (!S_ISREG(st.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(shown, ": not a regular file"));
  if (static_cast<std::uint64_t>(st.st_size) > kMaxImportFileBytes)
    return absl::InvalidArgumentError(absl::StrCat(shown, ": ", st.st_size, " bytes; at most ",
                                                   kMaxImportFileBytes, " are accepted"));
  std::string out(static_cast<std::size_t>(st.st_size), '\0');
  std::size_t at = 0;
  while (at < out.size()) {
    const ssize_t n = ::read(fd, out.data() + at, out.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error(shown, "read");
    if (n == 0) break;
    at += static_cast<std::size_t>(n);
  }
  out.resize(at);
  return out;
}

// Every part of a path is opened without following links, so that nothing
// outside of the folder can be read, whatever is swapped meanwhile.
class FolderSet : public FileSet {
 public:
  FolderSet(Fd root, std::string name) : FileSet(std::move(name)), root_(std::move(root)) {}

  Status scan() {
    Fd top(::openat(root_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ODT_TRY(scan_folder(std::move(top), "", 0));
    sort();
    return absl::OkStatus();
  }

  Result<std::string> read(std::size_t i) const override {
    const std::string& path = entries_[i].path;
    int folder = root_.get();
    Fd held;
    std::size_t from = 0;
    for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', from)) {
      Fd next(::openat(folder, path.substr(from, slash - from).c_str(),
                       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (next.get() < 0) return sys_error(shown(i), "open");
      held = std::move(next);
      folder = held.get();
      from = slash + 1;
    }
    const Fd file(
        ::openat(folder, path.c_str() + from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.get() < 0) return sys_error(shown(i), "open");
    return read_open_file(file.get(), shown(i));
  }

 private:
  Status scan_folder(Fd folder, const std::string& prefix, int depth) {
    const std::string where =
        prefix.empty() ? name() : absl::StrCat(name(), "/", printable(prefix, 200));
    if (folder.get() < 0) return sys_error(where, "open");
    if (depth > kMaxImportDepth)
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": more than ", kMaxImportDepth, " folders deep"));
    const int fd = folder.release();
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(fd), ::closedir);
    if (!dir) {
      const Fd unused(fd);
      return sys_error(where, "read the folder");
    }
    while (const dirent* entry = ::readdir(dir.get())) {
      const std::string file = entry->d_name;
      if (file[0] == '.') continue;
      struct stat st {};
      if (::fstatat(::dirfd(dir.get()), file.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISREG(st.st_mode)) {
        ODT_TRY(add(prefix + file, static_cast<std::uint64_t>(st.st_size)));
      } else if (S_ISDIR(st.st_mode)) {
        Fd below(::openat(::dirfd(dir.get()), file.c_str(),
                          O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        ODT_TRY(scan_folder(std::move(below), prefix + file + "/", depth + 1));
      }
    }
    return absl::OkStatus();
  }

  Fd root_;
};

class SingleFile : public FileSet {
 public:
  SingleFile(std::string path, std::string name) : FileSet(name), path_(std::move(path)) {}
  Status open(std::uint64_t bytes) { return add(name().substr(name().rfind('/') + 1), bytes); }
  Result<std::string> read(std::size_t) const override {
    const Fd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) return sys_error(name(), "open");
    return read_open_file(fd.get(), name());
  }

 private:
  std::string path_;
};

// Nothing is unpacked to a path, but names are shown and taken apart.
class ZipSet : public FileSet {
 public:
  ZipSet(FileRange file, std::string name) : FileSet(std::move(name)), file_(std::move(file)) {}

  Status open() {
    std::vector<ZipMember> all;
    ODT_ASSIGN(all, zip_members(file_, name()));
    for (auto& member : all) {
      const std::string framed = absl::StrCat("/", member.name, "/");
      if (member.name.empty() || member.name.find('\0') != std::string::npos ||
          member.name[0] == '/' || member.name.find('\\') != std::string::npos ||
          framed.find("/../") != std::string::npos)
        return absl::InvalidArgumentError(
            absl::StrCat(name(), ": member '", printable(member.name, 80), "' has an unsafe name"));
      const bool folder = member.name.back() == '/';
      const bool hidden = framed.find("/.") != std::string::npos;
      if (folder || hidden || member.name.substr(0, 9) == "__MACOSX/") continue;
      if (std::count(member.name.begin(), member.name.end(), '/') > kMaxImportDepth)
        return absl::InvalidArgumentError(
            absl::StrCat(name(), ": more than ", kMaxImportDepth, " folders deep"));
      members_.push_back(std::move(member));
    }
    std::sort(members_.begin(), members_.end(),
              [](const ZipMember& a, const ZipMember& b) { return a.name < b.name; });
    for (const auto& member : members_) {
      ODT_TRY(add(member.name, member.size));
    }
    return absl::OkStatus();
  }

  Result<std::string> read(std::size_t i) const override {
    FileRange range;
    ODT_ASSIGN(range, zip_open(file_, members_[i], kMaxImportFileBytes, shown(i)));
    std::string out(static_cast<std::size_t>(range.size()), '\0');
    ODT_TRY(range.read(0, out.data(), out.size()));
    return out;
  }

 private:
  FileRange file_;
  std::vector<ZipMember> members_;  // in the order of entries()
};

}  // namespace

Result<std::unique_ptr<FileSet>> open_files(const std::string& path, const std::string& name) {
  const std::string shown =
      printable(name.empty() ? path.substr(path.find_last_not_of('/') == std::string::npos
                                               ? 0
                                               : path.rfind('/', path.find_last_not_of('/')) + 1)
                             : name,
                200);
  Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) return sys_error(shown, "open");
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return sys_error(shown, "stat");
  if (S_ISDIR(st.st_mode)) {
    auto folder = std::make_unique<FolderSet>(std::move(fd), shown);
    ODT_TRY(folder->scan());
    return std::unique_ptr<FileSet>(std::move(folder));
  }
  if (!S_ISREG(st.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(shown, ": neither a file nor a folder"));
  char magic[4] = {};
  if (::pread(fd.get(), magic, 4, 0) == 4 && std::memcmp(magic, "PK\3\4", 4) == 0) {
    FileRange file;
    ODT_ASSIGN(file, FileRange::open(path, shown));
    auto zip = std::make_unique<ZipSet>(std::move(file), shown);
    ODT_TRY(zip->open());
    return std::unique_ptr<FileSet>(std::move(zip));
  }
  auto single = std::make_unique<SingleFile>(path, shown);
  ODT_TRY(single->open(static_cast<std::uint64_t>(st.st_size)));
  return std::unique_ptr<FileSet>(std::move(single));
}

}  // namespace odt::data
