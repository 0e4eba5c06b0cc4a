#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "data/npy_array.h"

// PKWARE APPNOTE 6.3: what NumPy and usual archivers write.
namespace odt::data {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;
constexpr std::size_t kMaxMembers = 65534;  // above: zip64
constexpr std::uint32_t kEndMark = 0x06054b50, kEntryMark = 0x02014b50, kLocalMark = 0x04034b50;

template <typename T>
T get(std::string_view in, std::size_t at) {
  T v;
  std::memcpy(&v, in.data() + at, sizeof v);
  return v;
}

Status damaged(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": zip archive: ", what));
}

std::shared_ptr<int> owned(int fd) {
  return {new int(fd), [](int* p) {
            ::close(*p);
            delete p;
          }};
}

// Adds to the CRC and, where there is one, to the output.
struct Sink {
  FileRange* out = nullptr;
  std::uint64_t size = 0;
  uLong crc = crc32(0, nullptr, 0);
  Status put(const unsigned char* data, std::size_t n) {
    crc = crc32(crc, data, static_cast<uInt>(n));
    size += n;
    return out == nullptr ? absl::OkStatus() : out->append(data, n);
  }
};

Status copy_stored(const FileRange& packed, Sink& sink) {
  std::string chunk(kChunk, '\0');
  for (std::uint64_t at = 0; at < packed.size();) {
    const std::size_t n = std::min<std::uint64_t>(kChunk, packed.size() - at);
    ODT_TRY(packed.read(at, chunk.data(), n));
    ODT_TRY(sink.put(reinterpret_cast<const unsigned char*>(chunk.data()), n));
    at += n;
  }
  return absl::OkStatus();
}

Status inflate_into(const FileRange& packed, std::uint64_t size, const std::string& name,
                    Sink& sink) {
  z_stream z{};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
    return absl::ResourceExhaustedError("zlib cannot start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&z, inflateEnd);
  std::string in(kChunk, '\0'), out(kChunk, '\0');
  std::uint64_t at = 0;
  int rc = Z_OK;
  while (rc == Z_OK) {
    if (z.avail_in == 0) {
      const std::size_t n = std::min<std::uint64_t>(kChunk, packed.size() - at);
      ODT_TRY(packed.read(at, in.data(), n));  // at the end 0: output may still be pending
      at += n;
      z.next_in = reinterpret_cast<Bytef*>(in.data());
      z.avail_in = static_cast<uInt>(n);
    }
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    rc = inflate(&z, Z_NO_FLUSH);
    const std::size_t made = out.size() - z.avail_out;
    if (sink.size + made > size) return damaged(name, "a member is longer than its entry says");
    ODT_TRY(sink.put(reinterpret_cast<const unsigned char*>(out.data()), made));
    if (rc == Z_BUF_ERROR && made == 0)
      return damaged(name, z.avail_in > 0 ? "a member is damaged" : "a member is truncated");
    if (rc == Z_BUF_ERROR) rc = Z_OK;
  }
  return rc == Z_STREAM_END ? absl::OkStatus() : damaged(name, "a member is damaged");
}

}  // namespace

Result<FileRange> FileRange::open(const std::string& path, const std::string& name) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const std::string text = absl::StrCat(name, ": cannot open: ", std::strerror(errno));
    if (errno == ENOENT) return absl::NotFoundError(text);
    return absl::FailedPreconditionError(text);
  }
  FileRange range;
  range.fd_ = owned(fd);
  struct stat st {};
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(name, ": not a regular file"));
  range.size_ = static_cast<std::uint64_t>(st.st_size);
  return range;
}

Result<FileRange> FileRange::temporary() {
  const char* folder = std::getenv("TMPDIR");
  std::string path = absl::StrCat(folder != nullptr ? folder : "/tmp", "/odt-npz-XXXXXX");
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0)
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": cannot create: ", std::strerror(errno)));
  ::unlink(path.c_str());
  FileRange range;
  range.fd_ = owned(fd);
  return range;
}

Status FileRange::append(const void* data, std::size_t n) {
  const char* from = static_cast<const char*>(data);
  while (n > 0) {
    const ssize_t done = ::pwrite(*fd_, from, n, static_cast<off_t>(offset_ + size_));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0)
      return absl::ResourceExhaustedError(
          absl::StrCat("temporary file: cannot write: ", std::strerror(errno)));
    from += done;
    n -= static_cast<std::size_t>(done);
    size_ += static_cast<std::uint64_t>(done);
  }
  return absl::OkStatus();
}

FileRange FileRange::part(std::uint64_t offset, std::uint64_t size) const {
  FileRange range = *this;
  range.offset_ += offset;
  range.size_ = size;
  return range;
}

Status FileRange::read(std::uint64_t offset, void* to, std::size_t n) const {
  char* at = static_cast<char*>(to);
  if (offset > size_ || n > size_ - offset)
    return absl::InvalidArgumentError("the file is shorter than it says");
  while (n > 0) {
    const ssize_t done = ::pread(*fd_, at, n, static_cast<off_t>(offset_ + offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return absl::FailedPreconditionError("the file changed while it was read");
    at += done;
    offset += static_cast<std::uint64_t>(done);
    n -= static_cast<std::size_t>(done);
  }
  return absl::OkStatus();
}

Result<std::vector<ZipMember>> zip_members(const FileRange& file, const std::string& name) {
  // The end record is the last 22 bytes, before a comment of up to 64 KiB.
  const std::uint64_t tail = std::min<std::uint64_t>(file.size(), 22 + 65535);
  std::string end(tail, '\0');
  ODT_TRY(file.read(file.size() - tail, end.data(), tail));
  std::size_t at = tail < 22 ? std::string::npos : tail - 22;
  while (at != std::string::npos && get<std::uint32_t>(end, at) != kEndMark)
    at = at == 0 ? std::string::npos : at - 1;
  if (at == std::string::npos) return damaged(name, "its end record is missing (truncated?)");
  const std::uint64_t count = get<std::uint16_t>(end, at + 10);
  const std::uint64_t bytes = get<std::uint32_t>(end, at + 12);
  const std::uint64_t start = get<std::uint32_t>(end, at + 16);
  if (count > kMaxMembers || bytes > (std::size_t{1} << 24) || start + bytes > file.size())
    return damaged(name, absl::StrCat("its directory is damaged, above 4 GiB, or has more than ",
                                      kMaxMembers, " members"));
  std::string entries(bytes, '\0');
  ODT_TRY(file.read(start, entries.data(), bytes));
  std::vector<ZipMember> members;
  for (std::size_t e = 0; members.size() < count;) {
    if (e + 46 > bytes || get<std::uint32_t>(entries, e) != kEntryMark)
      return damaged(name, "its directory is damaged");
    const std::size_t name_size = get<std::uint16_t>(entries, e + 28);
    const std::size_t extra = get<std::uint16_t>(entries, e + 30);
    const std::size_t comment = get<std::uint16_t>(entries, e + 32);
    if (e + 46 + name_size > bytes) return damaged(name, "its directory is damaged");
    ZipMember m;
    m.name = entries.substr(e + 46, name_size);
    m.method = get<std::uint16_t>(entries, e + 10);
    if ((get<std::uint16_t>(entries, e + 8) & 1) != 0) return damaged(name, "it is encrypted");
    m.crc = get<std::uint32_t>(entries, e + 16);
    m.packed = get<std::uint32_t>(entries, e + 20);
    m.size = get<std::uint32_t>(entries, e + 24);
    m.header = get<std::uint32_t>(entries, e + 42);
    members.push_back(std::move(m));
    e += 46 + name_size + extra + comment;
  }
  return members;
}

Result<FileRange> zip_open(const FileRange& file, const ZipMember& m, std::uint64_t max_bytes,
                           const std::string& name) {
  if (m.size > max_bytes)
    return damaged(name, absl::StrCat("a member of ", m.size, " bytes; at most ", max_bytes));
  char local[30];
  if (m.header + 30 > file.size()) return damaged(name, "a member lies beyond its end");
  ODT_TRY(file.read(m.header, local, sizeof local));
  const std::string_view head(local, sizeof local);
  if (get<std::uint32_t>(head, 0) != kLocalMark) return damaged(name, "a member has no header");
  const std::uint64_t start =
      m.header + 30 + get<std::uint16_t>(head, 26) + get<std::uint16_t>(head, 28);
  if (start + m.packed > file.size()) return damaged(name, "a member lies beyond its end");
  const FileRange packed = file.part(start, m.packed);
  Sink sink;
  FileRange content;
  if (m.method == 0) {
    if (m.packed != m.size) return damaged(name, "a stored member has two sizes");
    content = packed;
    ODT_TRY(copy_stored(packed, sink));
  } else if (m.method == 8) {
    ODT_ASSIGN(content, FileRange::temporary());
    sink.out = &content;
    ODT_TRY(inflate_into(packed, m.size, name, sink));
  } else {
    return damaged(name, absl::StrCat("compression method ", m.method,
                                      "; expected 0 (stored) or 8 (deflate)"));
  }
  if (sink.size != m.size || sink.crc != m.crc) return damaged(name, "a member's CRC is wrong");
  return content;
}

}  // namespace odt::data
