#include "campaign/driver.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "campaign/plan.h"
#include "training/reason.h"

namespace odt::campaign {
namespace {

using model::CampaignKind;
using model::CampaignState;
using model::UnitState;
using std::chrono::milliseconds;

constexpr auto kLook = milliseconds(1000);  // where no event comes
constexpr std::uint32_t kMostTries = 2;     // of a trial whose board was lost

bool lost_board(const model::Reason& reason) {
  return reason.code == "RESUME_DEADLINE" || reason.code == "BOARD_UNSTABLE" ||
         reason.code == "BOARD_STUCK";
}

}  // namespace

std::string label_of(const model::Campaign& c) {
  std::string out = c.spec.name.empty() ? "campaign-" + c.id.hex().substr(0, 16) : c.spec.name;
  for (char& ch : out)
    if (ch == ' ' || ch == ',' || ch == '=') ch = '-';
  return out;
}

CallContext context_of(const model::Campaign& c) {
  CallContext ctx;
  ctx.actor = c.meta.created_by;
  ctx.owner = c.owner;
  ctx.command_id = new_uuid();
  return ctx;
}

model::RunSpec run_spec(const model::Campaign& c, const model::CampaignUnit& u) {
  model::RunSpec out;
  out.board_uid = u.board;
  out.model_hash = u.model_hash;
  out.dataset_id = u.dataset_id;
  out.hyper = u.hyper;
  out.start_snapshot = u.start_snapshot;
  out.evaluate = c.spec.evaluate;
  out.name = absl::StrCat(label_of(c), "/", u.index);
  out.resume_deadline_s = c.spec.resume_deadline_s;
  out.id = u.run_id;
  out.campaign_id = c.id;
  out.campaign_unit = u.index;
  return out;
}

Driver::Driver(Env& env, Work work) : env_(env), w_(std::move(work)), signal_(env.io) {}

void Driver::wake() {
  woken_ = true;
  signal_.notify();
}

void Driver::submit(Command command) {
  commands_.push_back(std::move(command));
  wake();
}

asio::awaitable<void> Driver::run() {
  const auto self = shared_from_this();
  while (!env_.stopping) {
    woken_ = false;
    while (!commands_.empty()) {
      const Command command = std::move(commands_.front());
      commands_.pop_front();
      co_await carry_out(command);
    }
    if (model::is_final(w_.c.state)) break;
    const auto moved = co_await step();
    if (!moved.ok()) {
      env_.say(4, "campaign " + w_.c.id.hex().substr(0, 12) + ": " + moved.status().ToString());
      co_await signal_.wait_for(kLook);
    } else if (!*moved && !woken_) {
      co_await signal_.wait_for(kLook);
    }
  }
  over_ = true;
  for (auto& command : commands_)
    command.done(absl::UnavailableError("the campaign ended at the same time; ask again"));
  commands_.clear();
}

// ---- what people ask for ------------------------------------------------------------------------

Result<std::string> Driver::apply(CampaignControl::Act act) {
  model::Campaign& c = w_.c;
  const auto refuse = [&](const char* what) {
    return with_reason(
        absl::FailedPreconditionError(
            absl::StrCat("campaign ", c.id.hex().substr(0, 16), " cannot be ", what,
                         c.state == CampaignState::kRollingBack ? ": it is rolling back"
                         : c.desired == model::Desired::kCancel ? ": it is being cancelled"
                                                                : ": its state does not allow it")),
        "CAMPAIGN_STATE", "Look at it: odtctl campaign show.");
  };
  const bool leaving = c.desired == model::Desired::kCancel;
  switch (act) {
    case CampaignControl::Act::kPause:
      if ((c.state != CampaignState::kRunning && c.state != CampaignState::kQueued) || leaving)
        return refuse("paused");
      c.state = CampaignState::kPaused;
      c.desired = model::Desired::kPause;
      return std::string("paused");
    case CampaignControl::Act::kResume:
      if (c.state != CampaignState::kPaused || leaving) return refuse("resumed");
      c.state = CampaignState::kRunning;
      c.desired = model::Desired::kRun;
      if (c.start_time_us == 0) c.start_time_us = env_.clock.now_us();
      return std::string("resumed");
    case CampaignControl::Act::kCancel:
      if (c.state == CampaignState::kRollingBack) return refuse("cancelled");
      c.desired = model::Desired::kCancel;
      return std::string("cancel");
    default:
      return refuse("retried: it is not over");
  }
}

asio::awaitable<void> Driver::carry_out(const Command& command) {
  const auto before = w_.c;
  const auto cause = apply(command.act);
  if (!cause.ok()) {
    command.done(cause.status());
    co_return;
  }
  const auto saved = co_await save(*cause, command.ctx, before.state != w_.c.state);
  if (!saved.ok()) {
    w_.c = before;
    command.done(saved);
    co_return;
  }
  command.done(w_.c);
}

// ---- the store ----------------------------------------------------------------------------------

asio::awaitable<Status> Driver::save() {
  const CallContext own;
  auto saved = co_await save(std::string(), own, false);
  co_return saved;
}

asio::awaitable<Status> Driver::save(std::string cause, const CallContext& ctx, bool transition) {
  count_units(w_.units, w_.c);
  const auto batch = std::make_shared<store::Batch>();
  batch->actor = ctx.actor;
  batch->command_id = ctx.command_id;
  if (!ctx.request_id.empty()) {
    batch->request_id = ctx.request_id;
    batch->response = w_.c.id.str();
  }
  // What operations of a rollout change meanwhile is of the next save.
  std::set<std::uint32_t> writing = std::exchange(dirty_, {});
  for (const auto index : writing)
    batch->changes.push_back(store::PutCampaignUnit{w_.units[index]});
  if (round_) batch->changes.push_back(store::PutCampaignRound{*round_});
  for (const auto& change : extra_) batch->changes.push_back(change);
  model::Campaign value = w_.c;
  value.meta.etag = 0;
  const Uuid id = w_.c.id;
  const auto write = [batch, value, id, cause,
                      transition](store::ControlStore& s) -> Result<std::shared_ptr<store::Batch>> {
    if (transition) {
      ODT_ASSIGN(const auto stored, s.campaign(id));
      model::CampaignEvent event;
      event.campaign_id = id;
      event.from = stored.state;
      event.to = value.state;
      event.cause = cause;
      batch->changes.push_back(store::TransitionCampaign{value, event});
    } else {
      batch->changes.push_back(store::UpdateCampaign{value});
    }
    return batch;
  };
  const auto ready = co_await env_.control.call(write);
  if (!ready.ok()) {
    dirty_.merge(writing);
    co_return ready.status();
  }
  store::Batch content = std::move(**ready);
  const auto events = co_await env_.control.commit(std::move(content));
  if (!events.ok()) {
    dirty_.merge(writing);
    co_return events.status();
  }
  for (const auto& event : *events)
    if (const auto* body = std::get_if<model::Campaign>(&event.body)) w_.c.meta = body->meta;
  extra_.clear();
  if (round_) {
    if (round_->round < w_.rounds.size())
      w_.rounds[round_->round] = *round_;
    else
      w_.rounds.push_back(*round_);
    round_.reset();
  }
  co_return absl::OkStatus();
}

asio::awaitable<Status> Driver::move_to(CampaignState state, std::string cause) {
  const auto before = w_.c.state;
  w_.c.state = state;
  const CallContext own;
  auto saved = co_await save(std::move(cause), own, true);
  if (!saved.ok()) w_.c.state = before;
  co_return saved;
}

// ---- one step -----------------------------------------------------------------------------------

asio::awaitable<Result<bool>> Driver::step() {
  if (w_.c.state == CampaignState::kQueued && w_.c.desired != model::Desired::kCancel) {
    w_.c.start_time_us = env_.clock.now_us();
    auto moved = co_await move_to(CampaignState::kRunning, "started");
    if (!moved.ok()) co_return moved;
    co_return true;
  }
  auto seen = co_await observe();
  if (!seen.ok()) co_return seen;
  if (w_.c.desired == model::Desired::kCancel) {
    auto done = co_await cancelled();
    if (!done.ok()) co_return done;
    co_return model::is_final(w_.c.state);
  }
  bool moved = false;
  if (w_.c.state == CampaignState::kRunning) {
    auto begun = co_await begin_round();
    if (!begun.ok()) co_return begun;
    moved = late(env_.clock.now_us());
    moved = start_units() || moved;
  }
  if (w_.c.spec.kind == CampaignKind::kRollout) tend_rollout();
  if (!dirty_.empty() || round_) {
    auto saved = co_await save();
    if (!saved.ok()) co_return saved;
    moved = true;
  }
  if (w_.c.state == CampaignState::kRunning && round_over()) {
    auto done = co_await advance();
    if (!done.ok()) co_return done;
    co_return true;
  }
  if (w_.c.state == CampaignState::kRollingBack) {
    auto done = co_await roll_back();
    if (!done.ok()) co_return done;
  }
  co_return moved;
}

bool Driver::round_over() const {
  return std::none_of(w_.units.begin(), w_.units.end(), [&](const Unit& u) {
    return u.round <= w_.c.round && !model::is_final(u.state);
  });
}

asio::awaitable<Status> Driver::cancelled() {
  skip_pending("CANCELLED", "the campaign was cancelled");
  const bool running = std::any_of(w_.units.begin(), w_.units.end(),
                                   [](const Unit& u) { return u.state == UnitState::kRunning; });
  if (running || !busy_.empty()) {
    if (dirty_.empty()) co_return absl::OkStatus();
    auto saved = co_await save();
    co_return saved;
  }
  const model::Reason reason{"CANCELLED", "cancelled", ""};
  auto done = co_await finish(CampaignState::kCancelled, reason);
  co_return done;
}

void Driver::end_unit(Unit& u, UnitState state, model::Reason reason) {
  u.state = state;
  if (!reason.code.empty()) u.reason = std::move(reason);
  if (u.end_time_us == 0) u.end_time_us = env_.clock.now_us();
  u.held = false;
  touch(u);
}

bool Driver::skip_pending(const char* code, const std::string& text) {
  bool any = false;
  for (Unit& u : w_.units) {
    if (u.state != UnitState::kPending) continue;
    end_unit(u, UnitState::kSkipped, {code, text, ""});
    any = true;
  }
  return any;
}

// ---- runs ---------------------------------------------------------------------------------------

asio::awaitable<Status> Driver::observe() {
  const auto ids = std::make_shared<std::vector<std::pair<std::uint32_t, Uuid>>>();
  for (const Unit& u : w_.units)
    if (u.state == UnitState::kRunning && !u.run_id.is_zero()) ids->emplace_back(u.index, u.run_id);
  if (ids->empty()) {
    // A cancelled rollout ends where its operations end.
    if (w_.c.desired == model::Desired::kCancel && w_.c.spec.kind == CampaignKind::kRollout)
      for (Unit& u : w_.units)
        if (u.state == UnitState::kRunning && busy_.count(u.index) == 0)
          end_unit(u, UnitState::kCancelled, {"CANCELLED", "the campaign was cancelled", ""});
    co_return absl::OkStatus();
  }
  const auto read = [ids](store::ControlStore& s) -> Result<std::vector<Result<model::Run>>> {
    std::vector<Result<model::Run>> out;
    for (const auto& [index, id] : *ids) out.push_back(s.run(id));
    return out;
  };
  const auto runs = co_await env_.control.call(read);
  if (!runs.ok()) co_return runs.status();
  for (std::size_t i = 0; i < ids->size(); ++i) {
    auto done = co_await observe_run(w_.units[(*ids)[i].first], (*runs)[i]);
    if (!done.ok()) co_return done;
  }
  co_return absl::OkStatus();
}

asio::awaitable<Status> Driver::observe_run(Unit& u, const Result<model::Run>& run) {
  if (absl::IsNotFound(run.status())) {
    if (w_.c.desired == model::Desired::kCancel)
      end_unit(u, UnitState::kCancelled, {"CANCELLED", "the campaign was cancelled", ""});
    else if (w_.c.state == CampaignState::kRunning)
      co_await create_run(u);
    co_return absl::OkStatus();
  }
  if (!run.ok()) co_return run.status();
  if (model::is_final(run->state)) {
    settle(u, *run);
    co_return absl::OkStatus();
  }
  u.steps_done = run->steps_done;
  auto done = co_await steer(u, *run);
  co_return done;
}

asio::awaitable<void> Driver::create_run(Unit& u) {
  if (trouble_.count(u.index) != 0 && env_.clock.now_us() < trouble_[u.index].again_us) co_return;
  const auto spec = run_spec(w_.c, u);
  const auto ctx = context_of(w_.c);
  std::function<void(Done<model::Run>)> start = [this, spec, ctx](Done<model::Run> done) {
    env_.fleet.create_run(ctx, spec, false, std::move(done));
  };
  const auto run = co_await ask<model::Run>(env_.io, std::move(start));
  if (run.ok()) {
    trouble_.erase(u.index);
    co_return;
  }
  const auto code = run.status().code();
  const bool passing = code == absl::StatusCode::kUnavailable ||
                       code == absl::StatusCode::kAborted ||
                       code == absl::StatusCode::kDeadlineExceeded;
  if (passing && !env_.stopping) {
    trouble_[u.index].again_us = env_.clock.now_us() + 1'000'000;
    co_return;
  }
  end_unit(u, UnitState::kFailed, training::reason_from(run.status()));
}

void Driver::hold_running() {
  for (Unit& u : w_.units) {
    if (u.state != UnitState::kRunning || paused_apart_.contains(u.index) || u.held) continue;
    u.held = true;
    touch(u);
  }
}

asio::awaitable<Status> Driver::steer(Unit& u, const model::Run& run) {
  if (run.desired == model::Desired::kPause && !u.held)
    paused_apart_.insert(u.index);
  else
    paused_apart_.erase(u.index);
  model::Desired want = run.desired;
  if (w_.c.desired == model::Desired::kCancel || u.reason.code == "STRAGGLER")
    want = model::Desired::kCancel;
  else if (w_.c.state == CampaignState::kPaused && run.desired == model::Desired::kRun)
    want = model::Desired::kPause;
  else if (w_.c.state == CampaignState::kRunning && u.held && run.desired == model::Desired::kPause)
    want = model::Desired::kRun;
  if (want == run.desired) {
    if (w_.c.state == CampaignState::kRunning && u.held && run.desired == model::Desired::kRun) {
      u.held = false;
      touch(u);
    }
    co_return absl::OkStatus();
  }
  if (want == model::Desired::kPause && !u.held) {
    u.held = true;  // before the run hears of it
    touch(u);
    auto saved = co_await save();
    if (!saved.ok()) co_return saved;
  }
  const auto ctx = context_of(w_.c);
  const Uuid id = run.id;
  std::function<void(Done<model::Run>)> start = [this, ctx, id, want](Done<model::Run> done) {
    env_.fleet.set_desired(ctx, id, want, std::move(done));
  };
  // Where the run's state does not allow it now: the next look tries again.
  (void)co_await ask<model::Run>(env_.io, std::move(start));
  co_return absl::OkStatus();
}

void Driver::settle(Unit& u, const model::Run& run) {
  u.before = run.before;
  u.after = run.after;
  u.heldout_start = run.heldout_start;
  u.heldout_best = run.heldout_best;
  u.heldout_best_loss = run.heldout_best_loss;
  u.train_samples = run.train_samples;
  u.weights = run.final_weights_hash;
  u.steps_done = run.steps_done;
  if (run.start_time_us != 0) u.start_time_us = run.start_time_us;
  u.end_time_us = run.end_time_us;
  const bool straggler = u.reason.code == "STRAGGLER";
  if (straggler) return end_unit(u, UnitState::kLate);
  if (run.state == model::RunState::kSucceeded) return end_unit(u, UnitState::kSucceeded);
  if (run.state == model::RunState::kCancelled)
    return end_unit(u, UnitState::kCancelled,
                    run.reason.code.empty()
                        ? model::Reason{"CANCELLED", "the run was cancelled", ""}
                        : run.reason);
  if (w_.c.spec.kind == CampaignKind::kSweep && lost_board(run.reason) &&
      u.tries + 1 < kMostTries && w_.c.desired != model::Desired::kCancel) {
    // Another board takes the trial.
    ++u.tries;
    u.state = UnitState::kPending;
    u.reason = run.reason;
    u.run_id = Uuid{};
    u.start_time_us = u.end_time_us = 0;
    return touch(u);
  }
  end_unit(u, UnitState::kFailed, run.reason);
}

// ---- starting -----------------------------------------------------------------------------------

void Driver::start(Unit& u, const BoardUid& board) {
  u.board = board;
  u.state = UnitState::kRunning;
  u.reason = {};
  u.start_time_us = env_.clock.now_us();
  u.end_time_us = 0;
  if (w_.c.spec.kind != CampaignKind::kRollout) u.run_id = new_uuid();
  touch(u);
}

bool Driver::start_units() {
  std::uint32_t running = 0;
  for (const Unit& u : w_.units) running += u.state == UnitState::kRunning ? 1 : 0;
  const std::uint32_t most = w_.c.spec.max_parallel == 0 ? kMaxTrials : w_.c.spec.max_parallel;
  std::uint32_t slots = most > running ? most - running : 0;
  if (w_.c.spec.kind == CampaignKind::kSweep) return give_out_trials(slots);
  bool any = false;
  for (Unit& u : w_.units) {
    if (slots == 0) break;
    if (u.state != UnitState::kPending || u.round > w_.c.round || board_held(u.board)) continue;
    start(u, u.board);
    any = true;
    --slots;
  }
  return any;
}

bool Driver::give_out_trials(std::uint32_t slots) {
  const auto budget = std::uint64_t{w_.c.spec.sweep.budget_board_s} * 1'000'000;
  if (budget != 0 && w_.c.board_us >= budget)
    return skip_pending("BUDGET", absl::StrCat("the budget of ", w_.c.spec.sweep.budget_board_s,
                                               " board-seconds is spent"));
  bool any = false;
  for (Unit& u : w_.units) {
    if (slots == 0) break;
    if (u.state != UnitState::kPending || u.round > w_.c.round) continue;
    const auto free = std::find_if(w_.c.boards.begin(), w_.c.boards.end(), [&](const BoardUid& b) {
      const bool taken = std::any_of(w_.units.begin(), w_.units.end(), [&](const Unit& other) {
        return other.state == UnitState::kRunning && other.board == b;
      });
      return !taken && board_online(b) && !board_held(b);
    });
    if (free == w_.c.boards.end()) break;
    start(u, *free);
    any = true;
    --slots;
  }
  return any;
}

}  // namespace odt::campaign
