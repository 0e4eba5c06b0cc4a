// Weights to boards, in phases: one operation of a board after the other, each stage stored before
// the next begins.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "campaign/driver.h"
#include "campaign/plan.h"
#include "training/reason.h"

namespace odt::campaign {
namespace {

using model::CampaignState;
using model::RolloutStage;
using model::UnitState;
using std::chrono::milliseconds;

constexpr std::int64_t kAgainUs = 500'000;
constexpr auto kJobLook = milliseconds(200);

RolloutStage after(RolloutStage stage) {
  return static_cast<RolloutStage>(static_cast<std::uint8_t>(stage) + 1);
}

// What may be otherwise in a moment: the board is away or busy.
bool passing(const Status& status) {
  const std::string reason = reason_of(status);
  return absl::IsUnavailable(status) || absl::IsAborted(status) ||
         absl::IsDeadlineExceeded(status) || reason == "BOARD_HAS_RUN" || reason == "BOARD_BUSY" ||
         reason == "BOARD_OFFLINE" || reason == "EVALUATION_FAILED";
}

std::string percent(const model::Accuracy& a) { return absl::StrCat(a.correct, " of ", a.total); }

}  // namespace

void Driver::launch(Unit& u, std::function<asio::awaitable<Status>(std::uint32_t)> work) {
  const auto it = trouble_.find(u.index);
  if (busy_.count(u.index) != 0 ||
      (it != trouble_.end() && env_.clock.now_us() < it->second.again_us))
    return;
  busy_.insert(u.index);
  const auto self = shared_from_this();
  const std::uint32_t index = u.index;
  auto task = [self, index, work = std::move(work)]() -> asio::awaitable<void> {
    const Status status = co_await work(index);
    self->busy_.erase(index);
    self->stage_done(self->w_.units[index], status);
    self->wake();
  };
  // The closure lives as long as its coroutine.
  const auto shared = std::make_shared<decltype(task)>(std::move(task));
  asio::co_spawn(env_.io, (*shared)(), [shared](std::exception_ptr error) {
    if (error) std::rethrow_exception(error);
  });
}

void Driver::tend_rollout() {
  if (w_.c.state != CampaignState::kRunning) return;
  for (Unit& u : w_.units) {
    // What is stored must be as new as what is done: a stage begins after the one before is saved.
    if (u.state != UnitState::kRunning || dirty_.count(u.index) != 0) continue;
    launch(u, [this](std::uint32_t index) { return deploy_stage(index); });
  }
}

asio::awaitable<Status> Driver::deploy_stage(std::uint32_t index) {
  const Unit& u = w_.units[index];
  Status done;
  switch (u.stage) {
    case RolloutStage::kPull:
      done = co_await pull_previous(index);
      break;
    case RolloutStage::kBefore:
      done = co_await evaluate(index, u.previous, true);
      break;
    case RolloutStage::kRestore:
      done = co_await restore(index, w_.c.spec.rollout.snapshot);
      break;
    case RolloutStage::kAfter:
      done = co_await evaluate(index, w_.c.spec.rollout.snapshot, false);
      break;
    case RolloutStage::kDone:
      done = co_await commit(index);
      break;
    default:
      break;
  }
  co_return done;
}

void Driver::stage_done(Unit& u, Status status) {
  if (w_.c.state == CampaignState::kRollingBack) {
    if (status.ok()) {
      trouble_.erase(u.index);
      u.state = UnitState::kRolledBack;
      touch(u);
      return;
    }
  } else if (status.ok()) {
    trouble_.erase(u.index);
    u.stage = after(u.stage);
    touch(u);
    const bool fell = dropped_too_far(w_.c.spec.rollout, u.before, u.after);
    if (u.stage == RolloutStage::kDone && fell)
      return end_unit(
          u, UnitState::kFailed,
          {"DROPPED",
           absl::StrCat(percent(u.before), " correct before, ", percent(u.after), " after"), ""});
    if (u.stage == RolloutStage::kDone) u.weights = w_.c.spec.rollout.snapshot;
    if (u.stage >= RolloutStage::kDone) end_unit(u, UnitState::kSucceeded);
    return;
  }
  Trouble& t = trouble_[u.index];
  const std::int64_t now = env_.clock.now_us();
  if (t.since_us == 0) t.since_us = now;
  t.again_us = now + kAgainUs;
  const auto patience = std::int64_t{w_.c.spec.resume_deadline_s} * 1'000'000;
  if (passing(status) && now - t.since_us < patience) return;
  model::Reason reason = training::reason_from(status);
  if (w_.c.state == CampaignState::kRollingBack)
    reason = {"ROLLBACK_FAILED", "its old weights could not be restored: " + reason.text,
              "Restore them: odtctl weights restore."};
  trouble_.erase(u.index);  // a roll-back of it has its own patience
  end_unit(u, UnitState::kFailed, reason);
}

asio::awaitable<Status> Driver::pull_previous(std::uint32_t index) {
  const BoardUid uid = w_.units[index].board;
  const auto ctx = context_of(w_.c);
  std::function<void(Done<model::Snapshot>)> start = [this, ctx, uid](Done<model::Snapshot> done) {
    env_.fleet.pull_weights(ctx, uid, "", std::move(done));
  };
  const auto pulled = co_await ask<model::Snapshot>(env_.io, std::move(start));
  Unit& u = w_.units[index];
  if (pulled.ok()) {
    u.previous = pulled->hash;
    // Of another model: nothing to compare with.
    if (pulled->model_hash != w_.c.spec.model_hash) u.stage = RolloutStage::kBefore;
    co_return absl::OkStatus();
  }
  const auto code = pulled.status().code();
  const bool none = !passing(pulled.status()) && (code == absl::StatusCode::kFailedPrecondition ||
                                                  code == absl::StatusCode::kNotFound);
  if (!none) co_return pulled.status();
  u.stage = RolloutStage::kBefore;  // the board holds no weights: there is no before
  co_return absl::OkStatus();
}

asio::awaitable<Status> Driver::restore(std::uint32_t index, Hash snapshot) {
  const BoardUid uid = w_.units[index].board;
  const auto ctx = context_of(w_.c);
  std::function<void(Done<model::Board>)> start = [this, ctx, uid,
                                                   snapshot](Done<model::Board> done) {
    env_.fleet.restore_weights(ctx, uid, snapshot, std::move(done));
  };
  const auto board = co_await ask<model::Board>(env_.io, std::move(start));
  co_return board.status();
}

asio::awaitable<Status> Driver::commit(std::uint32_t index) {
  const BoardUid uid = w_.units[index].board;
  const auto ctx = context_of(w_.c);
  std::function<void(Done<model::NvmInfo>)> start = [this, ctx, uid](Done<model::NvmInfo> done) {
    env_.fleet.board_nvm(ctx, uid, training::FleetControl::NvmAction::kCommit, std::move(done));
  };
  const auto info = co_await ask<model::NvmInfo>(env_.io, std::move(start));
  co_return info.status();
}

asio::awaitable<Status> Driver::evaluate(std::uint32_t index, Hash snapshot, bool before) {
  const BoardUid uid = w_.units[index].board;
  const Uuid dataset = w_.units[index].dataset_id;
  const std::string split = w_.c.spec.rollout.split;
  const auto ctx = context_of(w_.c);
  std::function<void(Done<model::Job>)> start = [=, this](Done<model::Job> done) {
    env_.fleet.evaluate(ctx, uid, snapshot, dataset, split, std::move(done));
  };
  auto job = co_await ask<model::Job>(env_.io, std::move(start));
  if (!job.ok()) co_return job.status();
  const Uuid id = job->id;
  while (job->state == model::Job::State::kQueued || job->state == model::Job::State::kRunning) {
    if (env_.stopping) co_return absl::UnavailableError("odtd is stopping");
    co_await signal_.wait_for(kJobLook);
    const auto read = [id](store::ControlStore& s) { return s.job(id); };
    job = co_await env_.control.call(read);
    if (!job.ok()) co_return job.status();
  }
  if (job->state != model::Job::State::kSucceeded)
    co_return with_reason(absl::UnavailableError("evaluation: " + job->reason.text),
                          "EVALUATION_FAILED");
  const auto key = Uuid::from_bytes(std::string(job->result_key.begin(), job->result_key.end()));
  if (!key.ok()) co_return key.status();
  const Uuid result = *key;
  const auto find = [result](store::ControlStore& s) { return s.evaluation(result); };
  const auto evaluation = co_await env_.control.call(find);
  if (!evaluation.ok()) co_return evaluation.status();
  Unit& u = w_.units[index];
  (before ? u.before : u.after) = evaluation->accuracy;
  co_return absl::OkStatus();
}

asio::awaitable<Status> Driver::end_phase() {
  const auto fell = std::find_if(w_.units.begin(), w_.units.end(), [&](const Unit& u) {
    return u.state == UnitState::kFailed && u.reason.code == "DROPPED";
  });
  std::uint32_t well = 0;
  for (const Unit& u : w_.units)
    well += u.round == w_.c.round && u.state == UnitState::kSucceeded ? 1 : 0;
  if (fell != w_.units.end()) {
    const model::Reason reason{
        "DROPPED",
        absl::StrCat("accuracy fell too far on board ", fell->board.hex(), ": ", fell->reason.text),
        "Look at the snapshot; raise --max-drop where that is wanted."};
    w_.c.reason = reason;
    skip_pending("ABORTED", "the rollout was aborted");
    auto moved = co_await move_to(CampaignState::kRollingBack, reason.text);
    co_return moved;
  }
  if (well == 0) {
    skip_pending("ABORTED", "no board of the phase before took the weights");
    const model::Reason reason{
        "PHASE_FAILED", absl::StrCat("no board of phase ", w_.c.round + 1, " took the weights"),
        "Look at its units, then retry: odtctl campaign retry."};
    auto done = co_await finish(CampaignState::kFailed, reason);
    co_return done;
  }
  if (w_.c.round + 1 < w_.c.rounds_total) {
    ++w_.c.round;
    auto saved = co_await save();
    co_return saved;
  }
  bool waiting = false;
  for (Unit& u : w_.units) {
    if (!w_.c.spec.rollout.commit || u.state != UnitState::kSucceeded ||
        u.stage != RolloutStage::kDone)
      continue;
    u.state = UnitState::kRunning;
    touch(u);
    waiting = true;
  }
  if (waiting) {
    auto saved = co_await save();
    co_return saved;
  }
  w_.c.result = w_.c.spec.rollout.snapshot;
  const model::Reason none;
  auto done = co_await finish(CampaignState::kSucceeded, none);
  co_return done;
}

// Boards that may have the new weights get their old ones; those that had none keep what they have.
asio::awaitable<Status> Driver::roll_back() {
  bool left = false;
  for (Unit& u : w_.units) {
    const bool touched = u.stage >= RolloutStage::kRestore && !u.previous.is_zero() &&
                         u.state != UnitState::kRolledBack && u.reason.code != "ROLLBACK_FAILED";
    if (!touched) continue;
    left = true;
    const Hash previous = u.previous;
    launch(u, [this, previous](std::uint32_t index) { return restore(index, previous); });
  }
  if (left) co_return absl::OkStatus();
  const model::Reason reason = w_.c.reason;
  auto done = co_await finish(CampaignState::kFailed, reason);
  co_return done;
}

}  // namespace odt::campaign
