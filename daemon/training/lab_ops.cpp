#include <absl/strings/str_cat.h>

#include <algorithm>

#include "training/orchestrator_impl.h"

// Lab life of boards: reservations, maintenance, replacement, power. Rules: lab/rules.h.
namespace odt::training {
namespace {

using std::chrono::steady_clock;

constexpr auto kLabTick = std::chrono::milliseconds(500);

store::Change lab_event(model::LabEvent event) { return store::AppendLabEvent{std::move(event)}; }

// One board's change by the rules; ReplaceBy is of two.
Result<std::vector<store::Change>> apply_act(model::Board& board, const CallContext& ctx,
                                             const FleetControl::LabAct& act, std::int64_t now) {
  std::vector<store::Change> out;
  if (const auto* reserve = std::get_if<FleetControl::Reserve>(&act)) {
    ODT_ASSIGN(auto event, lab::reserve(board, ctx, *reserve, now));
    out.push_back(lab_event(std::move(event)));
  } else if (const auto* extend = std::get_if<FleetControl::Extend>(&act)) {
    ODT_ASSIGN(auto event, lab::extend(board, ctx, extend->duration_s, now));
    out.push_back(lab_event(std::move(event)));
  } else if (const auto* release = std::get_if<FleetControl::Release>(&act)) {
    ODT_ASSIGN(auto event, lab::release(board, ctx, release->take_over, now));
    if (event) out.push_back(lab_event(std::move(*event)));
  } else if (const auto* maintain = std::get_if<FleetControl::Maintain>(&act)) {
    auto event = lab::set_maintenance(board, ctx, maintain->on, maintain->note, now);
    if (event) out.push_back(lab_event(std::move(*event)));
  }
  return out;
}

}  // namespace

Status Orchestrator::Impl::free_for(const CallContext& ctx, const BoardUid& uid) const {
  const model::Board* board = env_->registry->find(uid);
  if (board == nullptr) return absl::OkStatus();  // what follows says so
  return lab::may_use(*board, ctx.whose(), env_->clock.now_us());
}

asio::awaitable<Result<std::vector<model::Board>>> Orchestrator::Impl::lab(
    CallContext ctx, BoardUid uid, FleetControl::LabAct act) {
  const auto self = shared_from_this();
  std::vector<BoardUid> boards(1, uid);
  const auto* by = std::get_if<FleetControl::ReplaceBy>(&act);
  if (by != nullptr) {
    boards.push_back(by->by);
    if (by->by == uid)
      co_return with_reason(absl::InvalidArgumentError("a board cannot replace itself"),
                            "SAME_BOARD", "Name two boards.", "new_uid");
  }
  auto before = co_await seen(ctx);
  if (!before.ok()) co_return before.status();
  if (!before->empty()) {
    std::vector<model::Board> now;
    for (const auto& want : boards)
      for (auto& board : env_->registry->boards())
        if (board.uid == want) now.push_back(std::move(board));
    if (now.size() == boards.size()) co_return now;
    co_return absl::NotFoundError("board " + uid.hex() + " was deleted since");
  }
  fleet::Registry::Edit edit =
      [this, ctx,
       act](const std::vector<model::Board*>& all) -> Result<std::vector<store::Change>> {
    const std::int64_t now = env_->clock.now_us();
    if (!std::holds_alternative<FleetControl::ReplaceBy>(act))
      return apply_act(*all.front(), ctx, act, now);
    if (!slot(all.front()->uid).queue.empty())
      return with_reason(absl::FailedPreconditionError("board " + all.front()->name + " has runs"),
                         "BOARD_HAS_RUN", "Wait for their end, or cancel them: odtctl run queue.");
    for (const auto* board : all) ODT_TRY(lab::may_use(*board, ctx.whose(), now));
    ODT_ASSIGN(auto moved, lab::replace(*all[0], *all[1]));
    std::vector<store::Change> out;
    out.push_back(lab_event(std::move(moved.of_old)));
    out.push_back(lab_event(std::move(moved.of_new)));
    return out;
  };
  auto done = co_await env_->registry->change(ctx, std::move(boards), std::move(edit));
  if (!done.ok()) co_return done;
  lab_tick_.notify();
  for (const auto& board : *done) pump(slot(board.uid));
  co_return done;
}

// ---- what time brings ---------------------------------------------------------------------------

asio::awaitable<void> Orchestrator::Impl::lab_loop() {
  const auto self = shared_from_this();
  while (!env_->stopping) {
    const std::int64_t now = env_->clock.now_us();
    const auto steady = env_->clock.steady_now();
    std::vector<BoardUid> over;
    for (const auto& uid : env_->registry->reserved()) {
      const model::Reservation& r = env_->registry->find(uid)->reservation;
      auto& known = slot(uid).reserved;
      if (!known || known->what != r) {
        // Never longer than it was granted for, should the clock have jumped back meanwhile.
        const auto most = std::max<std::int64_t>(0, r.expire_us - r.since_us);
        const auto left = std::clamp<std::int64_t>(r.expire_us - now, 0, most);
        known = {r, steady + std::chrono::microseconds(left)};
      }
      if (!r.active(now) || steady >= known->until) over.push_back(uid);
    }
    for (const auto& uid : over) co_await end_reservation(uid);
    if (env_->stopping) co_return;
    if (!power_.empty())
      for (const auto& board : env_->registry->boards()) look_at_power(board, slot(board.uid));
    co_await lab_tick_.wait_for(kLabTick);
  }
}

asio::awaitable<void> Orchestrator::Impl::end_reservation(BoardUid uid) {
  const model::Reservation ended = slot(uid).reserved->what;
  fleet::Registry::Edit edit =
      [ended](const std::vector<model::Board*>& all) -> Result<std::vector<store::Change>> {
    std::vector<store::Change> out;
    if (all.front()->reservation == ended) out.push_back(lab_event(lab::expire(*all.front())));
    return out;
  };
  CallContext ctx;
  std::vector<BoardUid> boards(1, uid);
  auto done = co_await env_->registry->change(ctx, std::move(boards), std::move(edit));
  if (!done.ok()) {
    env_->say(4, "reservation of board " + uid.hex() + ": " + text_of(done.status()));
    co_return;
  }
  env_->say(2, "board " + done->front().name + ": the reservation of " + ended.owner + " is over");
  pump(slot(uid));
}

asio::awaitable<void> Orchestrator::Impl::tell_held(std::shared_ptr<RunTask> task,
                                                    model::Reason why) {
  const auto self = shared_from_this();
  task->held_by = why;
  auto told = co_await task->set_held(why);
  if (!told.ok()) env_->say(4, "store: " + told.ToString());
}

// ---- power --------------------------------------------------------------------------------------

void Orchestrator::Impl::add_power(model::Board& board) const {
  const lab::PowerProfile* profile = lab::profile_of(power_, board);
  if (profile == nullptr) return;
  board.power.profile = profile->name;
  board.power.automatic = profile->automatic;
  board.power.running = powering_.contains(board.uid);
}

asio::awaitable<Result<model::PowerResult>> Orchestrator::Impl::power_cycle(CallContext ctx,
                                                                            BoardUid uid,
                                                                            model::Reason why) {
  const auto self = shared_from_this();
  const model::Board* board = env_->registry->find(uid);
  if (board == nullptr)
    co_return with_reason(absl::NotFoundError("board " + uid.hex() + " is not known"),
                          "BOARD_NOT_FOUND", "List the boards: odtctl board list.");
  const std::string name = board->name;
  const lab::PowerProfile* profile = lab::profile_of(power_, *board);
  if (profile == nullptr)
    co_return with_reason(
        absl::FailedPreconditionError("no power profile of odtd's configuration fits board " +
                                      name),
        "NO_POWER_PROFILE",
        "Add a [[power]] for it to odtd.toml and restart odtd; odtctl board power-profiles lists "
        "them.");
  if (powering_.contains(uid))
    co_return with_reason(
        absl::FailedPreconditionError("a power command of board " + name + " is under way"),
        "POWER_BUSY", "Wait for its end: at most " + std::to_string(profile->timeout_s) + " s.");
  powering_.insert(uid);
  ++active_coroutines_;
  slot(uid).powered = env_->clock.steady_now();
  slot(uid).frozen = false;
  const auto argv = lab::command_of(*profile, *board);
  // When it began is durable before it begins: whatever happens to odtd, the pause holds.
  const std::int64_t now = env_->clock.now_us();
  std::vector<BoardUid> boards(1, uid);
  fleet::Registry::Edit note =
      [now](const std::vector<model::Board*>& all) -> Result<std::vector<store::Change>> {
    all.front()->power.last_us = now;
    return std::vector<store::Change>{};
  };
  CallContext own = ctx;
  own.request_id.clear();  // it is remembered with its outcome, by the API
  auto begun = co_await env_->registry->change(own, boards, std::move(note));
  if (!begun.ok()) {
    powering_.erase(uid);
    --active_coroutines_;
    co_return begun.status();
  }
  env_->say(3, absl::StrCat("board ", name, ": power cycle by profile '", profile->name, "'",
                            why.code.empty() ? "" : ": " + why.text));
  const std::uint32_t timeout_s = profile->timeout_s;
  std::function<void(Done<model::PowerResult>)> run = [this, argv, timeout_s](auto done) {
    power_runner_.run(argv, timeout_s, [done](model::PowerResult out) { done(std::move(out)); });
  };
  auto answer = co_await await_done<model::PowerResult>(env_->io, std::move(run));
  powering_.erase(uid);
  env_->registry->touch();
  model::PowerResult result = *answer;
  result.profile = profile->name;
  result.automatic = !why.code.empty();
  if (result.ok) result.reason = why;
  env_->say(result.ok ? 2 : 4, absl::StrCat("board ", name, ": power cycle ",
                                            result.ok ? "done" : "failed: " + result.reason.text));
  fleet::Registry::Edit log =
      [result, uid](const std::vector<model::Board*>&) -> Result<std::vector<store::Change>> {
    model::LabEvent event;
    event.board = uid;
    event.kind = model::LabKind::kPowerCycled;
    event.power = result;
    std::vector<store::Change> out;
    out.push_back(lab_event(std::move(event)));
    return out;
  };
  auto stored = co_await env_->registry->change(own, boards, std::move(log));
  if (!stored.ok()) env_->say(4, "store: " + stored.status().ToString());
  --active_coroutines_;
  ended_.notify();
  co_return result;
}

bool Orchestrator::Impl::wanted(const BoardSlot& board) const {
  return std::any_of(board.queue.begin(), board.queue.end(), [](const auto& task) {
    return task->run().desired == model::Desired::kRun && !model::is_final(task->run().state);
  });
}

// Why a wanted board needs its power switched; nothing: it does not, or not yet.
std::optional<model::Reason> Orchestrator::Impl::power_trouble(const model::Board& board,
                                                               BoardSlot& at,
                                                               const lab::PowerProfile& profile) {
  const auto steady = env_->clock.steady_now();
  const bool away = board.status == model::BoardStatus::kOffline;
  if (!away || !wanted(at))
    at.away_since.reset();
  else if (!at.away_since)
    at.away_since = steady;
  const auto limit = std::chrono::seconds(profile.away_s);
  if (at.frozen && away)
    return model::Reason{"BOARD_FROZEN", "it held its lease without progress and lost it", ""};
  if (at.away_since && steady - *at.away_since >= limit)
    return model::Reason{
        "BOARD_AWAY",
        absl::StrCat("a run wants it, and it has been away for ", profile.away_s, " s"), ""};
  return std::nullopt;
}

void Orchestrator::Impl::look_at_power(const model::Board& board, BoardSlot& at) {
  const lab::PowerProfile* profile = lab::profile_of(power_, board);
  if (profile == nullptr || !profile->automatic || powering_.contains(board.uid)) return;
  if (board.maintenance.on()) {
    at.away_since.reset();
    at.frozen = false;
    return;
  }
  auto why = power_trouble(board, at, *profile);
  if (!why) return;
  const auto pause = std::chrono::duration_cast<std::chrono::microseconds>(power_pause_).count();
  const std::int64_t since = env_->clock.now_us() - board.power.last_us;
  // A clock that went back says nothing; this odtd's own count does.
  const bool stored = board.power.last_us != 0 && since >= 0 && since < pause;
  const bool own = at.powered && env_->clock.steady_now() - *at.powered < power_pause_;
  if (stored || own) return;
  at.away_since.reset();
  at.powered = env_->clock.steady_now();
  CallContext ctx;
  ctx.command_id = new_uuid();
  asio::co_spawn(
      env_->io,
      [](std::shared_ptr<Impl> self, CallContext call, BoardUid uid,
         model::Reason reason) -> asio::awaitable<void> {
        auto done = co_await self->power_cycle(std::move(call), std::move(uid), std::move(reason));
        if (!done.ok()) self->env_->say(4, "power: " + text_of(done.status()));
      }(shared_from_this(), std::move(ctx), board.uid, std::move(*why)),
      fleet::Detached{});
}

}  // namespace odt::training
