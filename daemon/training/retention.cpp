#include "training/retention.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <map>
#include <set>

namespace odt::training {
namespace {

constexpr const char* kOwnAlias = "final/";

std::vector<std::string> own_reasons(const model::Snapshot& snapshot) {
  std::vector<std::string> out;
  if (snapshot.pinned) out.push_back("pinned");
  for (const auto& alias : snapshot.aliases)
    if (!alias.starts_with(kOwnAlias)) out.push_back("alias " + alias);
  return out;
}

// Snapshots that runs and campaigns under way need, and for what.
using Users = std::multimap<Hash, std::string>;
Result<Users> users_of(store::ControlStore& store) {
  Users out;
  ODT_ASSIGN(const auto runs, store.active_runs());
  for (const auto& run : runs) {
    const std::string name = "run " + run.id.hex().substr(0, 16);
    out.emplace(run.spec.start_snapshot, name);
    if (run.final_weights_hash != run.spec.start_snapshot)
      out.emplace(run.final_weights_hash, name);
  }
  ODT_ASSIGN(const auto campaigns, store.active_campaigns());
  for (const auto& c : campaigns) {
    std::set<Hash> needed{c.spec.start_snapshot, c.spec.rollout.snapshot, c.result};
    ODT_ASSIGN(const auto units, store.campaign_units(c.id));
    for (const auto& u : units) needed.insert({u.start_snapshot, u.weights, u.previous});
    for (const Hash& hash : needed) out.emplace(hash, "campaign " + c.id.hex().substr(0, 16));
  }
  return out;
}
void add_users(const Users& users, const Hash& hash, std::vector<std::string>& out) {
  const auto [first, last] = users.equal_range(hash);
  for (auto it = first; it != last; ++it) out.push_back(it->second);
}

store::Batch batch_for(const CallContext& ctx, const Hash& hash) {
  store::Batch batch;
  batch.actor = ctx.actor;
  batch.command_id = ctx.command_id;
  batch.changes.push_back(store::Trash{"snapshot", hash.str(), 0});
  return batch;
}

}  // namespace

Result<std::vector<std::string>> reasons_to_keep(store::ControlStore& store,
                                                 const model::Snapshot& snapshot) {
  std::vector<std::string> out = own_reasons(snapshot);
  ODT_ASSIGN(const Users users, users_of(store));
  add_users(users, snapshot.hash, out);
  return out;
}

Result<Pruned> prune_snapshots(store::ControlStore& store, const RetentionRules& rules,
                               const CallContext& ctx, std::int64_t now_us, bool dry_run) {
  Pruned out;
  ODT_ASSIGN(const Users users, users_of(store));
  std::map<std::pair<BoardUid, Hash>, std::uint32_t> newer;
  store::ListQuery query;
  query.page_size = 1000;
  do {
    ODT_ASSIGN(const auto page, store.snapshots(query));  // newest first
    query.page_token = page.next_token;
    for (const auto& snapshot : page.items) {
      const std::uint32_t rank = newer[{snapshot.board_uid, snapshot.model_hash}]++;
      const std::int64_t age_us = now_us - snapshot.meta.create_time_us;
      std::vector<std::string> why = own_reasons(snapshot);
      add_users(users, snapshot.hash, why);
      if (rank < rules.keep || age_us < std::int64_t{rules.older_than_s} * 1'000'000 ||
          !why.empty()) {
        ++out.kept;
        continue;
      }
      out.snapshots.push_back(snapshot);
      out.bytes += snapshot.bytes;
    }
  } while (!query.page_token.empty());
  for (const auto& snapshot : out.snapshots)
    if (!dry_run) ODT_TRY(store.commit(batch_for(ctx, snapshot.hash)));
  return out;
}

Status trash_snapshot(store::ControlStore& store, const CallContext& ctx, const Hash& hash) {
  ODT_ASSIGN(const model::Snapshot snapshot, store.snapshot(hash));
  ODT_ASSIGN(const Users users, users_of(store));
  std::vector<std::string> why;
  if (snapshot.pinned) why.push_back("pinned");
  add_users(users, hash, why);
  if (!why.empty())
    return with_reason(
        absl::FailedPreconditionError(absl::StrCat("snapshot ", hash.hex().substr(0, 12),
                                                   " is kept: ", absl::StrJoin(why, ", "))),
        "SNAPSHOT_IN_USE", "Unpin it, or wait for the end of what needs it.");
  return store.commit(batch_for(ctx, hash)).status();
}

}  // namespace odt::training
