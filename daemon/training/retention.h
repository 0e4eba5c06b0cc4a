#pragma once

#include "base/call.h"
#include "store/store.h"

// Which snapshots go by themselves, and which never.
namespace odt::training {

struct RetentionRules {
  std::uint32_t keep = 20;  // newest of each board and model
  std::uint32_t older_than_s = 30 * 86'400;
};
struct Pruned {
  std::vector<model::Snapshot> snapshots;  // as they were
  std::uint64_t bytes = 0;
  std::uint32_t kept = 0;
};

// Why a snapshot is kept whatever its age: pinned, an alias that a person gave ("final/..." is a
// run's own), a run or a campaign that is not over. Empty: nothing speaks for it. Errors: those of
// the store.
Result<std::vector<std::string>> reasons_to_keep(store::ControlStore& store,
                                                 const model::Snapshot& snapshot);

// Into the trash with all that the rules do not keep. dry_run: only tells. On the store's thread.
Result<Pruned> prune_snapshots(store::ControlStore& store, const RetentionRules& rules,
                               const CallContext& ctx, std::int64_t now_us, bool dry_run);

// One snapshot. FAILED_PRECONDITION (SNAPSHOT_IN_USE): why it is kept.
Status trash_snapshot(store::ControlStore& store, const CallContext& ctx, const Hash& hash);

}  // namespace odt::training
