#include "store/fs_blob_store.h"

#include <filesystem>

#include "store/durable_file.h"

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
  return hash;
}

Status FsBlobStore::adopt(const std::string& path, const Hash& hash) {
  ODT_ASSIGN(const Hash got, sha256_file(path));
  if (got != hash)
    return absl::InvalidArgumentError(path + ": SHA-256 is " + got.hex() + ", expected " +
                                      hash.hex());
  ODT_TRY(make_folder_of(hash));
  return move_durably(path, file_of(hash));
}

Result<std::string> FsBlobStore::get(const Hash& hash) {
  if (!has(hash)) return absl::NotFoundError("no blob " + hash.hex());
  ODT_ASSIGN(std::string content, read_file(file_of(hash)));
  if (sha256(content) != hash)
    return absl::DataLossError(file_of(hash) + ": content no longer has its hash; upload it again");
  return content;
}

Result<std::string> FsBlobStore::path(const Hash& hash) {
  if (!has(hash)) return absl::NotFoundError("no blob " + hash.hex());
  return file_of(hash);
}

bool FsBlobStore::has(const Hash& hash) {
  std::error_code ec;
  return fs::is_regular_file(file_of(hash), ec);
}

}  // namespace odt::store
