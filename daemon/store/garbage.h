#pragma once

#include <map>
#include <set>
#include <vector>

#include "store/store.h"

// Blobs are freed by reference: what no row of control.db names goes.
namespace odt::store {

struct Freed {
  std::uint64_t bytes = 0, blobs = 0;
};

// A blob that nothing names and nobody has asked for goes after this: somebody may have written it
// to refer to it in a moment.
inline constexpr std::int64_t kOrphanAgeUs = 24LL * 3600 * 1'000'000;

// A purge in the order in which nothing is lost sight of, wherever it ends: trash_before,
// erase_telemetry_of each item, purge_rows, collect_garbage.

// What was thrown away at that time or before. Errors: those of ControlStore::trash.
Result<std::vector<TrashItem>> trash_before(ControlStore& store, std::int64_t before_us);
// How many records went; 0 where the item is no run. dry_run: would go. Errors: those of
// TelemetryStore::erase and use; the item has to stay in the trash then.
Result<std::uint64_t> erase_telemetry_of(const TrashItem& item, TelemetryStore& telemetry,
                                         bool dry_run = false);
// Commits `batch` with a Purge of each item that is in the trash as it was. Returns those. Errors:
// those of ControlStore::commit and trash_item.
Result<std::vector<TrashItem>> purge_rows(ControlStore& store, const std::vector<TrashItem>& items,
                                          Batch batch);
// For collect_garbage.
std::map<Hash, std::int64_t> candidates_of(const std::vector<TrashItem>& items);

// Any thread. named: ControlStore::named_hashes(), read after the last reference went. candidates:
// blobs of things just purged, with the time that those were thrown away at; they go at once where
// nobody has asked for them since. dry_run: tells only.
Result<Freed> collect_garbage(BlobStore& blobs, const std::set<Hash>& named,
                              const std::map<Hash, std::int64_t>& candidates, std::int64_t now_us,
                              bool dry_run = false);

}  // namespace odt::store
