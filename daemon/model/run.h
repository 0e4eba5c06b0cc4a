#pragma once

#include "model/common.h"
#include "model/setting.h"

namespace odt::model {

enum class RunState : std::uint8_t {
  kUnspecified = 0,
  kQueued = 1,
  kPreparing = 2,
  kRunning = 3,
  kPaused = 4,
  kWaitingBoard = 5,
  kEvaluating = 6,
  kSucceeded = 7,
  kFailed = 8,
  kCancelled = 9,
};
constexpr bool is_final(RunState s) {
  return s == RunState::kSucceeded || s == RunState::kFailed || s == RunState::kCancelled;
}
enum class Desired : std::uint8_t { kUnspecified = 0, kRun = 1, kPause = 2, kCancel = 3 };
enum class RuleSet : std::uint8_t { kUnspecified = 0, kNiti = 1, kNitiLiteral = 2, kDfp16 = 3 };
enum class Rounding : std::uint8_t {
  kUnspecified = 0,
  kHalfUp = 1,
  kHalfAway = 2,
  kPsto = 3,
  kSr = 4
};
enum class ShiftSource : std::uint8_t { kUnspecified = 0, kExact = 1, kStale = 2 };
// Adaptive precision (rule 1.12): off, or where its checks are.
enum class AptMode : std::uint8_t { kUnspecified = 0, kQuarters = 1, kEpochs = 2 };
enum class Policy : std::uint8_t { kUnspecified = 0, kAuto = 1, kFixed = 2 };
enum class ReplayVerdict : std::uint8_t {
  kUnspecified = 0,
  kEqual = 1,
  kDifferent = 2,
  kNotPossible = 3  // of captured samples
};

struct HyperParams {
  Policy policy = Policy::kUnspecified;
  RuleSet rule_set = RuleSet::kUnspecified;
  Rounding rounding = Rounding::kUnspecified;
  LossKind loss = LossKind::kUnspecified;
  ShiftSource shift_source = ShiftSource::kUnspecified;
  std::vector<std::int32_t> mu_weight;  // empty, 1 or 3
  std::optional<std::int32_t> mu_offset;
  std::optional<std::uint32_t> dead_zone, k, batch, epochs, order_seed, sr_seed;
  std::optional<bool> guard;
  std::optional<std::uint32_t> telemetry_every;
  std::optional<bool> streamed;
  std::optional<bool> best_on_host;  // the guard's best weights: the board has no room for them
  std::optional<bool> frozen;        // outputs of the model's frozen part stand in for the samples
  std::optional<bool> tail;          // never asked for: the board holds the trainable part alone
  std::optional<std::uint32_t> checkpoint_epochs;
  std::optional<std::uint32_t> commit_every;  // steps from commit to commit to the board's NVM
  // Precision of each trainable layer where it is not k; 0: k.
  std::vector<std::uint32_t> layer_k;
  AptMode apt = AptMode::kUnspecified;
  std::optional<std::uint32_t> apt_k_max, apt_t_min_q8, apt_t_max_q8;
  std::optional<bool> apt_offsets;
  // DFP16: rate on the sum of a batch's gradients = lr_m * 2^-lr_s.
  std::vector<std::uint32_t> lr_m;  // empty, 1 or 3
  std::optional<std::uint32_t> lr_s;
  std::optional<bool> blocked;
  bool operator==(const HyperParams&) const = default;

  // k can differ between layers or in time: defaults by k are a layer's own then.
  bool k_varies() const {
    bool own = false;
    for (const auto v : layer_k) own = own || (v != 0 && v != k.value_or(0));
    return own || apt != AptMode::kUnspecified || apt_k_max.value_or(0) != 0;
  }
};

// A layer's precision as the host has set it: in force from a step on.
struct Steer {
  std::uint32_t step = 0, layer = 0, k = 0;
  bool operator==(const Steer&) const = default;
};

// A state that the board has committed to its non-volatile memory.
struct NvmPoint {
  std::uint32_t step = 0;
  Hash state_hash;
  bool operator==(const NvmPoint&) const = default;
};

struct RunSpec {
  BoardUid board_uid;
  Hash model_hash;
  Uuid dataset_id;
  HyperParams hyper;
  Hash start_snapshot;
  bool evaluate = false;
  std::string name;
  std::uint32_t resume_deadline_s = 0;
  Uuid id;           // chosen by the caller: a run that exists already is the answer; zero: new
  Uuid campaign_id;  // zero: of no campaign
  std::uint32_t campaign_unit = 0;
  std::int32_t priority = 0;
  bool captured = false;  // on the samples that the board captured; no dataset
  bool operator==(const RunSpec&) const = default;
};

// Measured by a run; 0: not yet.
struct RunTiming {
  std::uint32_t step_us = 0, link_bytes_per_s = 0, sample_us = 0, epoch_us = 0;
  bool operator==(const RunTiming&) const = default;
};

// How a run would go: RunEstimate of types.proto.
struct RunEstimate {
  enum class Basis : std::uint8_t {
    kUnspecified = 0,
    kThisBoard = 1,
    kSameCore = 2,
    kScaled = 3,
    kPredicted = 4
  };
  Basis basis = Basis::kUnspecified;
  std::uint32_t step_us = 0, link_bytes_per_s = 0, steps = 0;
  bool link_measured = false;
  std::uint64_t send_bytes = 0;
  std::int64_t prepare_us = 0, train_us = 0, evaluate_us = 0, total_us = 0, queue_us = 0;
  std::uint64_t ram_bytes = 0, board_ram_bytes = 0, disk_bytes = 0, disk_free_bytes = 0;
  std::string placement;
  std::vector<Reason> warnings;
};

enum class GuardVerdict : std::uint8_t {
  kUnspecified = 0,
  kBest = 1,
  kStart = 2,
  kLast = 3,
  kOff = 4
};

struct Run {
  Uuid id;
  RunSpec spec;
  RunState state = RunState::kQueued;
  Desired desired = Desired::kRun;
  Reason reason;
  std::uint32_t attempt = 0;
  std::uint32_t attempt_step = 0;  // that the attempt began at
  HyperParams effective;
  std::uint32_t steps_done = 0, steps_total = 0, epochs_done = 0;
  Accuracy before, after, heldout_start, heldout_best;
  // What stands in their place where there are no classes.
  Outputs outputs;
  Loss before_loss, after_loss, heldout_start_loss, heldout_best_loss;
  std::uint32_t best_step = 0;
  Hash final_state_hash, final_weights_hash;
  std::uint32_t rules_version = 0;
  std::int64_t start_time_us = 0, end_time_us = 0;
  std::uint32_t train_samples = 0;
  ReplayVerdict replay = ReplayVerdict::kUnspecified;
  // Last verified checkpoint: blob hashes of training state and of the guard's best weights, at a
  // step.
  Hash checkpoint_state, checkpoint_best;
  Hash best_weights;  // best_on_host: blob of the guard's best so far
  std::uint32_t checkpoint_step = 0;
  std::int64_t waiting_since_us = 0;  // WAITING_BOARD began; 0: not waiting
  std::vector<Steer> steering;        // what the board was told, in order
  std::string placement;              // what the board holds and why, for people
  std::vector<NvmPoint> nvm_points;   // the last few commits, oldest first
  Hash captured_set;                  // of a captured run's samples; zero: not settled yet
  std::uint32_t captured_heldout = 0;
  Uuid retry_of;
  std::int32_t priority = 0;
  std::int64_t queue_rank = 0;
  std::int64_t eta_time_us = 0;
  RunTiming timing;
  GuardVerdict guard_verdict = GuardVerdict::kUnspecified;
  std::string verdict_text;
  std::vector<Reason> warnings;
  std::vector<RunSetting> settings;  // of spec, what came from the settings
  bool pinned = false;               // its raw telemetry stays whatever room is left
  std::string owner;                 // whom it is for; empty: meta.created_by
  Meta meta;
  const std::string& whose() const { return owner.empty() ? meta.created_by : owner; }
};

struct RunEvent {
  Uuid run_id;
  std::uint32_t seq = 0;  // per run, from 1; set by the store
  std::int64_t time_us = 0;
  RunState from = RunState::kUnspecified, to = RunState::kUnspecified;
  std::string cause, actor;
  Uuid command_id;
};

// The legal transitions; the test of the state machine is this table.
bool is_legal_transition(RunState from, RunState to);

struct LayerEpoch {
  std::uint32_t bits_min = 0, bits_mean_q8 = 0, bits_max = 0;
  std::int32_t shift = 0;
  std::uint32_t nonzero_deltas_ppm = 0, mean_abs_delta_q8 = 0, zero_propagated_ppm = 0;
  std::uint32_t saturated = 0, dead_units = 0, k = 0, u_q8 = 0;
  std::uint32_t k_off = 0, sum_n = 0, logical_bits = 0, resident_bytes = 0;
  std::int32_t e_d = 0, w_min = 0, w_max = 0, mu = 0;
  std::uint64_t sum_abs_g = 0;
  bool mu_clamped = false;
  std::uint64_t gavg_q8 = 0;  // by the host, rule 1.12's Gavg in Q8; 0: not known
  bool operator==(const LayerEpoch&) const = default;
};

struct EpochResult {
  Uuid run_id;
  std::uint32_t attempt = 0, epoch = 0, step = 0;
  Loss loss;
  Accuracy train, heldout;
  Loss heldout_loss;  // without classes; train and heldout are empty then
  std::uint32_t best_step = 0, alarms = 0;
  Hash state_hash;
  std::uint32_t step_us = 0;
  std::vector<LayerEpoch> layers;
  std::int64_t time_us = 0;
  BoardUid board_uid;
};

struct LayerStep {
  std::uint8_t bits = 0;
  std::int8_t shift = 0;
  std::uint8_t k = 0;
  bool operator==(const LayerStep&) const = default;
};

struct TelemetryFrame {
  Uuid run_id;
  std::uint32_t attempt = 0, step = 0;
  BoardUid board_uid;
  std::int64_t time_us = 0;
  std::uint64_t boot_id = 0;
  std::uint32_t event_id = 0;
  Loss loss;
  std::uint32_t correct = 0;
  std::vector<LayerStep> layers;
  std::uint32_t gap = 0;
};

// A mutating request to a board, written before it is sent and settled at the next HELLO.
enum class CommandState : std::uint8_t {
  kUnspecified = 0,
  kIntent = 1,
  kSent = 2,
  kDone = 3,
  kUnknown = 4
};
struct BoardCommand {
  Uuid id;
  BoardUid uid;
  std::string kind;  // "start_run", "restore", "job_control", "reset", ...
  Hash target;       // hash wanted
  CommandState state = CommandState::kIntent;
  std::int64_t deadline_us = 0;
  Uuid run_id;
};

}  // namespace odt::model
