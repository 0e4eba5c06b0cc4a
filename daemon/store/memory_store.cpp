#include "store/memory_store.h"

#include <fstream>
#include <iterator>

#include "store/identity.h"
#include "store/memory_rows.h"

namespace odt::store {

MemoryControlStore::MemoryControlStore(const Clock& clock)
    : ControlEngine(std::make_unique<MemoryRows>(), clock, new_identity()) {}

Result<Hash> MemoryBlobStore::put(std::string_view content) {
  const Hash hash = sha256(content);
  std::lock_guard lock(mutex_);
  blobs_[hash] = {std::string(content), SystemClock().now_us()};
  return hash;
}

Status MemoryBlobStore::adopt(const std::string& path, const Hash& hash) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(path + ": cannot be read");
  std::string content(std::istreambuf_iterator<char>(in), {});
  const Hash got = sha256(content);
  if (got != hash)
    return absl::InvalidArgumentError(path + ": SHA-256 is " + got.hex() + ", expected " +
                                      hash.hex());
  return put(content).status();
}

Result<std::string> MemoryBlobStore::get(const Hash& hash) {
  std::lock_guard lock(mutex_);
  const auto it = blobs_.find(hash);
  if (it == blobs_.end()) return absl::NotFoundError("no blob " + hash.hex());
  return it->second.content;
}

Result<std::string> MemoryBlobStore::path(const Hash&) {
  return absl::UnimplementedError("blobs in memory have no path");
}

bool MemoryBlobStore::has(const Hash& hash) {
  std::lock_guard lock(mutex_);
  const auto it = blobs_.find(hash);
  if (it == blobs_.end()) return false;
  it->second.used_us = SystemClock().now_us();
  return true;
}

Result<std::vector<BlobStore::Entry>> MemoryBlobStore::list() {
  std::lock_guard lock(mutex_);
  std::vector<Entry> out;
  for (const auto& [hash, blob] : blobs_) out.push_back({hash, blob.content.size(), blob.used_us});
  return out;
}

Result<bool> MemoryBlobStore::remove_unused(const Hash& hash, std::int64_t since_us) {
  std::lock_guard lock(mutex_);
  const auto it = blobs_.find(hash);
  if (it == blobs_.end() || it->second.used_us > since_us) return false;
  blobs_.erase(it);
  return true;
}

}  // namespace odt::store
