// What happens at the end of a round.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>

#include "campaign/average.h"
#include "campaign/divergence.h"
#include "campaign/driver.h"
#include "campaign/plan.h"
#include "training/reason.h"

namespace odt::campaign {
namespace {

using model::CampaignKind;
using model::CampaignState;
using model::UnitState;

constexpr std::uint32_t kAllFrames = 1'000'000;

// What the store thread makes of a round's weights.
struct Averaged {
  Hash hash;
  std::uint64_t bytes = 0;
  Hash model_hash;
  std::vector<Drift> drifts;
  std::vector<bool> left_out;
};

struct Contribution {
  std::uint32_t index = 0;  // of the unit
  Hash weights;
  std::uint32_t samples = 0;
};

// start: a snapshot, or zero: the weights of the image.
Result<Averaged> average_round(store::BlobStore& blobs, const Hash& start, const Hash& image,
                               const std::vector<Contribution>& from, std::uint32_t outlier_q8,
                               std::size_t least) {
  std::vector<Share> shares;
  for (const auto& c : from) {
    ODT_ASSIGN(const std::string bytes, blobs.get(c.weights));
    ODT_ASSIGN(auto weights,
               data::parse_weights(bytes, "weights " + c.weights.hex().substr(0, 12)));
    shares.push_back({std::move(weights), c.samples});
    ODT_TRY(check_same(shares.front().weights, shares.back().weights));
  }
  ODT_ASSIGN(const std::string base, blobs.get(start.is_zero() ? image : start));
  ODT_ASSIGN(auto begin,
             start.is_zero() ? image_weights(base) : data::parse_weights(base, "start"));
  if (start.is_zero()) {
    const auto& like = shares.front().weights;
    begin.model_hash = like.model_hash;
    begin.rules_version = like.rules_version;
    begin.rule_set = like.rule_set;
  }
  ODT_TRY(check_same(begin, shares.front().weights));
  Averaged out;
  out.drifts = drifts(begin, shares);
  out.left_out = outliers(out.drifts, outlier_q8, least);
  std::vector<Share> taken;
  for (std::size_t i = 0; i < shares.size(); ++i)
    if (!out.left_out[i]) taken.push_back(std::move(shares[i]));
  ODT_ASSIGN(const auto mean, average(taken));
  out.model_hash = mean.model_hash;
  const std::string bytes = data::weights_bytes(mean);
  out.bytes = bytes.size();
  ODT_ASSIGN(out.hash, blobs.put(bytes));
  return out;
}

}  // namespace

asio::awaitable<Status> Driver::begin_round() {
  if (w_.c.spec.kind != CampaignKind::kFederated || w_.c.round >= w_.c.spec.federated.rounds ||
      w_.rounds.size() > w_.c.round)
    co_return absl::OkStatus();
  if (round_) {  // the one before: its save failed
    auto kept = co_await save();
    if (!kept.ok()) co_return kept;
  }
  model::CampaignRound round;
  round.campaign_id = w_.c.id;
  round.round = w_.c.round;
  round.start_time_us = env_.clock.now_us();
  for (const Unit& u : w_.units) {
    if (u.round != w_.c.round) continue;
    round.start = u.start_snapshot;
    ++round.boards;
  }
  round_ = round;
  auto saved = co_await save();
  co_return saved;
}

bool Driver::late(std::int64_t now_us) {
  const auto& spec = w_.c.spec;
  if (spec.kind != CampaignKind::kFederated) return false;
  bool any = false;
  const std::uint32_t least = least_boards(w_.c);
  std::uint32_t here = 0;
  for (const Unit& u : w_.units)
    if (u.round == w_.c.round && u.state != UnitState::kSkipped) ++here;
  // A board that did not take part in the last round and is still away costs no waiting.
  for (Unit& u : w_.units) {
    if (u.round != w_.c.round || u.state != UnitState::kPending || u.round == 0) continue;
    const bool missed = std::any_of(w_.units.begin(), w_.units.end(), [&](const Unit& before) {
      return before.round + 1 == u.round && before.board == u.board &&
             before.state != UnitState::kSucceeded;
    });
    if (!missed || board_online(u.board) || here <= least) continue;
    end_unit(u, UnitState::kSkipped, {"BOARD_OFFLINE", "the board is still away", ""});
    --here;
    any = true;
  }
  if (spec.federated.deadline_s == 0 || w_.rounds.size() <= w_.c.round) return any;
  const auto end =
      w_.rounds[w_.c.round].start_time_us + std::int64_t{spec.federated.deadline_s} * 1'000'000;
  if (now_us < end) return any;
  for (Unit& u : w_.units) {
    if (u.round != w_.c.round || model::is_final(u.state) || u.reason.code == "STRAGGLER") continue;
    const model::Reason reason{
        "STRAGGLER",
        absl::StrCat("not done ", spec.federated.deadline_s, " s after the round began"),
        "Give the round more time, or the board less work."};
    if (u.state == UnitState::kPending)
      end_unit(u, UnitState::kLate, reason);
    else
      u.reason = reason, touch(u);  // its run is cancelled at the next look
    any = true;
  }
  return any;
}

asio::awaitable<Status> Driver::advance() {
  Status done;
  switch (w_.c.spec.kind) {
    case CampaignKind::kSweep:
      done = co_await end_sweep_rung();
      break;
    case CampaignKind::kTwin:
      done = co_await end_twin();
      break;
    case CampaignKind::kRollout:
      done = co_await end_phase();
      break;
    case CampaignKind::kFederated:
      done = co_await end_federated_round();
      break;
    default: {
      const model::Reason none;
      done = co_await finish(CampaignState::kSucceeded, none);
    }
  }
  co_return done;
}

// SUCCEEDED turns into FAILED where units did not succeed and the kind asks for all of them.
asio::awaitable<Status> Driver::finish(CampaignState state, const model::Reason& given) {
  model::Reason reason = given;
  const auto kind = w_.c.spec.kind;
  std::uint32_t well = 0;
  const Unit* first = nullptr;
  for (const Unit& u : w_.units) {
    well += u.state == UnitState::kSucceeded ? 1 : 0;
    if (u.state != UnitState::kSucceeded && first == nullptr) first = &u;
  }
  const bool all =
      kind == CampaignKind::kSame || kind == CampaignKind::kTwin || kind == CampaignKind::kRollout;
  if (state == CampaignState::kSucceeded && ((all && first != nullptr) || well == 0)) {
    state = CampaignState::kFailed;
    reason.code = "UNITS_FAILED";
    reason.text =
        absl::StrCat(w_.units.size() - well, " of ", w_.units.size(), " units did not succeed");
    if (first != nullptr)
      absl::StrAppend(&reason.text, "; unit ", first->index, ": ", first->reason.text);
    reason.remedy = "Retry those: odtctl campaign retry.";
  }
  w_.c.reason = reason;
  w_.c.end_time_us = env_.clock.now_us();
  // A named value: GCC 12 destroys such a temporary of a co_await expression twice.
  std::string cause = reason.text.empty() ? "all units are done" : reason.text;
  auto moved = co_await move_to(state, std::move(cause));
  co_return moved;
}

// The snapshot becomes the campaign's result and gets an alias.
asio::awaitable<Status> Driver::name_result(Hash hash, std::string alias) {
  w_.c.result = hash;
  const auto read = [hash](store::ControlStore& s) { return s.snapshot(hash); };
  auto snapshot = co_await env_.control.call(read);
  if (absl::IsNotFound(snapshot.status())) co_return absl::OkStatus();
  if (!snapshot.ok()) co_return snapshot.status();
  auto& aliases = snapshot->aliases;
  if (std::find(aliases.begin(), aliases.end(), alias) == aliases.end()) aliases.push_back(alias);
  snapshot->meta.etag = 0;
  extra_.push_back(store::PutSnapshot{std::move(*snapshot)});
  co_return absl::OkStatus();
}

asio::awaitable<Status> Driver::end_sweep_rung() {
  w_.c.best_unit = best_unit(w_.units);
  if (w_.c.best_unit) {
    std::string alias = label_of(w_.c) + "/best";
    auto named = co_await name_result(w_.units[*w_.c.best_unit].weights, std::move(alias));
    if (!named.ok()) co_return named;
  }
  const bool budget = std::any_of(w_.units.begin(), w_.units.end(), [](const Unit& u) {
    return u.state == UnitState::kSkipped && u.reason.code == "BUDGET";
  });
  const auto next = budget ? std::vector<Unit>() : next_rung(w_.c, w_.units);
  if (next.empty()) {
    model::Reason reason;
    if (budget) reason = {"BUDGET", "the budget is spent; the best so far is kept", ""};
    auto done = co_await finish(CampaignState::kSucceeded, reason);
    co_return done;
  }
  w_.c.round = next.front().round;
  for (const Unit& u : next) {
    w_.units.push_back(u);
    touch(u);
  }
  auto saved = co_await save();
  co_return saved;
}

asio::awaitable<Status> Driver::end_twin() {
  const auto recorded = std::make_shared<std::array<Recorded, 2>>();
  std::array<Uuid, 2> ids{w_.units[0].run_id, w_.units[1].run_id};
  const auto read_epochs = [recorded, ids](store::ControlStore& s) -> Status {
    for (std::size_t i = 0; i < 2; ++i) {
      ODT_ASSIGN((*recorded)[i].epochs, s.epochs(ids[i]));
    }
    return absl::OkStatus();
  };
  auto done = co_await env_.control.call(read_epochs);
  if (!done.ok()) co_return done;
  const auto read_frames = [recorded, ids](store::TelemetryStore& s) -> Status {
    for (std::size_t i = 0; i < 2; ++i) {
      store::TelemetryStore::Range range;
      range.run = ids[i];
      range.max_frames = kAllFrames;
      ODT_ASSIGN(auto frames, s.read(range));
      (*recorded)[i].frames = std::move(frames.frames);
    }
    return absl::OkStatus();
  };
  done = co_await env_.telemetry.call(read_frames);
  if (!done.ok()) co_return done;
  w_.c.twin = compare((*recorded)[0], (*recorded)[1]);
  w_.c.twin.settings = differing(w_.units[0].hyper, w_.units[1].hyper);
  const model::Reason none;
  done = co_await finish(CampaignState::kSucceeded, none);
  co_return done;
}

asio::awaitable<Status> Driver::end_federated_round() {
  const auto& f = w_.c.spec.federated;
  if (w_.c.round >= f.rounds) {  // each board has its own by now
    const model::Reason none;
    auto done = co_await finish(CampaignState::kSucceeded, none);
    co_return done;
  }
  const auto from = std::make_shared<std::vector<Contribution>>();
  for (const Unit& u : w_.units)
    if (u.round == w_.c.round && u.state == UnitState::kSucceeded && !u.weights.is_zero())
      from->push_back({u.index, u.weights, u.train_samples});
  const std::uint32_t least = least_boards(w_.c);
  if (from->size() < least) {
    const model::Reason reason{"TOO_FEW_BOARDS",
                               absl::StrCat("round ", w_.c.round + 1, ": ", from->size(),
                                            " boards are done; the least is ", least),
                               "Look at its units, then retry: odtctl campaign retry."};
    auto done = co_await finish(CampaignState::kFailed, reason);
    co_return done;
  }
  const Hash start = w_.rounds[w_.c.round].start, image = w_.c.spec.model_hash;
  auto* blobs = &env_.blobs;
  const std::uint32_t q8 = f.outlier_q8;
  const auto work = [blobs, start, image, from, q8, least](store::ControlStore&) {
    return average_round(*blobs, start, image, *from, q8, least);
  };
  const auto made = co_await env_.control.call(work);
  if (!made.ok()) {
    if (!absl::IsFailedPrecondition(made.status()) && !absl::IsInvalidArgument(made.status()))
      co_return made.status();
    const model::Reason reason = training::reason_from(made.status());
    auto done = co_await finish(CampaignState::kFailed, reason);
    co_return done;
  }
  model::CampaignRound round = w_.rounds[w_.c.round];
  round.average = made->hash;
  round.median_l1 = lower_median_l1(made->drifts);
  round.averaged = 0;
  round.samples = 0;
  round.end_time_us = env_.clock.now_us();
  model::Snapshot snapshot;
  for (std::size_t i = 0; i < from->size(); ++i) {
    Unit& u = w_.units[(*from)[i].index];
    u.drift_l1 = made->drifts[i].l1;
    u.changed_ppm = made->drifts[i].changed_ppm;
    u.weight = made->left_out[i] ? 0 : (*from)[i].samples;
    if (made->left_out[i])
      u.reason = {
          "OUTLIER",
          absl::StrCat("its weights moved ", u.drift_l1, " steps, the median ", round.median_l1),
          ""};
    touch(u);
    if (made->left_out[i]) continue;
    ++round.averaged;
    round.samples += u.weight;
    if (u.weights != made->hash && std::find(snapshot.parents.begin(), snapshot.parents.end(),
                                             u.weights) == snapshot.parents.end())
      snapshot.parents.push_back(u.weights);
  }
  round_ = round;
  snapshot.hash = made->hash;
  snapshot.model_hash = made->model_hash;
  snapshot.parent = start;
  snapshot.bytes = made->bytes;
  snapshot.campaign_id = w_.c.id;
  snapshot.origin = "campaign";
  snapshot.note =
      absl::StrCat("average of ", round.averaged, " boards after round ", w_.c.round + 1);
  const Hash hash = made->hash;
  const auto read = [hash](store::ControlStore& s) { return s.snapshot(hash); };
  auto known = co_await env_.control.call(read);
  if (known.ok()) snapshot = *known;  // the same weights were here before
  snapshot.meta.etag = 0;
  for (const auto& alias :
       {absl::StrCat(label_of(w_.c), "/round-", w_.c.round + 1), label_of(w_.c) + "/average"})
    if (std::find(snapshot.aliases.begin(), snapshot.aliases.end(), alias) ==
        snapshot.aliases.end())
      snapshot.aliases.push_back(alias);
  extra_.push_back(store::PutSnapshot{std::move(snapshot)});
  w_.c.result = hash;
  const std::uint32_t next = w_.c.round + 1;
  if (next >= w_.c.rounds_total) {
    const model::Reason none;
    auto done = co_await finish(CampaignState::kSucceeded, none);
    co_return done;
  }
  w_.c.round = next;
  for (const Unit& u : next_round(w_.c, next, static_cast<std::uint32_t>(w_.units.size()), hash)) {
    w_.units.push_back(u);
    touch(u);
  }
  auto saved = co_await save();
  co_return saved;
}

bool Driver::board_online(const BoardUid& uid) const {
  const auto view = env_.fleet.view();
  for (const auto& b : view->boards)
    if (b.uid == uid)
      return b.status == model::BoardStatus::kOnline || b.status == model::BoardStatus::kBusy;
  return false;
}

// Nothing begins on a board that is out of service or kept for somebody else.
bool Driver::board_held(const BoardUid& uid) const {
  const std::string& whose = w_.c.owner.empty() ? w_.c.meta.created_by : w_.c.owner;
  const auto view = env_.fleet.view();
  for (const auto& b : view->boards)
    if (b.uid == uid)
      return b.maintenance.on() ||
             (b.reservation.active(env_.clock.now_us()) && b.reservation.owner != whose);
  return false;
}

}  // namespace odt::campaign
