#include "store/backup.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "store/durable_file.h"
#include "store/keys.h"
#include "store/sqlite_db.h"

namespace odt::store {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 512;
constexpr const char* kDatabases[] = {"control.db", "telemetry.db"};
constexpr const char* kCopies = "backup.tmp-";

// ustar: name, mode, size in octal, checksum over the header with blanks in its place.
std::string tar_header(const std::string& name, std::uint64_t bytes) {
  std::string h(kBlock, '\0');
  const auto put = [&](std::size_t at, const std::string& text) {
    h.replace(at, text.size(), text);
  };
  put(0, name);
  put(100, "0000640");
  put(108, "0000000");
  put(116, "0000000");
  // Twelve digits without an end reach 64 GiB.
  put(124, bytes < std::uint64_t{1} << 33 ? absl::StrFormat("%011o", bytes)
                                          : absl::StrFormat("%012o", bytes));
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, std::string("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : h) sum += static_cast<unsigned char>(c);
  put(148, absl::StrFormat("%06o", sum) + std::string("\0 ", 2));
  return h;
}

Result<std::uint64_t> octal(std::string_view text) {
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c == '\0' || c == ' ') break;
    if (c < '0' || c > '7') return absl::DataLossError("not a backup: a size is not octal");
    value = value << 3 | static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

std::string padding(std::uint64_t bytes) {
  return std::string((kBlock - bytes % kBlock) % kBlock, '\0');
}

Status copy_database(const std::string& from, const std::string& to) {
  ODT_ASSIGN(const std::unique_ptr<SqliteDb> db, SqliteDb::open(from, "NORMAL"));
  return db->backup(to);
}

bool is_blob_name(const std::string& name, std::string& hash) {
  // blobs/ab/ab...
  if (!absl::StartsWith(name, "blobs/") || name.size() != 6 + 3 + 64) return false;
  hash = name.substr(9);
  return name.substr(6, 2) == hash.substr(0, 2) && name[8] == '/' && hash_from_hex(hash).ok();
}

Status write_part(std::ifstream& in, std::uint64_t bytes, const std::string& path,
                  const std::string& name) {
  std::error_code ec;
  fs::create_directories(fs::path(path).parent_path(), ec);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (ec || !out)
    return absl::FailedPreconditionError(path + ": cannot be written: " + std::strerror(errno));
  std::string buffer;
  for (std::uint64_t left = bytes; left > 0;) {
    buffer.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, 1 << 20)));
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    if (static_cast<std::size_t>(in.gcount()) != buffer.size())
      return absl::DataLossError("the backup ends within " + name + "; it is not whole");
    out.write(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    left -= buffer.size();
  }
  in.ignore(static_cast<std::streamsize>(padding(bytes).size()));
  out.close();
  if (!out) return absl::ResourceExhaustedError(path + ": " + std::strerror(errno));
  return {};
}

Status check_database(const std::string& path) {
  ODT_ASSIGN(const std::unique_ptr<SqliteDb> db, SqliteDb::open(path, "FULL"));
  ODT_ASSIGN(const std::int64_t broken,
             db->query_int("SELECT count(*) FROM pragma_integrity_check(1) "
                           "WHERE integrity_check<>'ok'"));
  return broken == 0 ? Status() : absl::DataLossError(path + ": integrity_check found damage");
}

// Everything of the tar file, checked, into `folder`.
Result<Restored> unpack(const std::string& file, const std::string& folder) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return absl::NotFoundError(file + ": " + std::strerror(errno));
  Restored out;
  std::string header(kBlock, '\0');
  bool ended = false;
  while (in.read(header.data(), kBlock)) {
    if (header.find_first_not_of('\0') == std::string::npos) {
      ended = true;
      break;
    }
    if (header.compare(257, 5, "ustar") != 0)
      return absl::DataLossError(file + ": not a backup of odtd (no tar header)");
    const std::string name = header.c_str();
    ODT_ASSIGN(const std::uint64_t bytes, octal(std::string_view(header).substr(124, 12)));
    std::string hash;
    const bool blob = is_blob_name(name, hash);
    if (!blob && name != kDatabases[0] && name != kDatabases[1])
      return absl::DataLossError(file + ": not a backup of odtd (it holds '" + name + "')");
    const std::string path = folder + "/" + name;
    ODT_TRY(write_part(in, bytes, path, name));
    out.bytes += bytes;
    if (!blob) continue;
    ODT_ASSIGN(const Hash got, sha256_file(path));
    if (got.hex() != hash)
      return absl::DataLossError(file + ": " + name + " is damaged (its hash is another)");
    ++out.blobs;
  }
  if (!ended) return absl::DataLossError(file + ": the end is missing; it is not whole");
  for (const char* name : kDatabases) {
    if (!fs::exists(folder + "/" + name)) return absl::DataLossError(file + ": no " + name);
    ODT_TRY(check_database(folder + "/" + name));
  }
  return out;
}

}  // namespace

BackupReader::~BackupReader() {
  std::error_code ec;
  fs::remove_all(copies_, ec);
}

Result<std::unique_ptr<BackupReader>> BackupReader::open(const std::string& data_dir) {
  std::error_code ec;
  const std::string copies = absl::StrCat(data_dir, "/", kCopies, new_uuid().hex());
  std::unique_ptr<BackupReader> reader(new BackupReader(copies));
  if (!fs::create_directory(copies, ec))
    return absl::FailedPreconditionError(copies + ": " + ec.message());
  for (const char* name : kDatabases) {
    ODT_TRY(copy_database(data_dir + "/" + name, copies + "/" + name));
    reader->files_.push_back({name, copies + "/" + name, 0});
  }
  ODT_TRY(reader->find_blobs(data_dir + "/blobs"));
  ODT_TRY(reader->measure());
  return reader;
}

Status BackupReader::find_blobs(const std::string& folder) {
  std::error_code ec;
  for (fs::recursive_directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = "blobs/" + it->path().lexically_relative(folder).string();
    std::string hash;
    if (is_blob_name(name, hash)) files_.push_back({name, it->path().string(), 0});
  }
  if (ec) return absl::FailedPreconditionError(folder + ": cannot be read: " + ec.message());
  return {};
}

Status BackupReader::measure() {
  Status status;
  std::erase_if(files_, [&](File& file) {
    std::error_code ec;
    file.bytes = fs::file_size(file.path, ec);
    if (!ec) return false;
    if (ec != std::errc::no_such_file_or_directory)  // else: freed meanwhile
      status.Update(absl::FailedPreconditionError(file.path + ": " + ec.message()));
    return true;
  });
  for (const File& file : files_) total_ += kBlock + file.bytes + padding(file.bytes).size();
  total_ += 2 * kBlock;
  return status;
}

Status BackupReader::next_file() {
  while (at_ < files_.size()) {
    const File& file = files_[at_++];
    in_.close();
    in_.clear();
    in_.open(file.path, std::ios::binary);
    const int code = errno;
    if (!in_ && code == ENOENT && absl::StartsWith(file.name, "blobs/")) continue;  // freed
    if (!in_) return absl::DataLossError(file.path + ": " + std::strerror(code));
    left_ = file.bytes;
    pending_ += tar_header(file.name, file.bytes);
    return {};
  }
  ended_ = true;
  pending_ += std::string(2 * kBlock, '\0');
  return {};
}

Result<std::string> BackupReader::read(std::size_t most) {
  std::string out;
  while (out.size() < most) {
    if (!pending_.empty()) {
      const std::size_t take = std::min(pending_.size(), most - out.size());
      out += pending_.substr(0, take);
      pending_.erase(0, take);
    } else if (left_ > 0) {
      const std::size_t at = out.size();
      const auto take = static_cast<std::size_t>(std::min<std::uint64_t>(left_, most - at));
      out.resize(at + take);
      in_.read(out.data() + at, static_cast<std::streamsize>(take));
      if (static_cast<std::size_t>(in_.gcount()) != take)
        return absl::DataLossError(files_[at_ - 1].path + ": shorter than it was");
      left_ -= take;
      if (left_ == 0) pending_ = padding(files_[at_ - 1].bytes);
    } else if (ended_) {
      break;
    } else {
      ODT_TRY(next_file());
    }
  }
  return out;
}

Status remove_stale_copies(const std::string& data_dir) {
  std::error_code ec, failed;
  std::string what = data_dir;
  for (fs::directory_iterator it(data_dir, ec), end; !ec && it != end; it.increment(ec)) {
    if (!absl::StartsWith(it->path().filename().string(), kCopies)) continue;
    std::error_code here;
    fs::remove_all(it->path(), here);
    if (!here) continue;
    failed = here;
    what = it->path().string();
  }
  if (!ec) ec = failed;
  if (ec) return absl::FailedPreconditionError(what + ": " + ec.message());
  return {};
}

Result<Restored> restore_backup(const std::string& file, const std::string& dir) {
  if (dir.empty()) return absl::InvalidArgumentError("--data: no directory is named");
  std::error_code ec;
  // Beside it, also where it is named "x/" or ".".
  fs::path target = fs::absolute(dir, ec).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  const std::string data_dir = target.string();
  if (fs::exists(data_dir, ec) && !fs::is_empty(data_dir, ec))
    return absl::AlreadyExistsError(data_dir +
                                    " is not empty; choose a new directory, or move it away");
  const std::string folder = data_dir + ".restore-tmp";
  fs::remove_all(folder, ec);
  fs::create_directories(folder + "/blobs", ec);
  if (ec) return absl::FailedPreconditionError(folder + ": " + ec.message());
  Result<Restored> done = unpack(file, folder);
  if (done.ok()) {
    Status moved = sync_tree(folder);
    if (moved.ok()) {
      fs::remove(data_dir, ec);  // an empty one
      moved = move_durably(folder, data_dir);
    }
    if (!moved.ok()) done = moved;
  }
  if (!done.ok()) fs::remove_all(folder, ec);
  return done;
}

}  // namespace odt::store
