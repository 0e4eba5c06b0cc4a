#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/call.h"
#include "lab/power.h"
#include "lab/rules.h"
#include "model/device.h"
#include "model/event.h"

// What the API may ask of the fleet. Implemented by training::Orchestrator on the links thread;
// every method here may be called from any thread, and `done` is called on the links thread. A
// mutation has happened (is committed) when its `done` says OK.
namespace odt::training {

// Live state, replaced as a whole whenever something changes, at most 5 times a second.
struct FleetView {
  std::vector<model::Board> boards;  // with live status, link, last_seen
  std::vector<model::Port> ports;
  std::int64_t time_us = 0;
};

class FleetControl {
 public:
  virtual ~FleetControl() = default;

  // Never null; without boards before the first view.
  virtual std::shared_ptr<const FleetView> view() const = 0;
  // One of this moment: a board that has just come is in it. On the links thread only.
  virtual std::shared_ptr<const FleetView> view_now() = 0;
  // Called on the links thread after each new view (for CONFLATED fleet topics). One listener.
  virtual void set_view_listener(std::function<void(std::shared_ptr<const FleetView>)> fn) = 0;

  struct BoardUpdate {
    BoardUid uid;
    std::int64_t etag = 0;
    std::optional<std::string> name, place;
    std::map<std::string, std::string> set_labels;
    std::vector<std::string> remove_labels;
  };
  virtual void update_board(CallContext ctx, BoardUpdate update, Done<model::Board> done) = 0;
  virtual void delete_board(CallContext ctx, BoardUid uid, Done<bool> done) = 0;
  // One that came back out of the trash.
  virtual void board_restored(model::Board) {}
  virtual void identify_board(CallContext ctx, BoardUid uid, std::uint32_t seconds,
                              Done<bool> done) = 0;
  virtual void reset_board(CallContext ctx, BoardUid uid, Done<bool> done) = 0;
  // Lab life (lab/rules.h); done: the board, or the old one and the new one. Errors: NOT_FOUND,
  // those of the rules, of Replace FAILED_PRECONDITION BOARD_HAS_RUN (the old one).
  using Reserve = lab::ReserveAsk;
  struct Extend {
    std::uint32_t duration_s = 0;
  };
  struct Release {
    bool take_over = false;
  };
  struct Maintain {
    bool on = false;
    std::string note;
  };
  struct ReplaceBy {
    BoardUid by;
  };
  using LabAct = std::variant<Reserve, Extend, Release, Maintain, ReplaceBy>;
  virtual void lab(CallContext ctx, BoardUid uid, LabAct act,
                   Done<std::vector<model::Board>> done) = 0;
  // The command of the board's profile, to its end; one that fails is an answer. Errors: NOT_FOUND,
  // FAILED_PRECONDITION (NO_POWER_PROFILE, POWER_BUSY, BOARD_RESERVED).
  virtual void power_cycle(CallContext ctx, BoardUid uid, Done<model::PowerResult> done) = 0;
  virtual const std::vector<lab::PowerProfile>& power_profiles() const = 0;
  // The board's non-volatile memory; done: what it holds then. Commit: what the board holds now,
  // also of a run under way. Errors: NOT_FOUND, UNAVAILABLE (away), FAILED_PRECONDITION (it has
  // none, nothing to commit), RESOURCE_EXHAUSTED (bytes wanted, bytes of a slot), DATA_LOSS.
  enum class NvmAction : std::uint8_t { kStatus, kCommit, kErase };
  virtual void board_nvm(CallContext ctx, BoardUid uid, NvmAction action,
                         Done<model::NvmInfo> done) = 0;
  virtual void adopt_port(CallContext ctx, std::string path, std::uint32_t baud,
                          BoardUid expect_uid, Done<model::Port> done) = 0;
  virtual void release_port(CallContext ctx, std::string path, Done<model::Port> done) = 0;

  // Windows of a board's sensor. Errors: NOT_FOUND, UNAVAILABLE (away), UNIMPLEMENTED (CAP 15 is
  // missing), FAILED_PRECONDITION (a run holds the board), those of the board.
  struct StartCapture {
    model::CaptureSettings settings;
    Hash model;                  // loaded where the board does not hold it; zero: the one it holds
    bool scale_by_model = true;  // mul, add and shift are those of the model's input stage
  };
  struct StopCapture {};
  struct ListWindows {
    std::uint32_t from_id = 0;
  };
  struct LabelWindow {
    std::uint32_t id = 0, label = 0;
    model::SampleRole keep = model::SampleRole::kNone;
  };
  struct FeedSensor {
    std::uint64_t first = 0;  // time step, from the capture's start
    std::string steps;        // little-endian, whole time steps
  };
  using CaptureAct = std::variant<StartCapture, StopCapture, ListWindows, LabelWindow, FeedSensor>;
  virtual void capture(CallContext ctx, BoardUid uid, CaptureAct act,
                       Done<model::CaptureState> done) = 0;
  // The values of a window, as the model's input has them.
  struct WindowValues {
    std::uint32_t dtype = 0;  // 1 s8, 2 u8, 3 s16; 0: the model is not known here
    std::string values;
  };
  virtual void read_window(CallContext ctx, BoardUid uid, std::uint32_t id,
                           Done<WindowValues> done) = 0;

  virtual void create_run(CallContext ctx, model::RunSpec spec, bool dry_run,
                          Done<model::Run> done) = 0;
  // desired: kRun (resume), kPause, kCancel.
  virtual void set_desired(CallContext ctx, Uuid run, model::Desired desired,
                           Done<model::Run> done) = 0;

  // How the run would go; nothing is started. Errors: those of create_run.
  virtual void estimate_run(CallContext ctx, model::RunSpec spec,
                            Done<model::RunEstimate> done) = 0;
  // A new run of the spec of one that FAILED or was CANCELLED.
  virtual void retry_run(CallContext ctx, Uuid run, std::optional<std::int32_t> priority,
                         Done<model::Run> done) = 0;
  // Of a run that waits. before: it takes the place in front of that one (and its priority); zero:
  // behind those of its priority. Errors: NOT_FOUND, FAILED_PRECONDITION (it waits no more),
  // INVALID_ARGUMENT (another board's).
  virtual void reorder_run(CallContext ctx, Uuid run, std::optional<std::int32_t> priority,
                           Uuid before, Done<model::Run> done) = 0;
  struct BoardQueue {
    BoardUid uid;
    model::Lease lease;            // what is empty: nobody
    std::vector<model::Run> runs;  // the one under way first
  };
  virtual void list_queues(BoardUid uid, Done<std::vector<BoardQueue>> done) = 0;
  // Every run is to pause, or to end; evaluations end; boards in session are told at once and have
  // kStopTime to answer. Never waits for one that hangs.
  struct StopReport {
    struct Item {
      Uuid run;
      BoardUid board;
      bool told = false;
      model::Reason reason;
    };
    std::vector<Item> runs;
    std::uint32_t evaluations = 0, boards_told = 0, boards_silent = 0;
  };
  virtual void stop_all(CallContext ctx, bool cancel, Done<StopReport> done) = 0;

  // A layer's precision from a step on; step 0: from the next epoch.
  virtual void set_precision(CallContext ctx, Uuid run, model::Steer steer,
                             Done<model::Run> done) = 0;

  virtual void pull_weights(CallContext ctx, BoardUid uid, std::string alias,
                            Done<model::Snapshot> done) = 0;
  virtual void restore_weights(CallContext ctx, BoardUid uid, Hash snapshot,
                               Done<model::Board> done) = 0;
  // The same on several boards at once. Of each: weights that nobody had kept are snapshots first.
  struct RestoreAsk {
    Hash snapshot;
    std::vector<BoardUid> boards;
    bool commit = false;   // to non-volatile memory then
    bool dry_run = false;  // only what would happen
  };
  struct Restored {
    BoardUid uid;
    Status status;
    bool held = false;   // it had these weights
    bool begun = false;  // status is of work under way, not a refusal
    Hash saved;
    std::optional<model::NvmInfo> nvm;
  };
  virtual void restore_boards(CallContext ctx, RestoreAsk ask,
                              Done<std::vector<Restored>> done) = 0;
  // As evaluate(), and which samples are wrong.
  virtual void evaluate_samples(CallContext ctx, BoardUid uid, Hash snapshot, Uuid dataset,
                                std::string split, Done<model::Job> done) = 0;
  // Outputs of what the board holds for one sample given by its source values.
  virtual void infer_values(CallContext ctx, BoardUid uid, std::vector<float> values,
                            Done<model::Inference> done) = 0;
  // Starts a job of kind EVALUATE; its end is a job event.
  virtual void evaluate(CallContext ctx, BoardUid uid, Hash snapshot, Uuid dataset,
                        std::string split, Done<model::Job> done) = 0;
  // Outputs of what the board holds for samples [first, first + count) of a split.
  virtual void infer(CallContext ctx, BoardUid uid, Uuid dataset, std::string split,
                     std::uint32_t first, std::uint32_t count, Done<model::Inference> done) = 0;
  // Ends such a job as CANCELLED before its next batch; its end is a job event. Errors: NOT_FOUND,
  // FAILED_PRECONDITION (it has ended).
  virtual void cancel_evaluation(CallContext ctx, Uuid job, Done<model::Job> done) = 0;
};

}  // namespace odt::training
