#pragma once

#include <map>
#include <mutex>

#include "data/quantize.h"
#include "lab/power_runner.h"
#include "training/orchestrator.h"
#include "training/run_task.h"

namespace odt::training {

class Orchestrator::Impl final : public fleet::FleetListener,
                                 public std::enable_shared_from_this<Impl> {
 public:
  Impl(std::shared_ptr<Env> env, fleet::FleetOptions fleet);
  void prune_by(const RetentionRules& rules) { retention_ = rules; }

  void power_by(std::vector<lab::PowerProfile> profiles, std::chrono::seconds pause) {
    power_ = std::move(profiles);
    power_pause_ = pause;
  }
  const std::vector<lab::PowerProfile>& power_profiles() const { return power_; }

  Status start();
  asio::awaitable<void> stop(std::function<void()> done);

  // FleetListener.
  void on_board_up(const BoardUid& uid, Session session) override;
  void on_board_down(const BoardUid& uid, const Status& why) override;
  void on_step(const BoardUid& uid, model::TelemetryFrame frame) override;
  void on_epoch(const BoardUid& uid, const model::EpochResult& epoch) override;
  void on_job(const BoardUid& uid, const model::JobChanged& job) override;
  void on_eval(const BoardUid&, const model::EvalReport&) override {}
  void on_nvm(const BoardUid& uid, const model::NvmCommitted& nvm) override;
  void on_view(std::vector<model::Board> boards, std::vector<model::Port> ports) override;

  // Runs an operation on the links thread and answers.
  template <typename T>
  void carry_out(asio::awaitable<Result<T>> operation, Done<T> done) {
    asio::co_spawn(env_->io, answer<T>(std::move(operation), std::move(done)), fleet::Detached{});
  }

  asio::awaitable<Result<model::Board>> update_board(CallContext ctx,
                                                     FleetControl::BoardUpdate update);
  asio::awaitable<Result<bool>> delete_board(CallContext ctx, BoardUid uid);
  asio::awaitable<Result<bool>> identify_board(BoardUid uid, std::uint32_t seconds);
  asio::awaitable<Result<bool>> reset_board(BoardUid uid);
  // capture_ops.cpp
  asio::awaitable<Result<model::CaptureState>> capture(BoardUid uid, FleetControl::CaptureAct act);
  asio::awaitable<Result<FleetControl::WindowValues>> read_window(BoardUid uid, std::uint32_t id);
  // nvm_ops.cpp
  asio::awaitable<Status> keep_before_erase(Session session);
  asio::awaitable<Result<model::NvmInfo>> board_nvm(CallContext ctx, BoardUid uid,
                                                    FleetControl::NvmAction action);

  // lab_ops.cpp
  asio::awaitable<Result<std::vector<model::Board>>> lab(CallContext ctx, BoardUid uid,
                                                         FleetControl::LabAct act);
  // why: of an automatic one; code empty: somebody asked for it.
  asio::awaitable<Result<model::PowerResult>> power_cycle(CallContext ctx, BoardUid uid,
                                                          model::Reason why);
  // FAILED_PRECONDITION BOARD_RESERVED, for somebody else.
  Status free_for(const CallContext& ctx, const BoardUid& uid) const;
  template <typename T>
  asio::awaitable<Result<T>> if_free_for(CallContext ctx, BoardUid uid,
                                         asio::awaitable<Result<T>> work) {
    const auto self = shared_from_this();
    const Status free = free_for(ctx, uid);
    if (!free.ok()) co_return free;
    auto done = co_await std::move(work);
    co_return done;
  }

  asio::awaitable<Result<model::Port>> adopt_port(CallContext ctx, std::string path,
                                                  std::uint32_t baud, BoardUid expect_uid);
  asio::awaitable<Result<model::Port>> release_port(CallContext ctx, std::string path);
  asio::awaitable<Result<model::Run>> create_run(CallContext ctx, model::RunSpec spec,
                                                 bool dry_run);
  // Errors: NOT_FOUND; FAILED_PRECONDITION (over) unless the request is a repeated one.
  asio::awaitable<Result<model::Run>> as_stored(Uuid run, bool repeated);
  asio::awaitable<Result<model::Run>> set_desired(CallContext ctx, Uuid run,
                                                  model::Desired desired);
  asio::awaitable<Result<model::Run>> set_precision(CallContext ctx, Uuid run, model::Steer steer);
  asio::awaitable<Result<model::Snapshot>> pull_weights(CallContext ctx, BoardUid uid,
                                                        std::string alias);
  // weights_ops.cpp
  asio::awaitable<Result<model::Board>> restore_weights(CallContext ctx, BoardUid uid,
                                                        Hash snapshot);
  asio::awaitable<Result<std::vector<FleetControl::Restored>>> restore_boards(
      CallContext ctx, FleetControl::RestoreAsk ask);
  // queue_ops.cpp
  asio::awaitable<Result<model::Run>> retry_run(CallContext ctx, Uuid run,
                                                std::optional<std::int32_t> priority);
  asio::awaitable<Result<model::Run>> reorder_run(CallContext ctx, Uuid run,
                                                  std::optional<std::int32_t> priority,
                                                  Uuid before);
  asio::awaitable<Result<std::vector<FleetControl::BoardQueue>>> list_queues(BoardUid uid);
  asio::awaitable<Result<FleetControl::StopReport>> stop_all(CallContext ctx, bool cancel);
  asio::awaitable<Result<model::RunEstimate>> estimate_run(model::RunSpec spec);
  asio::awaitable<Result<model::Job>> evaluate(CallContext ctx, BoardUid uid, Hash snapshot,
                                               Uuid dataset, std::string split, bool each);
  asio::awaitable<Result<model::Inference>> infer_values(CallContext ctx, BoardUid uid,
                                                         std::vector<float> values);
  asio::awaitable<Result<model::Inference>> infer(BoardUid uid, Uuid dataset, std::string split,
                                                  std::uint32_t first, std::uint32_t count);
  asio::awaitable<Result<model::Job>> cancel_evaluation(Uuid job);

  std::shared_ptr<const FleetView> view() const;
  std::shared_ptr<const FleetView> view_now();
  void set_view_listener(std::function<void(std::shared_ptr<const FleetView>)> fn);
  Env& env() { return *env_; }

 private:
  template <typename T>
  static asio::awaitable<void> answer(asio::awaitable<Result<T>> operation, Done<T> done) {
    auto result = co_await std::move(operation);
    done(std::move(result));
  }

  BoardSlot& slot(const BoardUid& uid);
  void adopt_runs(std::vector<model::Run> runs);  // those that a former odtd left behind
  void enqueue(model::Run run);
  void pump(BoardSlot& slot);  // starts the next run where the board is free
  asio::awaitable<void> run_to_end(BoardSlot& slot, std::shared_ptr<RunTask> task);
  asio::awaitable<void> tend(BoardSlot& slot, Session session);  // an idle board came up
  RunTask* task_of_job(const BoardUid& uid);
  std::shared_ptr<RunTask> find_task(const Uuid& run);

  // Errors: NOT_FOUND, UNAVAILABLE (away).
  Result<Session> require_session(const BoardUid& uid) const;
  // FAILED_PRECONDITION while a run is active or queued, or another operation is under way.
  Status require_free(const BoardUid& uid);
  // Key of what a repeated request made the first time; empty: new.
  asio::awaitable<Result<std::string>> seen(CallContext ctx);
  asio::awaitable<Result<model::CaptureState>> start_capture(BoardUid uid, Session session,
                                                             FleetControl::StartCapture start);
  asio::awaitable<Result<model::CaptureState>> list_windows(Session session, std::uint32_t from_id);
  asio::awaitable<Result<model::CaptureState>> feed_sensor(Session session,
                                                           FleetControl::FeedSensor feed);
  // With the whole model, or its trainable part alone where the board has no room for it.
  asio::awaitable<Status> put_weights(Session session, Hash snapshot, Hash model_hash);
  asio::awaitable<Status> put_image_and_weights(Session session, Hash image, Hash snapshot);
  struct RestorePlan {
    Hash snapshot, model_hash;
    bool commit = false, dry_run = false;
  };
  asio::awaitable<FleetControl::Restored> restore_one(CallContext ctx, BoardUid uid,
                                                      RestorePlan plan);
  asio::awaitable<Status> note_restored(CallContext ctx, std::vector<BoardUid> boards,
                                        Hash snapshot);
  asio::awaitable<Result<model::InferReport>> infer_one(Session session,
                                                        std::shared_ptr<const std::string> input);
  // A blob of the wrong samples and what was said of them; zero: none.
  asio::awaitable<Result<Hash>> keep_wrong(Session session,
                                           std::shared_ptr<const data::SampleSet> set,
                                           std::vector<std::uint32_t> wrong, StopFn stop);

  // A spec that is checked becomes a run. retry_of zero: none.
  asio::awaitable<Result<model::Run>> make_run(CallContext ctx, model::RunSpec spec, bool dry_run,
                                               Uuid retry_of);
  void put_in_line(BoardSlot& board, std::shared_ptr<RunTask> task);
  // Once an hour what retention says goes to the trash.
  asio::awaitable<void> prune_loop(RetentionRules rules);
  // lab_ops.cpp: ends reservations, begins runs that waited for that, switches power.
  asio::awaitable<void> lab_loop();
  asio::awaitable<void> end_reservation(BoardUid uid);
  asio::awaitable<void> tell_held(std::shared_ptr<RunTask> task, model::Reason why);
  void look_at_power(const model::Board& board, BoardSlot& slot);
  bool wanted(const BoardSlot& board) const;
  std::optional<model::Reason> power_trouble(const model::Board& board, BoardSlot& slot,
                                             const lab::PowerProfile& profile);
  void add_power(model::Board& board) const;
  // Puts out holders of boards that show no progress.
  asio::awaitable<void> watch_leases();
  asio::awaitable<void> put_out(BoardSlot& board);
  struct Told;
  asio::awaitable<void> stop_task(CallContext ctx, std::shared_ptr<RunTask> task, bool cancel,
                                  std::shared_ptr<Told> told, std::size_t item);
  asio::awaitable<void> stop_idle(Session session, std::shared_ptr<Told> told);
  struct EvalTask {
    model::Job job;
    BoardUid uid;
    Hash snapshot, model_hash;
    Uuid dataset;
    std::string split;
    std::string actor;
    bool samples = false;  // also which are wrong
  };
  // A split as the samples of a model.
  struct ModelSamples {
    model::Outputs outputs;
    data::SampleSet set;
    bool dfp16 = false;
  };
  // frozen: for a board that holds the trainable part alone.
  asio::awaitable<Result<ModelSamples>> samples_of(Uuid dataset, Hash model_hash, std::string split,
                                                   bool frozen);
  asio::awaitable<void> evaluate_job(EvalTask task);
  asio::awaitable<Result<model::Evaluation>> evaluate_board(EvalTask task);
  asio::awaitable<Status> put_job(model::Job job, std::string actor,
                                  std::vector<store::Change> extra = {});
  Status fail_stale_jobs();
  bool evaluation_cancelled(const Uuid& job) const;

  std::shared_ptr<Env> env_;
  fleet::FleetOptions fleet_options_;
  std::map<BoardUid, std::unique_ptr<BoardSlot>> slots_;
  std::size_t active_coroutines_ = 0;
  fleet::Signal ended_, lease_watch_;
  std::optional<RetentionRules> retention_;  // empty: only on request
  std::map<Uuid, bool> evaluations_;         // under way; true: to be cancelled
  std::vector<lab::PowerProfile> power_;
  std::chrono::seconds power_pause_{600};
  std::set<BoardUid> powering_;  // a command is under way
  fleet::Signal lab_tick_;
  lab::PowerRunner power_runner_;

  mutable std::mutex view_mutex_;
  std::shared_ptr<const FleetView> view_;
  std::function<void(std::shared_ptr<const FleetView>)> view_listener_;
};

}  // namespace odt::training
