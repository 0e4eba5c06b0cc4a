#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "campaign/campaign_control.h"
#include "fleet/async.h"
#include "store/store_thread.h"
#include "training/fleet_control.h"

namespace odt::campaign {

// What the coroutines of this room share. Links thread only.
struct Env {
  asio::io_context& io;
  const Clock& clock;
  store::ControlThread& control;
  store::TelemetryThread& telemetry;
  store::BlobStore& blobs;
  training::FleetControl& fleet;
  std::function<void(int level, const std::string& text)> log;
  bool stopping = false;

  void say(int level, const std::string& text) const {
    if (log) log(level, text);
  }
};

// Awaits an operation that answers by a Done, called on any thread.
template <typename T>
asio::awaitable<Result<T>> ask(asio::io_context& io, std::function<void(Done<T>)> start) {
  struct State {
    explicit State(asio::io_context& context) : signal(context) {}
    std::optional<Result<T>> result;
    fleet::Signal signal;
  };
  const auto state = std::make_shared<State>(io);
  start([state, &io](Result<T> result) {
    asio::post(io, [state, shared = std::make_shared<Result<T>>(std::move(result))] {
      state->result = std::move(*shared);
      state->signal.notify();
    });
  });
  while (!state->result) co_await state->signal.wait();
  co_return std::move(*state->result);
}

// The run that a unit is.
model::RunSpec run_spec(const model::Campaign& campaign, const model::CampaignUnit& unit);
std::string label_of(const model::Campaign& campaign);  // for names of runs and aliases
CallContext context_of(const model::Campaign& campaign);

struct Command {
  CallContext ctx;
  CampaignControl::Act act;
  Done<model::Campaign> done;
};

// Everything that is stored of a campaign.
struct Work {
  model::Campaign c;
  std::vector<model::CampaignUnit> units;  // by index
  std::vector<model::CampaignRound> rounds;
};

// Drives one campaign. It is the only writer of what is stored of it, and everything that it needs
// to go on after the daemon was killed is stored before it is done: a unit's run id before the run
// is created, a rollout's old weights before new ones are sent. Links thread.
class Driver : public std::enable_shared_from_this<Driver> {
 public:
  Driver(Env& env, Work work);

  asio::awaitable<void> run();  // until the campaign is over or the daemon stops
  void wake();
  void submit(Command command);
  // Its runs are about to pause with everything else: they do so for the campaign, which resumes
  // them.
  void hold_running();
  bool over() const { return over_; }
  const Uuid& id() const { return w_.c.id; }

 private:
  using Unit = model::CampaignUnit;

  // driver.cpp
  asio::awaitable<Result<bool>> step();
  asio::awaitable<void> carry_out(const Command& command);
  Result<std::string> apply(CampaignControl::Act act);  // the cause of the transition
  // GCC 12 destroys aggregate temporaries of a co_await expression twice: such arguments are
  // references to named values.
  asio::awaitable<Status> save();
  asio::awaitable<Status> save(std::string cause, const CallContext& ctx, bool transition);
  asio::awaitable<Status> move_to(model::CampaignState state, std::string cause);
  void touch(const Unit& unit) { dirty_.insert(unit.index); }
  void end_unit(Unit& unit, model::UnitState state, model::Reason reason = {});
  asio::awaitable<Status> observe();
  asio::awaitable<Status> observe_run(Unit& unit, const Result<model::Run>& run);
  asio::awaitable<void> create_run(Unit& unit);
  asio::awaitable<Status> steer(Unit& unit, const model::Run& run);
  void settle(Unit& unit, const model::Run& run);
  bool start_units();
  void start(Unit& unit, const BoardUid& board);
  bool give_out_trials(std::uint32_t slots);
  bool skip_pending(const char* code, const std::string& text);
  bool board_online(const BoardUid& uid) const;
  bool board_held(const BoardUid& uid) const;
  bool round_over() const;
  asio::awaitable<Status> cancelled();

  // driver_rounds.cpp
  asio::awaitable<Status> advance();  // the round is over
  asio::awaitable<Status> finish(model::CampaignState state, const model::Reason& reason);
  asio::awaitable<Status> end_sweep_rung();
  asio::awaitable<Status> end_twin();
  asio::awaitable<Status> end_federated_round();
  asio::awaitable<Status> name_result(Hash hash, std::string alias);
  asio::awaitable<Status> begin_round();
  bool late(std::int64_t now_us);

  // driver_rollout.cpp
  void tend_rollout();
  void launch(Unit& unit, std::function<asio::awaitable<Status>(std::uint32_t)> work);
  asio::awaitable<Status> deploy_stage(std::uint32_t index);
  asio::awaitable<Status> pull_previous(std::uint32_t index);
  asio::awaitable<Status> restore(std::uint32_t index, Hash snapshot);
  asio::awaitable<Status> commit(std::uint32_t index);
  asio::awaitable<Status> evaluate(std::uint32_t index, Hash snapshot, bool before);
  void stage_done(Unit& unit, Status status);
  asio::awaitable<Status> end_phase();
  asio::awaitable<Status> roll_back();

  Env& env_;
  Work w_;
  fleet::Signal signal_;
  bool woken_ = false, over_ = false;
  std::deque<Command> commands_;
  std::set<std::uint32_t> dirty_;              // units to write
  std::optional<model::CampaignRound> round_;  // to write
  std::vector<store::Change> extra_;           // to write with them
  std::set<std::uint32_t> paused_apart_;       // units whose run somebody has paused by itself
  std::set<std::uint32_t> busy_;               // units with an operation of a rollout under way
  // Since when a unit's operation has failed, and when it may be tried again.
  struct Trouble {
    std::int64_t since_us = 0, again_us = 0;
  };
  std::map<std::uint32_t, Trouble> trouble_;
};

}  // namespace odt::campaign
