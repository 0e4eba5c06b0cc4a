#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/asio.h"
#include "base/clock.h"
#include "fleet/fleet_options.h"
#include "jobs/job_control.h"
#include "store/store_thread.h"
#include "training/fleet_control.h"
#include "training/retention.h"

namespace odt::training {

struct OrchestratorOptions {
  fleet::FleetOptions fleet;
  // WAITING_BOARD gives up after this where the run does not say otherwise.
  std::chrono::seconds resume_deadline{24 * 3600};
  std::chrono::milliseconds lease_time{180'000};  // without progress: the holder loses the board
  RetentionRules retention;
  bool prune = false;                              // by itself, once an hour
  std::function<std::uint64_t()> disk_free;        // bytes where the data are; empty: not known
  std::vector<lab::PowerProfile> power;            // lab::check_profiles() has passed them
  std::chrono::seconds power_pause{600};           // between two automatic power cycles of a board
  std::chrono::milliseconds cancel_grace{10'000};  // then a cancelled run's session is closed
  // One line per thing worth a log (level as spdlog); any thread. Empty: no log.
  std::function<void(int level, const std::string& text)> log;
};

// Owns the fleet and the runs. Everything happens on the links thread (the one thread that runs
// `links`); the stores, blobs and jobs outlive this object.
//
// Repeated mutations (CallContext::request_id): the key of what was made is remembered in the
// store beside (actor, request_id) in the same transaction, and a repeated call answers with that
// resource.
class Orchestrator final : public FleetControl {
 public:
  Orchestrator(asio::io_context& links, const Clock& clock, store::ControlThread& control,
               store::TelemetryThread& telemetry, store::BlobStore& blobs, jobs::JobControl& jobs,
               OrchestratorOptions options);
  ~Orchestrator() override;  // after stop() has answered, or after the links thread has ended

  // Loads boards, ports and active runs, opens listeners and dials. Blocks on the store: call it
  // from the main thread, before or while the links thread runs. Errors: those of the store;
  // ALREADY_EXISTS where a listening port is in use.
  Status start();
  // Says BYE to every board, leaves the runs as they are. `done` on the links thread.
  void stop(std::function<void()> done);

  std::shared_ptr<const FleetView> view() const override;
  std::shared_ptr<const FleetView> view_now() override;
  void set_view_listener(std::function<void(std::shared_ptr<const FleetView>)> fn) override;
  void update_board(CallContext ctx, BoardUpdate update, Done<model::Board> done) override;
  void delete_board(CallContext ctx, BoardUid uid, Done<bool> done) override;
  void board_restored(model::Board board) override;
  void identify_board(CallContext ctx, BoardUid uid, std::uint32_t seconds,
                      Done<bool> done) override;
  void capture(CallContext ctx, BoardUid uid, CaptureAct act,
               Done<model::CaptureState> done) override;
  void read_window(CallContext ctx, BoardUid uid, std::uint32_t id,
                   Done<WindowValues> done) override;
  void reset_board(CallContext ctx, BoardUid uid, Done<bool> done) override;
  void lab(CallContext ctx, BoardUid uid, LabAct act,
           Done<std::vector<model::Board>> done) override;
  void power_cycle(CallContext ctx, BoardUid uid, Done<model::PowerResult> done) override;
  const std::vector<lab::PowerProfile>& power_profiles() const override;
  void board_nvm(CallContext ctx, BoardUid uid, NvmAction action,
                 Done<model::NvmInfo> done) override;
  void adopt_port(CallContext ctx, std::string path, std::uint32_t baud, BoardUid expect_uid,
                  Done<model::Port> done) override;
  void release_port(CallContext ctx, std::string path, Done<model::Port> done) override;
  void create_run(CallContext ctx, model::RunSpec spec, bool dry_run,
                  Done<model::Run> done) override;
  void set_desired(CallContext ctx, Uuid run, model::Desired desired,
                   Done<model::Run> done) override;
  void estimate_run(CallContext ctx, model::RunSpec spec, Done<model::RunEstimate> done) override;
  void retry_run(CallContext ctx, Uuid run, std::optional<std::int32_t> priority,
                 Done<model::Run> done) override;
  void reorder_run(CallContext ctx, Uuid run, std::optional<std::int32_t> priority, Uuid before,
                   Done<model::Run> done) override;
  void list_queues(BoardUid uid, Done<std::vector<BoardQueue>> done) override;
  void stop_all(CallContext ctx, bool cancel, Done<StopReport> done) override;
  void restore_boards(CallContext ctx, RestoreAsk ask, Done<std::vector<Restored>> done) override;
  void evaluate_samples(CallContext ctx, BoardUid uid, Hash snapshot, Uuid dataset,
                        std::string split, Done<model::Job> done) override;
  void infer_values(CallContext ctx, BoardUid uid, std::vector<float> values,
                    Done<model::Inference> done) override;
  void set_precision(CallContext ctx, Uuid run, model::Steer steer, Done<model::Run> done) override;
  void pull_weights(CallContext ctx, BoardUid uid, std::string alias,
                    Done<model::Snapshot> done) override;
  void restore_weights(CallContext ctx, BoardUid uid, Hash snapshot,
                       Done<model::Board> done) override;
  void evaluate(CallContext ctx, BoardUid uid, Hash snapshot, Uuid dataset, std::string split,
                Done<model::Job> done) override;
  void infer(CallContext ctx, BoardUid uid, Uuid dataset, std::string split, std::uint32_t first,
             std::uint32_t count, Done<model::Inference> done) override;
  void cancel_evaluation(CallContext ctx, Uuid job, Done<model::Job> done) override;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace odt::training
