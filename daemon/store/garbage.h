#pragma once

#include <map>
#include <set>

#include "store/store.h"

// Blobs are freed by reference: what no row of control.db names goes.
namespace odt::store {

struct Freed {
  std::uint64_t bytes = 0, blobs = 0;
};

// A blob that nothing names and nobody has asked for goes after this: somebody may have written it
// to refer to it in a moment.
inline constexpr std::int64_t kOrphanAgeUs = 24LL * 3600 * 1'000'000;

// Any thread. named: ControlStore::named_hashes(), read after the last reference went. candidates:
// blobs of things just purged, with the time that those were thrown away at; they go at once where
// nobody has asked for them since. dry_run: tells only.
Result<Freed> collect_garbage(BlobStore& blobs, const std::set<Hash>& named,
                              const std::map<Hash, std::int64_t>& candidates, std::int64_t now_us,
                              bool dry_run = false);

}  // namespace odt::store
