#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "alerts/alert_control.h"
#include "base/asio.h"
#include "base/clock.h"
#include "campaign/campaign_control.h"
#include "jobs/job_control.h"
#include "store/memory_store.h"
#include "store/store_thread.h"
#include "training/fleet_control.h"

// Rooms below the API, as small as they can be.
namespace odt::test {

inline BoardUid uid_of(int number) {
  BoardUid uid;
  uid.bytes = {0, 1, 2, 3, 4, 5, 6, static_cast<std::uint8_t>(number)};
  return uid;
}

// Answers at once; what nobody wants to hear of is UNIMPLEMENTED.
class FakeFleet final : public training::FleetControl {
 public:
  explicit FakeFleet(store::ControlThread& control) : control_(control) {}

  std::shared_ptr<const training::FleetView> view() const override {
    const std::lock_guard lock(mutex_);
    return view_;
  }
  std::shared_ptr<const training::FleetView> view_now() override { return view(); }
  void set_view_listener(
      std::function<void(std::shared_ptr<const training::FleetView>)> fn) override {
    const std::lock_guard lock(mutex_);
    listener_ = std::move(fn);
  }
  void show_nothing_yet() {
    const std::lock_guard lock(mutex_);
    view_ = std::make_shared<training::FleetView>();
  }
  void show(training::FleetView view) {
    std::function<void(std::shared_ptr<const training::FleetView>)> tell;
    std::shared_ptr<const training::FleetView> shared;
    {
      const std::lock_guard lock(mutex_);
      shared = view_ = std::make_shared<training::FleetView>(std::move(view));
      tell = listener_;
    }
    if (tell) tell(shared);
  }

  void update_board(CallContext ctx, BoardUpdate update, Done<model::Board> done) override {
    control_.post([ctx, update, done](store::ControlStore& store) {
      auto board = store.board(update.uid);
      if (!board.ok()) return done(board.status());
      if (update.name) board->name = *update.name;
      board->meta.etag = update.etag;
      store::Batch batch;
      batch.actor = ctx.actor;
      batch.request_id = ctx.request_id;
      batch.changes.push_back(store::PutBoard{*board});
      if (const auto events = store.commit(std::move(batch)); !events.ok())
        return done(events.status());
      done(store.board(update.uid));
    });
  }
  void delete_board(CallContext, BoardUid, Done<bool> done) override { done(true); }
  // Never answers: the board is far away.
  void identify_board(CallContext, BoardUid, std::uint32_t, Done<bool> done) override {
    const std::lock_guard lock(mutex_);
    pending.push_back(std::move(done));
  }
  void reset_board(CallContext, BoardUid uid, Done<bool> done) override {
    done(with_reason(absl::UnavailableError("board " + uid.hex() + " is offline"), "BOARD_OFFLINE",
                     "plug it in"));
  }
  void lab(CallContext, BoardUid, LabAct, Done<std::vector<model::Board>> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void power_cycle(CallContext, BoardUid, Done<model::PowerResult> done) override {
    done(absl::UnimplementedError("not here"));
  }
  const std::vector<lab::PowerProfile>& power_profiles() const override { return power; }
  std::vector<lab::PowerProfile> power;
  void capture(CallContext, BoardUid uid, CaptureAct act, Done<model::CaptureState> done) override {
    captures.emplace_back(std::move(uid), std::move(act));
    done(model::CaptureState{});
  }
  void read_window(CallContext, BoardUid, std::uint32_t, Done<WindowValues> done) override {
    done(absl::NotFoundError("window is not in memory"));
  }
  std::vector<std::pair<BoardUid, CaptureAct>> captures;
  void board_nvm(CallContext, BoardUid uid, NvmAction action, Done<model::NvmInfo> done) override {
    if (action == NvmAction::kCommit)
      return done(with_reason(
          absl::FailedPreconditionError("board " + uid.hex() + " has no non-volatile memory"),
          "NO_NVM", "choose another"));
    model::NvmInfo info;
    info.size = 65536;
    info.sequence = action == NvmAction::kErase ? 0 : 7;
    done(info);
  }
  void adopt_port(CallContext, std::string, std::uint32_t, BoardUid,
                  Done<model::Port> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void release_port(CallContext, std::string, Done<model::Port> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void create_run(CallContext ctx, model::RunSpec spec, bool dry_run,
                  Done<model::Run> done) override {
    ++runs_created;
    model::Run run;
    run.spec = std::move(spec);
    if (dry_run) return done(run);
    run.id = new_uuid();
    store::Batch batch;
    batch.actor = ctx.actor;
    batch.request_id = ctx.request_id;
    batch.response = run.id.str();
    batch.changes.push_back(store::CreateRun{run, ctx.actor});
    control_.commit(std::move(batch), [run, done](const auto& committed) {
      if (!committed.ok()) return done(committed.status());
      done(run);
    });
  }
  void set_desired(CallContext, Uuid, model::Desired, Done<model::Run> done) override {
    done(absl::FailedPreconditionError("the run has ended"));
  }
  void estimate_run(CallContext, model::RunSpec, Done<model::RunEstimate> done) override {
    model::RunEstimate estimate;
    estimate.total_us = 5'000'000;
    done(estimate);
  }
  void retry_run(CallContext, Uuid, std::optional<std::int32_t>, Done<model::Run> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void reorder_run(CallContext, Uuid, std::optional<std::int32_t>, Uuid,
                   Done<model::Run> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void list_queues(BoardUid, Done<std::vector<BoardQueue>> done) override {
    done(std::vector<BoardQueue>{});
  }
  void stop_all(CallContext, bool, Done<StopReport> done) override { done(StopReport{}); }
  void restore_boards(CallContext, RestoreAsk ask, Done<std::vector<Restored>> done) override {
    std::vector<Restored> out;
    for (const auto& uid : ask.boards) {
      out.emplace_back();
      out.back().uid = uid;
    }
    done(std::move(out));
  }
  void evaluate_samples(CallContext, BoardUid, Hash, Uuid, std::string,
                        Done<model::Job> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void infer_values(CallContext, BoardUid, std::vector<float>,
                    Done<model::Inference> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void set_precision(CallContext, Uuid, model::Steer, Done<model::Run> done) override {
    done(absl::FailedPreconditionError("the run has ended"));
  }
  void pull_weights(CallContext, BoardUid, std::string, Done<model::Snapshot> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void restore_weights(CallContext, BoardUid, Hash, Done<model::Board> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void evaluate(CallContext, BoardUid, Hash, Uuid, std::string, Done<model::Job> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void infer(CallContext, BoardUid, Uuid, std::string, std::uint32_t, std::uint32_t,
             Done<model::Inference> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void cancel_evaluation(CallContext, Uuid id, Done<model::Job> done) override {
    ++evaluations_cancelled;
    model::Job job;
    job.id = id;
    job.kind = model::Job::Kind::kEvaluate;
    done(job);
  }

  std::atomic<int> runs_created{0}, evaluations_cancelled{0};
  std::vector<Done<bool>> pending;

 private:
  store::ControlThread& control_;
  mutable std::mutex mutex_;
  std::shared_ptr<const training::FleetView> view_ = std::make_shared<const training::FleetView>();
  std::function<void(std::shared_ptr<const training::FleetView>)> listener_;
};

class FakeJobs final : public jobs::JobControl {
 public:
  void add_model(CallContext, Hash, std::string, std::uint32_t, jobs::CompileChoice,
                 Done<model::Job> done) override {
    done(job());
  }
  void import_dataset(CallContext, jobs::ImportOptions, jobs::ImportBlobs,
                      Done<model::Job> done) override {
    done(job());
  }
  void train_on_pc(CallContext, jobs::TrainOnPcOptions, Done<model::Job> done) override {
    done(job());
  }
  void replay(CallContext, Uuid, Done<model::Job> done) override { done(job()); }
  void export_onnx(CallContext, Hash, bool, Done<model::Job> done) override { done(job()); }
  void cancel(CallContext, Uuid, Done<model::Job> done) override { done(job()); }
  void derive(CallContext, Uuid, Hash, Done<model::DerivedSamples> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void freeze(CallContext, Uuid, Hash, Done<model::DerivedSamples> done) override {
    done(absl::UnimplementedError("not here"));
  }

 private:
  static model::Job job() {
    model::Job job;
    job.id = new_uuid();
    return job;
  }
};

// An io context with the thread that runs it.
class IoThread {
 public:
  IoThread() : thread_([this] { io.run(); }) {}
  ~IoThread() { stop(); }
  void stop() {
    io.stop();
    if (thread_.joinable()) thread_.join();
  }
  asio::io_context io{1};

 private:
  asio::executor_work_guard<asio::io_context::executor_type> work_{io.get_executor()};
  std::thread thread_;
};

class TempDir {
 public:
  TempDir() {
    std::string name = std::filesystem::temp_directory_path().string() + "/odt_api_XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

// Campaigns are tried with the real engine (tests/system): here they are refused.
class FakeAlerts final : public alerts::AlertControl {
 public:
  void acknowledge(CallContext, Uuid, std::string, Done<model::Alert> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void silence(CallContext, model::AlertSilence, Done<Silenced> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void unsilence(CallContext, Uuid, Done<bool> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void overview(Done<Overview> done) override { done(absl::UnimplementedError("not here")); }
  void update_rule(CallContext, RuleUpdate, Done<model::AlertRule> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void test_webhook(CallContext, bool, Done<WebhookTest> done) override {
    done(absl::UnimplementedError("not here"));
  }
};

class FakeCampaigns final : public campaign::CampaignControl {
 public:
  void create(CallContext, model::CampaignSpec, bool, Done<campaign::Created> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void act(CallContext, Uuid, Act, Done<model::Campaign> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void stop_all(CallContext, bool, Done<std::vector<Uuid>> done) override {
    done(std::vector<Uuid>{});
  }
};

}  // namespace odt::test
