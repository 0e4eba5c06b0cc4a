#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "store/store.h"

namespace odt::store {

// Blobs as files "<folder>/<first 2 hex digits>/<64 hex digits>". Thread-safe: a file is written
// under another name and renamed; two writers of one content write the same bytes.
class FsBlobStore final : public BlobStore {
 public:
  // Makes the folder, and removes what an interrupted write left behind.
  static Result<std::unique_ptr<FsBlobStore>> open(const std::string& folder);
  Result<Hash> put(std::string_view content) override;
  Status adopt(const std::string& path, const Hash& hash) override;
  // DATA_LOSS where the file's content no longer has its hash.
  Result<std::string> get(const Hash& hash) override;
  Result<std::string> path(const Hash& hash) override;
  bool has(const Hash& hash) override;
  Result<std::vector<Entry>> list() override;
  Result<bool> remove_unused(const Hash& hash, std::int64_t since_us) override;

 private:
  explicit FsBlobStore(std::string folder) : folder_(std::move(folder)) {}
  bool there(const Hash& hash) const;
  std::string file_of(const Hash& hash) const;
  Status make_folder_of(const Hash& hash) const;
  std::string folder_;
  std::mutex mutex_;
  // When this process last wrote a blob or was told that it is there: somebody may be about to
  // refer to it. Removal and these stamps exclude each other.
  std::map<Hash, std::int64_t> used_us_;
};

}  // namespace odt::store
