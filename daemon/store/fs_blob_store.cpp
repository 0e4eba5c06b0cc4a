#include "store/fs_blob_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/failpoint.h"
#include "store/durable_file.h"
#include "store/keys.h"

namespace odt::store {

namespace fs = std::filesystem;

Result<std::unique_ptr<FsBlobStore>> FsBlobStore::open(const std::string& folder) {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return absl::FailedPreconditionError(folder + ": " + ec.message());
  for (fs::recursive_directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    std::error_code ignored;
    if (it->path().filename().string().find(".tmp-") != std::string::npos)
      fs::remove(it->path(), ignored);
  }
  if (ec) return absl::FailedPreconditionError(folder + ": " + ec.message());
  return std::unique_ptr<FsBlobStore>(new FsBlobStore(folder));
}

std::string FsBlobStore::file_of(const Hash& hash) const {
  const std::string hex = hash.hex();
  return folder_ + "/" + hex.substr(0, 2) + "/" + hex;
}

Status FsBlobStore::make_folder_of(const Hash& hash) const {
  std::error_code ec;
  fs::create_directories(fs::path(file_of(hash)).parent_path(), ec);
  if (ec) return absl::FailedPreconditionError(folder_ + ": " + ec.message());
  return {};
}

Result<Hash> FsBlobStore::put(std::string_view content) {
  const Hash hash = sha256(content);
  if (has(hash)) return hash;
  ODT_TRY(make_folder_of(hash));
  ODT_TRY(write_durably(file_of(hash), content));
  fail_here("blob.named");
  has(hash);
  return hash;
}

Status FsBlobStore::adopt(const std::string& path, const Hash& hash) {
  ODT_ASSIGN(const Hash got, sha256_file(path));
  if (got != hash)
    return absl::InvalidArgumentError(path + ": SHA-256 is " + got.hex() + ", expected " +
                                      hash.hex());
  ODT_TRY(make_folder_of(hash));
  ODT_TRY(move_durably(path, file_of(hash)));
  has(hash);
  return {};
}

Result<std::string> FsBlobStore::get(const Hash& hash) {
  if (!there(hash)) return absl::NotFoundError("no blob " + hash.hex());
  ODT_ASSIGN(std::string content, read_file(file_of(hash)));
  if (sha256(content) != hash)
    return absl::DataLossError(file_of(hash) + ": content no longer has its hash; upload it again");
  return content;
}

Result<std::string> FsBlobStore::path(const Hash& hash) {
  if (!there(hash)) return absl::NotFoundError("no blob " + hash.hex());
  return file_of(hash);
}

bool FsBlobStore::there(const Hash& hash) const {
  std::error_code ec;
  return fs::is_regular_file(file_of(hash), ec);
}

bool FsBlobStore::has(const Hash& hash) {
  const std::lock_guard lock(mutex_);
  const bool found = there(hash);
  if (found) used_us_[hash] = SystemClock().now_us();
  return found;
}

Result<std::vector<BlobStore::Entry>> FsBlobStore::list() {
  std::vector<Entry> out;
  std::error_code ec;
  for (fs::recursive_directory_iterator it(folder_, ec), end; !ec && it != end; it.increment(ec)) {
    const auto hash = hash_from_hex(it->path().filename().string());
    std::error_code gone;  // a file may go while the folder is read
    if (!hash.ok() || !it->is_regular_file(gone)) continue;
    struct stat info {};
    if (::stat(it->path().c_str(), &info) != 0) continue;
    Entry entry{
        *hash, static_cast<std::uint64_t>(info.st_size),
        static_cast<std::int64_t>(info.st_mtim.tv_sec) * 1'000'000 + info.st_mtim.tv_nsec / 1000};
    const std::lock_guard lock(mutex_);
    if (const auto used = used_us_.find(*hash); used != used_us_.end())
      entry.written_us = std::max(entry.written_us, used->second);
    out.push_back(entry);
  }
  if (ec) return absl::FailedPreconditionError(folder_ + ": " + ec.message());
  return out;
}

Result<bool> FsBlobStore::remove_unused(const Hash& hash, std::int64_t since_us) {
  const std::lock_guard lock(mutex_);
  const auto used = used_us_.find(hash);
  if (used != used_us_.end() && used->second > since_us) return false;
  std::error_code ec;
  const bool removed = fs::remove(file_of(hash), ec);
  if (ec) return absl::FailedPreconditionError(file_of(hash) + ": " + ec.message());
  used_us_.erase(hash);
  return removed;
}

}  // namespace odt::store
