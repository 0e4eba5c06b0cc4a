#include "store/garbage.h"

#include <algorithm>

namespace odt::store {

Result<std::vector<TrashItem>> trash_before(ControlStore& store, std::int64_t before_us) {
  std::vector<TrashItem> items;
  ListQuery query{1000, {}};
  do {
    ODT_ASSIGN(auto page, store.trash(query));
    for (TrashItem& item : page.items)
      if (item.trashed_time_us <= before_us) items.push_back(std::move(item));
    query.page_token = page.next_token;
  } while (!query.page_token.empty());
  return items;
}

Result<std::uint64_t> erase_telemetry_of(const TrashItem& item, TelemetryStore& telemetry,
                                         bool dry_run) {
  if (item.kind != "run") return 0;
  ODT_ASSIGN(const Uuid run, Uuid::from_bytes(item.key));
  if (!dry_run) return telemetry.erase(run);
  ODT_ASSIGN(const TelemetryStore::Use use, telemetry.use(run));
  return use.raw_frames + use.thinned_frames;
}

Result<std::vector<TrashItem>> purge_rows(ControlStore& store, const std::vector<TrashItem>& items,
                                          Batch batch) {
  std::vector<TrashItem> purged;
  for (const TrashItem& item : items) {
    const auto now = store.trash_item(item.kind, item.key);
    if (absl::IsNotFound(now.status())) continue;  // somebody was faster
    ODT_TRY(now.status());
    if (now->trashed_time_us != item.trashed_time_us) continue;
    batch.changes.push_back(Purge{item.kind, item.key});
    purged.push_back(item);
  }
  if (!purged.empty()) ODT_TRY(store.commit(std::move(batch)).status());
  return purged;
}

std::map<Hash, std::int64_t> candidates_of(const std::vector<TrashItem>& items) {
  std::map<Hash, std::int64_t> out;
  for (const TrashItem& item : items)
    for (const Hash& hash : item.blobs) out[hash] = std::max(out[hash], item.trashed_time_us);
  return out;
}

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
