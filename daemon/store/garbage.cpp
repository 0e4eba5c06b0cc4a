#include "store/garbage.h"

namespace odt::store {

Result<Freed> collect_garbage(BlobStore& blobs, const std::set<Hash>& named,
                              const std::map<Hash, std::int64_t>& candidates, std::int64_t now_us,
                              bool dry_run) {
  Freed freed;
  ODT_ASSIGN(const std::vector<BlobStore::Entry> entries, blobs.list());
  for (const BlobStore::Entry& entry : entries) {
    if (named.contains(entry.hash)) continue;
    const auto candidate = candidates.find(entry.hash);
    const std::int64_t since =
        candidate != candidates.end() ? candidate->second : now_us - kOrphanAgeUs;
    if (entry.written_us > since) continue;
    if (!dry_run) {
      ODT_ASSIGN(const bool removed, blobs.remove_unused(entry.hash, since));
      if (!removed) continue;
    }
    freed.bytes += entry.bytes;
    freed.blobs += 1;
  }
  return freed;
}

}  // namespace odt::store
