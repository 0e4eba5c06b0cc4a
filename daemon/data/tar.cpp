#include "data/tar.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/fd.h"

namespace odt::data {
namespace {

constexpr std::size_t kBlock = 512, kMaxEntries = 100000, kMaxName = 4096;

struct Entry {
  std::string name;
  char type = '0';
  std::uint64_t size = 0;
};

class Unpacker {
 public:
  Unpacker(const std::string& path, std::string folder, std::uint64_t max_bytes, std::string name)
      : in_(path, std::ios::binary),
        folder_(std::move(folder)),
        max_bytes_(max_bytes),
        name_(std::move(name)) {}

  Status run() {
    std::string long_name;
    for (std::size_t n = 0;; ++n) {
      if (n == kMaxEntries) return fault(absl::StrCat("more than ", kMaxEntries, " entries"));
      Entry e;
      bool more;
      ODT_ASSIGN(more, header(e));
      if (!more) return absl::OkStatus();
      if (e.type == 'L' || e.type == 'x' || e.type == 'g') {
        ODT_TRY(long_names(e, long_name));
        continue;
      }
      if (!long_name.empty()) e.name = std::exchange(long_name, "");
      ODT_TRY(extract(e));
    }
  }

 private:
  Status fault(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": tar archive: ", what));
  }

  bool block(char* to) { return static_cast<bool>(in_.read(to, kBlock)); }

  static bool octal(const char* at, std::size_t n, std::uint64_t& v) {
    v = 0;
    std::size_t i = 0;
    while (i < n && at[i] == ' ') ++i;
    const std::size_t start = i;
    for (; i < n && at[i] >= '0' && at[i] <= '7'; ++i)
      v = v * 8 + static_cast<std::uint64_t>(at[i] - '0');
    return i > start && (i == n || at[i] == ' ' || at[i] == '\0');
  }

  static std::string text(const char* at, std::size_t n) { return {at, ::strnlen(at, n)}; }

  Result<bool> header(Entry& e) {
    char h[kBlock];
    if (!block(h)) return fault("truncated (its end is missing)");
    if (std::all_of(h, h + kBlock, [](char c) { return c == 0; })) return false;
    std::uint64_t sum = 0, expected = 0;
    for (std::size_t i = 0; i < kBlock; ++i)
      sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(h[i]);
    if (!octal(h + 148, 8, expected) || sum != expected) return fault("a header is damaged");
    if (!octal(h + 124, 12, e.size)) return fault("a size is damaged");
    e.type = h[156];
    e.name = text(h, 100);
    const std::string prefix = text(h + 345, 155);
    if (std::memcmp(h + 257, "ustar", 6) == 0 && !prefix.empty())
      e.name = absl::StrCat(prefix, "/", e.name);
    return true;
  }

  // GNU: the name is the content. pax: records "<length> path=<name>\n".
  Status long_names(const Entry& e, std::string& long_name) {
    if (e.size > std::uint64_t{4} * kMaxName) return fault("a name is too long");
    std::string content((e.size + kBlock - 1) / kBlock * kBlock, '\0');
    if (!content.empty() && !in_.read(content.data(), static_cast<std::streamsize>(content.size())))
      return fault("truncated inside a name");
    content.resize(e.size);
    if (e.type == 'L') {
      long_name = text(content.data(), content.size());
      return absl::OkStatus();
    }
    for (const std::string& record : std::vector<std::string>(absl::StrSplit(content, '\n'))) {
      const auto at = record.find(" path=");
      if (at != std::string::npos && e.type == 'x') long_name = record.substr(at + 6);
    }
    return absl::OkStatus();
  }

  // Only names whose every part is an ordinary one: nothing can leave the folder.
  Result<std::string> safe_name(const std::string& name) const {
    std::string safe;
    if (name.size() > kMaxName || name.find('\0') != std::string::npos || name.starts_with('/'))
      return fault("an entry's name is absolute or too long");
    for (const std::string& part : std::vector<std::string>(absl::StrSplit(name, '/'))) {
      if (part.empty() || part == ".") continue;
      if (part == ".." || part.size() > 255)
        return fault("an entry's name has '..' or a part above 255 bytes");
      absl::StrAppend(&safe, "/", part);
    }
    return safe;
  }

  // Folders of `relative` (with a leading slash) up to its last part. They are ours: nothing but
  // folders and files is ever made here, so no link can stand in the way.
  Status make_folders(const std::string& relative) {
    for (std::size_t at = relative.find('/', 1); at != std::string::npos;
         at = relative.find('/', at + 1)) {
      const std::string path = folder_ + relative.substr(0, at);
      if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
        return absl::ResourceExhaustedError(
            absl::StrCat(name_, ": cannot make a folder: ", std::strerror(errno)));
    }
    return absl::OkStatus();
  }

  Status extract(const Entry& e) {
    std::string relative;
    ODT_ASSIGN(relative, safe_name(e.name));
    if (e.type == '5') return make_folders(relative + "/");
    if (e.type != '0' && e.type != '\0')
      return fault(absl::StrCat("'", relative.substr(0, 80),
                                "' is neither a file nor a folder (links are not taken)"));
    if (relative.empty()) return fault("a file without a name");
    if (e.size > max_bytes_ - std::min(max_bytes_, total_))
      return fault(absl::StrCat("more than ", max_bytes_, " bytes"));
    total_ += e.size;
    ODT_TRY(make_folders(relative));
    const std::string path = folder_ + relative;
    const Fd out(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (out.get() < 0)
      return errno == EEXIST ? fault("a name comes twice")
                             : absl::ResourceExhaustedError(
                                   absl::StrCat(name_, ": cannot unpack: ", std::strerror(errno)));
    return copy(e.size, out.get());
  }

  Status copy(std::uint64_t size, int out) {
    std::string chunk(std::size_t{128} * kBlock, '\0');
    while (size > 0) {
      const std::uint64_t n = std::min<std::uint64_t>(size, chunk.size());
      const std::uint64_t padded = (n + kBlock - 1) / kBlock * kBlock;
      if (!in_.read(chunk.data(), static_cast<std::streamsize>(padded)))
        return fault("truncated inside a file");
      for (std::uint64_t at = 0; at < n;) {
        const ssize_t done = ::write(out, chunk.data() + at, n - at);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0)
          return absl::ResourceExhaustedError(
              absl::StrCat(name_, ": cannot unpack: ", std::strerror(errno)));
        at += static_cast<std::uint64_t>(done);
      }
      size -= n;
    }
    return absl::OkStatus();
  }

  std::ifstream in_;
  std::string folder_;
  std::uint64_t max_bytes_, total_ = 0;
  std::string name_;
};

}  // namespace

Status unpack_tar(const std::string& path, const std::string& folder, std::uint64_t max_bytes,
                  const std::string& name) {
  return Unpacker(path, folder, max_bytes, name).run();
}

bool looks_like_tar(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char head[kBlock] = {};
  return in.read(head, kBlock) && std::memcmp(head + 257, "ustar", 5) == 0;
}

}  // namespace odt::data
