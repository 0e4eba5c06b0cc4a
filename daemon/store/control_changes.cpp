// The write side of ControlEngine: one function a change.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "model/provenance.h"
#include "store/body_codec.h"
#include "store/control_engine_put.h"
#include "store/keys.h"

namespace odt::store {
namespace {

const char* state_name(model::RunState state) {
  static constexpr const char* kNames[] = {
      "UNSPECIFIED",   "QUEUED",     "PREPARING", "RUNNING", "PAUSED",
      "WAITING_BOARD", "EVALUATING", "SUCCEEDED", "FAILED",  "CANCELLED"};
  const auto index = static_cast<std::size_t>(state);
  return index < std::size(kNames) ? kNames[index] : "?";
}

// What a board may send again: everything but times, which differ when it repeats an epoch.
bool same_result(const model::EpochResult& a, const model::EpochResult& b) {
  return a.step == b.step && a.loss == b.loss && a.train == b.train && a.heldout == b.heldout &&
         a.heldout_loss == b.heldout_loss && a.best_step == b.best_step && a.alarms == b.alarms &&
         a.state_hash == b.state_hash && a.layers == b.layers;
}

template <typename Id>
Status require_key(const Id& id, const char* what) {
  bool empty;
  if constexpr (requires { id.is_zero(); })
    empty = id.is_zero();
  else
    empty = id.empty();
  return empty ? absl::InvalidArgumentError(absl::StrCat(what, " has no key")) : Status();
}

}  // namespace

Status ControlEngine::append(Transaction& tx, Kind kind, const std::string& key,
                             model::EventBody body, bool deleted) {
  const std::int64_t seq = tx.next_seq++;
  ODT_TRY(rows_->append_event(
      {seq, tx.time_us, tx.batch.actor, tx.batch.command_id, kind, key, deleted}));
  tx.events.push_back({seq, tx.time_us, tx.batch.actor, tx.batch.command_id, std::move(body)});
  return {};
}

Status ControlEngine::check_etag(Transaction& tx, Kind kind, const std::string& key,
                                 std::int64_t etag, std::int64_t stored) {
  // Several changes of one resource in a batch may all carry the etag that was read before it.
  const auto [old, first] = tx.old_etags.try_emplace({kind, key}, stored);
  if (etag == 0 || etag == stored || (!first && etag == old->second)) return {};
  return absl::AbortedError(absl::StrCat(show_key(kind, key), " was changed meanwhile: etag is ",
                                         stored, ", the request has ", etag,
                                         "; read it again and repeat"));
}

Status ControlEngine::apply(Transaction& tx, const PutBoard& c) {
  ODT_TRY(require_key(c.value.uid, "board"));
  return put(tx, Kind::kBoard, c.value.uid.str(), c.value);
}
Status ControlEngine::apply(Transaction& tx, const PutPort& c) {
  ODT_TRY(require_key(c.value.path, "port"));
  return put(tx, Kind::kPort, c.value.path, c.value);
}
Status ControlEngine::apply(Transaction& tx, const PutModel& c) {
  ODT_TRY(require_key(c.value.hash, "model"));
  return put(tx, Kind::kModel, c.value.hash.str(), c.value);
}
Status ControlEngine::apply(Transaction& tx, const PutDataset& c) {
  ODT_TRY(require_key(c.value.id, "dataset"));
  return put(tx, Kind::kDataset, c.value.id.str(), c.value);
}
Status ControlEngine::apply(Transaction& tx, const PutEvaluation& c) {
  ODT_TRY(require_key(c.value.id, "evaluation"));
  return put(tx, Kind::kEvaluation, c.value.id.str(), c.value);
}
Status ControlEngine::apply(Transaction& tx, const PutJob& c) {
  ODT_TRY(require_key(c.value.id, "job"));
  return put(tx, Kind::kJob, c.value.id.str(), c.value);
}

Status ControlEngine::take_alias(Transaction& tx, const std::string& alias, const Hash& by) {
  ODT_ASSIGN(const std::optional<Row> holder, rows_->get(Kind::kAlias, alias));
  if (holder && holder->body != by.str()) {
    ODT_ASSIGN(const Hash other, Hash::from_bytes(holder->body));
    ODT_ASSIGN(model::Snapshot loser, snapshot(other));
    std::erase(loser.aliases, alias);
    loser.meta.etag = 0;
    ODT_TRY(put(tx, Kind::kSnapshot, other.str(), std::move(loser)));
  }
  return rows_->put(Kind::kAlias, {alias, {}, false, 0, by.str()});
}

Status ControlEngine::apply(Transaction& tx, const PutSnapshot& c) {
  ODT_TRY(require_key(c.value.hash, "snapshot"));
  model::Snapshot value = c.value;
  std::sort(value.aliases.begin(), value.aliases.end());
  value.aliases.erase(std::unique(value.aliases.begin(), value.aliases.end()), value.aliases.end());
  const std::string key = value.hash.str();
  ODT_ASSIGN(const std::optional<Row> row, rows_->get(Kind::kSnapshot, key));
  if (row) {
    ODT_ASSIGN(const model::Snapshot stored, from_body<model::Snapshot>(row->body));
    for (const std::string& alias : stored.aliases)
      if (!std::binary_search(value.aliases.begin(), value.aliases.end(), alias))
        ODT_TRY(rows_->erase(Kind::kAlias, alias));
    // Where weights came from is said once.
    value.chain = stored.chain;
    value.parent_chain = stored.parent_chain;
  } else {
    value.parent_chain = Hash{};
    if (!value.parent.is_zero()) {
      ODT_ASSIGN(const std::optional<Row> parent, rows_->get(Kind::kSnapshot, value.parent.str()));
      if (parent) {
        ODT_ASSIGN(const model::Snapshot before, from_body<model::Snapshot>(parent->body));
        value.parent_chain = before.chain;
      }
    }
    value.chain = model::chain_link(value, value.parent_chain);
  }
  for (const std::string& alias : value.aliases) ODT_TRY(take_alias(tx, alias, value.hash));
  return put(tx, Kind::kSnapshot, key, std::move(value));
}

Status ControlEngine::apply(Transaction& tx, const CreateRun& c) {
  ODT_TRY(require_key(c.value.id, "run"));
  if (c.value.state != model::RunState::kQueued)
    return absl::InvalidArgumentError(
        absl::StrCat("a run begins QUEUED, not ", state_name(c.value.state)));
  const std::string key = c.value.id.str();
  ODT_ASSIGN(const std::optional<Row> row, rows_->get(Kind::kRun, key));
  if (row) return absl::AlreadyExistsError("run " + c.value.id.hex() + " exists");
  model::Run run = c.value;
  if (run.meta.created_by.empty()) run.meta.created_by = c.actor;
  run.meta.etag = 0;
  ODT_TRY(put(tx, Kind::kRun, key, std::move(run)));
  model::RunEvent event;
  event.run_id = c.value.id;
  event.to = model::RunState::kQueued;
  event.cause = "created";
  event.actor = c.actor;
  return append_change(tx, Kind::kRunEvent, c.value.id, std::move(event));
}

Status ControlEngine::apply(Transaction& tx, const TransitionRun& c) {
  ODT_ASSIGN(const model::Run stored, run(c.value.id));
  if (c.event.to != c.value.state || c.event.run_id != c.value.id)
    return absl::InvalidArgumentError("transition of run " + c.value.id.hex() +
                                      " does not describe the run's new state");
  if (stored.state != c.event.from)
    return absl::FailedPreconditionError(absl::StrCat("run ", c.value.id.hex(), " is ",
                                                      state_name(stored.state), ", not ",
                                                      state_name(c.event.from)));
  if (!model::is_legal_transition(c.event.from, c.event.to))
    return absl::FailedPreconditionError(absl::StrCat("run ", c.value.id.hex(), " cannot go from ",
                                                      state_name(c.event.from), " to ",
                                                      state_name(c.event.to)));
  ODT_TRY(put(tx, Kind::kRun, c.value.id.str(), c.value));
  return append_change(tx, Kind::kRunEvent, c.value.id, c.event);
}

Status ControlEngine::apply(Transaction& tx, const UpdateRun& c) {
  ODT_ASSIGN(const model::Run stored, run(c.value.id));
  if (stored.state != c.value.state)
    return absl::FailedPreconditionError(
        absl::StrCat("run ", c.value.id.hex(), " is ", state_name(stored.state), ", not ",
                     state_name(c.value.state), "; a new state needs a transition"));
  return put(tx, Kind::kRun, c.value.id.str(), c.value);
}

Status ControlEngine::apply(Transaction& tx, const AppendEpoch& c) {
  ODT_TRY(run(c.value.run_id).status());
  const std::string key = epoch_key(c.value);
  ODT_ASSIGN(const std::optional<Row> row, rows_->get(Kind::kEpoch, key));
  if (row) {
    ODT_ASSIGN(const model::EpochResult stored, from_body<model::EpochResult>(row->body));
    if (same_result(stored, c.value)) return {};
    return absl::DataLossError(absl::StrCat("run ", c.value.run_id.hex(), " attempt ",
                                            c.value.attempt, " epoch ", c.value.epoch,
                                            " differs from what was recorded"));
  }
  ODT_TRY(put_record(Kind::kEpoch, key, c.value));
  return append(tx, Kind::kEpoch, key, c.value);
}

Status ControlEngine::apply(Transaction& tx, const AppendWarning& c) {
  const std::string key = big_endian(static_cast<std::uint64_t>(tx.next_seq), 8);
  ODT_TRY(put_record(Kind::kWarning, key, c.value));
  return append(tx, Kind::kWarning, key, c.value);
}

Status ControlEngine::apply(Transaction& tx, const AppendLabEvent& c) {
  ODT_TRY(require_key(c.value.board, "lab event"));
  const std::string prefix = lab_event_prefix(c.value.board);
  ODT_ASSIGN(const std::vector<Row> last, rows_->with_prefix(Kind::kLabEvent, prefix, true));
  model::LabEvent event = c.value;
  event.seq = 1;
  if (!last.empty()) {
    ODT_ASSIGN(const auto before, from_body<model::LabEvent>(last.back().body));
    event.seq = before.seq + 1;
  }
  event.time_us = tx.time_us;
  event.actor = tx.batch.actor;
  event.command_id = tx.batch.command_id;
  if (event.seq > kLabEventsKept)
    ODT_TRY(rows_->erase(Kind::kLabEvent, prefix + big_endian(event.seq - kLabEventsKept, 4)));
  const std::string key = prefix + big_endian(event.seq, 4);
  ODT_TRY(put_record(Kind::kLabEvent, key, event));
  return append(tx, Kind::kLabEvent, key, std::move(event));
}

Status ControlEngine::apply(Transaction&, const PutCommand& c) {
  ODT_TRY(require_key(c.value.id, "command"));
  const bool open = c.value.state != model::CommandState::kDone;
  return rows_->put(Kind::kCommand, {c.value.id.str(), {}, open, 0, to_body(c.value)});
}

Status ControlEngine::apply(Transaction&, const PutDerived& c) {
  return put_record(Kind::kDerived, derived_key(c.value.content_hash, c.value.model_hash), c.value);
}

Status ControlEngine::apply(Transaction& tx, const PutUpload& c) {
  ODT_TRY(require_key(c.value.id, "upload"));
  return put(tx, Kind::kUpload, c.value.id.str(), c.value);
}

Status ControlEngine::apply(Transaction& tx, const PutAlert& c) {
  ODT_TRY(require_key(c.value.id, "alert"));
  return put(tx, Kind::kAlert, c.value.id.str(), c.value);
}
Status ControlEngine::apply(Transaction& tx, const PutAlertSettings& c) {
  return put(tx, Kind::kAlertSettings, kAlertSettingsKey, c.value);
}
Status ControlEngine::apply(Transaction& tx, const PutScopedSetting& c) {
  ODT_TRY(require_key(c.value.key, "setting"));
  return put(tx, Kind::kScopedSetting, setting_key(c.value), c.value);
}

Status ControlEngine::apply(Transaction&, const PutSetting& c) {
  ODT_TRY(require_key(c.key, "setting"));
  return rows_->put(Kind::kSetting, {c.key, {}, false, 0, c.value});
}

Status ControlEngine::refuse_if_used(Kind kind, const std::string& key) {
  ODT_ASSIGN(const std::vector<model::Run> runs, active_runs());
  for (const model::Run& r : runs) {
    const model::RunSpec& s = r.spec;
    const bool used = (kind == Kind::kBoard && s.board_uid.str() == key) ||
                      (kind == Kind::kModel && s.model_hash.str() == key) ||
                      (kind == Kind::kDataset && s.dataset_id.str() == key) ||
                      (kind == Kind::kSnapshot && s.start_snapshot.str() == key);
    if (used)
      return absl::FailedPreconditionError(absl::StrCat(show_key(kind, key), " is in use by run ",
                                                        r.id.hex(), " (", state_name(r.state),
                                                        "); cancel the run or wait for its end"));
  }
  ODT_TRY(refuse_if_in_campaign(kind, key));
  if (kind == Kind::kSnapshot) {
    ODT_ASSIGN(const Hash hash, Hash::from_bytes(key));
    const auto value = snapshot(hash);
    if (value.ok() && value->pinned)
      return with_reason(
          absl::FailedPreconditionError(absl::StrCat(show_key(kind, key), " is pinned")),
          "SNAPSHOT_IN_USE", "Take the pin away first: odtctl weights pin --remove.");
  }
  return kind == Kind::kModel ? refuse_if_snapshots(key) : Status();
}

// Weights mean nothing without the model that they belong to.
Status ControlEngine::refuse_if_snapshots(const std::string& model) {
  constexpr std::uint32_t kPage = 500;
  std::uint64_t count = 0;
  std::string first;
  for (std::optional<Rows::Position> after;;) {
    ODT_ASSIGN(const std::vector<Row> rows, rows_->list(Kind::kSnapshot, after, false, kPage));
    for (const Row& row : rows) {
      ODT_ASSIGN(const model::Snapshot s, from_body<model::Snapshot>(row.body));
      if (s.model_hash.str() != model) continue;
      if (count++ == 0) first = s.aliases.empty() ? s.hash.hex().substr(0, 12) : s.aliases.front();
    }
    if (rows.size() < kPage) break;
    after = Rows::Position{rows.back().sort, rows.back().key};
  }
  if (count == 0) return {};
  return with_reason(
      absl::FailedPreconditionError(absl::StrCat(
          show_key(Kind::kModel, model), " has ", count,
          count == 1 ? " snapshot of weights (" : " snapshots of weights (the first: ", first,
          "), which cannot be used without it")),
      "MODEL_IN_USE", "Keep the model as long as its weights are kept.");
}

Status ControlEngine::apply(Transaction& tx, const Delete& c) {
  const auto* name = std::find_if(std::begin(kKindNames), std::end(kKindNames),
                                  [&](const KindName& k) { return c.kind == k.name; });
  if (name == std::end(kKindNames))
    return absl::InvalidArgumentError("nothing of kind '" + c.kind + "' can be deleted");
  const Kind kind = name->kind;
  ODT_ASSIGN(const std::optional<Row> row, rows_->get(kind, c.key));
  if (!row) return absl::NotFoundError(absl::StrCat("no ", c.kind, " ", show_key(kind, c.key)));
  ODT_TRY(refuse_if_used(kind, c.key));
  if (kind == Kind::kCampaign) ODT_TRY(delete_campaign_parts(c.key));
  if (kind == Kind::kSnapshot) ODT_TRY(drop_aliases(*row));
  ODT_TRY(rows_->erase(kind, c.key));
  if (kind == Kind::kUpload) return {};  // uploads have no events
  return append(tx, kind, c.key, model::Deleted{c.kind, c.key}, true);
}

}  // namespace odt::store
