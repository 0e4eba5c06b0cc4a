#pragma once

#include <deque>
#include <map>
#include <optional>

#include "training/board_ops.h"
#include "training/board_slot.h"
#include "training/gavg.h"
#include "training/keepsake.h"
#include "training/policy.h"
#include "training/ram_fit.h"

namespace odt::training {

// One run from QUEUED to its end: a coroutine on the links thread. It survives the loss of the
// session (WAITING_BOARD) and of the daemon: everything it needs is in the store and on the board.
class RunTask final : public std::enable_shared_from_this<RunTask> {
 public:
  RunTask(std::shared_ptr<Env> env, BoardSlot& slot, model::Run run);

  const model::Run& run() const { return run_; }
  const Uuid& id() const { return run_.id; }

  // Runs until the run is final or odtd stops. Once.
  asio::awaitable<void> main();
  // Commits desired; the run follows. Also ends a QUEUED run that is to be cancelled.
  // Errors: FAILED_PRECONDITION (final).
  asio::awaitable<Result<model::Run>> set_desired(CallContext ctx, model::Desired desired,
                                                  bool active);

  // Priority and rank of a run that waits. Errors: FAILED_PRECONDITION (it waits no more).
  asio::awaitable<Result<model::Run>> set_place(CallContext ctx, std::int32_t priority,
                                                std::int64_t rank);
  // Why it waits in the queue; code empty: it does not. Nothing where it has begun.
  asio::awaitable<Status> set_held(model::Reason why);
  model::Reason held_by;  // told last

  // Its lease of the board has expired: it ends FAILED and does nothing to a board any more.
  asio::awaitable<void> abandon();

  // A layer's precision from a step on; step 0: from the next epoch. Errors: UNAVAILABLE (board
  // away), FAILED_PRECONDITION (not running, fixed precision, step done), INVALID_ARGUMENT naming
  // limits, RESOURCE_EXHAUSTED.
  asio::awaitable<Result<model::Run>> set_precision(CallContext ctx, model::Steer steer);

  // News of the board.
  void on_epoch(model::EpochResult epoch);
  void on_job(const model::JobChanged& job);
  void on_step(model::TelemetryFrame frame);
  void on_diverged(const Status& why);  // a step differs from its record
  void on_nvm(const model::NvmCommitted& commit);

 private:
  struct To {
    model::RunState state;
    std::string cause;
    std::string actor = "odtd";
    Uuid command_id;
  };
  using Edit = std::function<void(model::Run&)>;
  struct Save {
    Edit edit;
    std::vector<store::Change> extra;  // before the run's own change
    std::optional<To> to;
    std::string actor = "odtd";
    Uuid command_id;
    std::string request_id;
    bool keep_eta = false;  // edit has set it
  };
  // The one way to change the run: serialised, committed, then visible.
  asio::awaitable<Status> save(Save what);
  asio::awaitable<Status> go(model::RunState state, std::string cause);  // no-op where it is so
  asio::awaitable<Status> warn(std::string code, std::string text, std::string remedy);
  asio::awaitable<void> end(model::RunState state, Status why);

  // run_task.cpp: the loop over sessions.
  asio::awaitable<void> wait_board();
  asio::awaitable<Status> drive(Session session);
  asio::awaitable<void> cancel();
  // Until the run is final: a session that holds a cancelled run up is closed.
  asio::awaitable<void> force_cancel();
  asio::awaitable<Status> stop_board();  // where it holds this run
  asio::awaitable<void> idle(std::chrono::milliseconds time);
  // OK, or why the current session's work must stop: CANCELLED (look at desired, stopping),
  // UNAVAILABLE (session), DATA_LOSS (diverged).
  Status interrupted(const Session& session) const;
  StopFn stop_fn(const Session& session);
  asio::awaitable<Status> hold_paused(Session session, std::string cause);

  // run_prepare.cpp: from nothing on the board to a started run.
  asio::awaitable<Status> prepare(Session session, model::DeviceState state);
  // again: what this attempt tried first has not begun.
  asio::awaitable<Status> begin_attempt(bool again = false);
  asio::awaitable<Status> load_library();
  // Loads the sets as the placement wants them: samples, or frozen outputs.
  asio::awaitable<Status> derive_samples();
  asio::awaitable<Status> load_sets();
  // What the board holds: settled with the placement, planned before.
  Form form() const { return run_.effective.k.has_value() ? form_of(run_.effective) : form_; }
  Hash image_hash() const {
    return form() == Form::kTail ? model_->tail.image : run_.spec.model_hash;
  }
  asio::awaitable<Status> put_model(Session session);  // image and start snapshot, nothing else
  // Model on the board and accuracy before training, in the first form that the board has room for.
  asio::awaitable<Status> measure_first(Session session);
  asio::awaitable<Status> try_placements(Session session);
  asio::awaitable<Status> measure_start(Session session);
  asio::awaitable<Status> settle_outputs();
  asio::awaitable<Status> push_start_snapshot(Session session);
  asio::awaitable<Status> start_with(Session session, Placement place);
  asio::awaitable<Status> push_resident(Session session);
  asio::awaitable<Status> push_checkpoint(Session session);
  asio::awaitable<Status> send_start(Session session);
  asio::awaitable<Status> settle_placement(Placement place);
  // Whether rule 1.9 needs the accuracy on the training samples, too.
  bool judges_by_training() const;
  struct Measured {
    model::Accuracy accuracy;
    model::Loss loss;  // where there are no classes
  };
  Measured measured(const model::EvalReport& report) const;
  bool has_classes() const { return model_->outputs.has_classes(); }
  Drift drift() const;
  SampleCounts counts() const;
  Result<std::vector<Placement>> choose_placements(Drift drift) const;
  model::DeviceRunSpec device_spec() const;

  // run_captured.cpp: samples that the board captured and keeps.
  bool captured() const { return run_.spec.captured; }
  asio::awaitable<Status> take_captured(Session session);
  // The image's weights on the board again, without the image, which would cost the samples.
  asio::awaitable<Status> fresh_weights(Session session);
  std::uint32_t train_count() const { return captured() ? run_.train_samples : train_.count(); }
  std::uint32_t heldout_count() const {
    return captured() ? run_.captured_heldout : heldout_.count();
  }
  asio::awaitable<Result<EvalOutcome>> evaluate_set(Session session, model::SampleRole role);

  // run_nvm.cpp: the board's non-volatile memory.
  struct NvmResume {
    std::uint32_t step = 0, epoch = 0;
    Hash state;
    bool restored = false;  // the board holds it; else it comes back behind image and samples
  };
  asio::awaitable<void> note_commit(model::NvmCommitted commit);
  bool knows(std::uint32_t step, const Hash& state) const;
  bool ended_with(std::uint32_t step, const Hash& state) const;
  bool has_epochs(std::uint32_t end) const;
  asio::awaitable<std::optional<NvmResume>> nvm_offer(Session session, model::DeviceState state);
  asio::awaitable<Status> bring_back(Session session, model::DeviceState state);
  asio::awaitable<Status> find_best_of(Session session);
  asio::awaitable<Result<bool>> try_nvm(Session session, model::DeviceState state);
  asio::awaitable<Result<bool>> resume_from_nvm(Session session, model::DeviceState state);
  // The largest loss that the guard tells from others (rule 1.10).
  static constexpr std::int64_t kMaxGuardLoss = 0xFFFFFFFE;

  // run_train.cpp: a started run.
  bool consistent(const model::DeviceState& state) const;
  asio::awaitable<Status> follow(Session session, model::DeviceState state);
  asio::awaitable<Status> follow_resident(Session session, model::DeviceState state);
  // best_on_host: takes the best from a board that waits to be rid of it, and brings it to one that
  // wants it back.
  asio::awaitable<Status> settle_best(Session session);
  asio::awaitable<Status> fetch_epochs(Session session, std::uint32_t end);
  asio::awaitable<Status> drain_epochs(Session session);
  asio::awaitable<void> add_gavg(model::EpochResult& epoch);
  asio::awaitable<Status> take_epoch(Session session, model::EpochResult epoch);
  asio::awaitable<Status> checkpoint(Session session, model::EpochResult epoch);
  asio::awaitable<Status> control(Session session, session::BoardSession::Action action);
  asio::awaitable<Status> pause_board(Session session);
  asio::awaitable<Status> load_epochs();
  Status compare_epoch(const model::EpochResult& epoch, bool* known) const;
  Status check_epoch(const model::EpochResult& epoch) const;
  // As boards without classes send it -> losses in their own place.
  void losses_apart(model::EpochResult& epoch) const;

  // run_records.cpp: what is missing between step records.
  void tell_gap(std::uint32_t step);
  asio::awaitable<void> load_records();

  // run_time.cpp: times, and the guard's verdict.
  asio::awaitable<Status> send_measured(Session session, model::Resource resource,
                                        std::uint32_t index,
                                        std::shared_ptr<const std::string> content);
  asio::awaitable<Result<EvalOutcome>> evaluate_measured(Session session, data::SampleSet set);
  asio::awaitable<void> expect_times();
  void begin_clock();
  std::uint32_t steps_of_epoch() const;
  void end_epoch_clock(model::Run& next, std::uint32_t step_us);
  std::int64_t eta_of(const model::Run& next, std::uint32_t steps_done) const;
  void note_step_time(std::uint32_t step);
  void judge(model::Run& next) const;
  // Weights that nobody has kept, before the run's own take their place.
  asio::awaitable<Status> keep_before_start(Session session, model::DeviceState state);

  // run_streamed.cpp: batches over the link.
  asio::awaitable<Status> follow_streamed(Session session, model::DeviceState state);
  void keep_streamed(std::uint32_t step, model::TelemetryFrame frame);
  asio::awaitable<Status> last_streamed(Session session, std::uint32_t steps);
  asio::awaitable<Status> streamed_step(Session session, std::uint32_t step);
  asio::awaitable<Status> streamed_end_epoch(Session session, std::uint32_t epoch);
  asio::awaitable<Status> ensure_start_weights(Session session);

  // run_steer.cpp
  std::vector<model::Steer> steering_left() const;
  Status check_steer(const model::Steer& steer) const;
  asio::awaitable<Status> forget_steer(model::Steer steer);
  asio::awaitable<Status> settle_steering(Session session);

  // run_finish.cpp: the last epoch is recorded.
  asio::awaitable<Status> finish(Session session);
  asio::awaitable<Status> keep_weights(Session session, model::DeviceState state);
  asio::awaitable<Status> after_training(Session session, bool holds);

  void add_telemetry(model::TelemetryFrame frame);
  void on_telemetry_lost(const Status& why);
  std::string shown() const { return "run " + run_.id.hex().substr(0, 16); }

  std::shared_ptr<Env> env_;
  BoardSlot& slot_;
  model::Run run_;
  fleet::AsyncMutex saving_;

  std::optional<model::Model> model_;
  std::optional<Exponents> exponents_;
  std::optional<model::Dataset> dataset_;
  std::optional<model::DerivedSamples> derived_;
  data::SampleSet train_, heldout_, test_;
  model::Accuracy train_start_;  // before training, where judges_by_training()
  bool train_loaded_ = false, heldout_loaded_ = false, test_loaded_ = false;
  bool sets_frozen_ = false;  // those loaded
  Form form_ = Form::kRaw;    // planned
  Hash image_loaded_;         // by this attempt; zero: none

  std::map<std::pair<std::uint32_t, std::uint32_t>, model::EpochResult> known_epochs_;
  // Step records of a run that the board holds: where the next one belongs.
  bool records_known_ = false;
  std::chrono::steady_clock::time_point last_record_;
  std::uint32_t record_attempt_ = 0, next_record_ = 0, early_record_ = UINT32_MAX;
  bool epochs_loaded_ = false;
  std::deque<model::EpochResult> inbox_;
  std::optional<model::JobChanged> job_news_;
  std::vector<model::Steer> confirmed_;  // the board has said yes
  std::optional<Status> diverged_;
  std::optional<NvmResume> nvm_;  // this attempt goes on from there
  bool commit_failed_ = false;    // said once
  bool start_sent_ = false;       // StartRun of this attempt may have reached the board
  bool telemetry_lost_ = false;
  store::TelemetryThread::OnError on_lost_;  // a step record was refused
  bool cancel_forced_ = false;
  bool reloaded_ = false;        // from the store after a restart of odtd
  std::uint32_t fruitless_ = 0;  // attempts since the last epoch
  std::vector<std::uint32_t> order_;
  std::int64_t order_epoch_ = -1;
  bool abandoned_ = false;

  // Times, in host time where nothing else is said.
  model::RunTiming timing_;  // measured, goes into the run with the next change
  double expected_step_us_ = 0, seen_step_us_ = 0;
  std::chrono::steady_clock::time_point epoch_begin_, first_step_time_, last_eta_;
  bool epoch_whole_ = false, eta_shown_ = false;
  std::uint32_t first_step_ = UINT32_MAX;
};

}  // namespace odt::training
