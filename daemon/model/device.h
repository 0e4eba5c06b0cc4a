#pragma once

#include "model/run.h"

// What a board says and is told, without protobuf. Meanings: proto/odt/device/v1/device.proto.
namespace odt::model {

enum class JobState : std::uint8_t {
  kNone = 0,
  kReady = 1,
  kRunning = 2,
  kPaused = 3,
  kEpochHold = 4,
  kDone = 5,
  kStopped = 6,
  kEvaluating = 7,
  kFailed = 8,
};

// HELLO_ACK.
struct HelloInfo {
  BoardUid uid;
  std::string board_type, core, fw_version;
  std::uint64_t boot_id = 0;
  std::string reset_reason;
  std::uint32_t uptime_ms = 0, max_poll_ms = 0, mtu = 0, rx_window_bytes = 0, caps = 0;
  std::uint32_t max_layers = 0, max_batch = 0, ram_bytes = 0, rules_version = 0;
  Bytes model_hash16, state_hash16;  // first 16 bytes; empty: none
  Uuid run_id;
  std::uint32_t attempt = 0, last_step = 0;
  JobState job = JobState::kNone;
  std::uint32_t first_event = 0, next_event = 0;
  bool restored = false;  // what it holds came from its non-volatile memory, at boot
};

// best_on_host: what the run waits for.
enum class BestWait : std::uint8_t { kNone = 0, kUnread = 1, kWanted = 2 };

// GET_STATE.
struct DeviceState {
  Hash model_hash;
  Uuid run_id;
  std::uint32_t attempt = 0;
  JobState job = JobState::kNone;
  std::uint32_t step = 0, epoch = 0;
  Hash state_hash, weights_hash;  // when asked for
  std::uint32_t best_step = 0, best_correct = 0;
  std::uint32_t samples_train = 0, samples_heldout = 0, samples_test = 0;
  std::uint32_t ram_used_bytes = 0, ram_bytes = 0, stack_high_water_bytes = 0;
  Hash sample_set_hash;
  bool has_weights = false;
  std::uint32_t oldest_unacked_epoch = 0;
  BestWait best_wait = BestWait::kNone;
  std::uint32_t sensor_channels = 0, sensor_rate_milli_hz = 0, sensor_dtype = 0;  // 0: none
  bool tail = false;  // its image is a tail: it takes frozen outputs
  // Newest commit to non-volatile memory (sequence 0: none); restored: as in HelloInfo.
  std::uint32_t nvm_step = 0, nvm_sequence = 0;
  bool restored = false;
};

// Bit of HelloInfo.caps: non-volatile memory.
inline constexpr std::uint32_t kCapNvm = 1u << 7;
// Windows of a sensor, kept as samples.
inline constexpr std::uint32_t kCapCapture = 1u << 15;

enum class NvmKind : std::uint8_t { kNone = 0, kImage = 1, kWeights = 2, kState = 3 };

// NVM_STATUS.
struct NvmInfo {
  std::uint32_t size = 0, slot_bytes = 0;
  std::uint32_t sequence = 0;  // newest commit that is whole; 0: none
  NvmKind kind = NvmKind::kNone;
  std::uint32_t bytes = 0, step = 0, attempt = 0;
  Uuid run_id;
  Hash hash;  // of the state or the weights
  Bytes model_hash16;
  bool has_image = false, has_best = false;
  std::uint32_t writes_0 = 0, writes_1 = 0;  // of each slot
  // What a commit now would take; want_state 0 and want_image 0: nothing.
  std::uint32_t want_state = 0, want_best = 0, want_image = 0;
};

// A commit has ended; text: why it failed.
struct NvmCommitted {
  std::uint32_t commit_id = 0;  // 0: by itself (commit_every)
  std::uint32_t sequence = 0;
  NvmKind kind = NvmKind::kNone;
  std::uint32_t step = 0, attempt = 0, bytes = 0, took_ms = 0;
  Uuid run_id;
  Hash hash;
  std::string text;
  bool erased = false;
};

enum class Resource : std::uint8_t {
  kModelImage = 1,
  kSamples = 2,
  kBatch = 3,
  kWeights = 4,
  kBestWeights = 5,
  kState = 6,
  kEvalResult = 7,
  kInferInput = 8,
  kWindow = 9,
};
enum class SampleRole : std::uint8_t { kNone = 0, kTrain = 1, kHeldout = 2, kTest = 3 };

// RunSpec of the wire: settings resolved, every field set.
struct DeviceRunSpec {
  HyperParams hyper;  // effective; mu_weight has three entries
  std::uint32_t train_samples = 0, heldout_samples = 0;
  Hash sample_set_hash;
  bool streamed = false;
  bool hold_at_epoch = true;
  std::uint32_t telemetry_every = 1;
};

struct JobChanged {
  Uuid run_id;
  std::uint32_t attempt = 0;
  JobState job = JobState::kNone;
  std::uint32_t step = 0;
  Hash state_hash, weights_hash;
  std::string text;
};

struct EvalReport {
  std::uint32_t eval_id = 0;
  Accuracy accuracy;
  std::uint64_t loss = 0;
  bool done = false;
  std::uint32_t next_seq = 0;
};

struct InferReport {
  std::vector<std::int8_t> logits;
  std::uint32_t predicted = 0;
};

// CAPTURE_START and what follows it (CAP 15); ranges: device.proto.
enum class CaptureTrigger : std::uint8_t { kAlways = 0, kLevel = 1, kButton = 2 };
struct LabelRule {
  enum class Of : std::uint8_t { kMean = 1, kMax = 2, kRange = 3 };
  Of of = Of::kMean;
  std::uint32_t channel = 0;
  std::int32_t min = 0, max = 0;
  std::uint32_t label = 0;
};
struct CaptureSettings {
  std::uint32_t window_steps = 0, stride_steps = 0, slots = 0;
  std::vector<std::int32_t> mul;  // none, one, or one per channel
  std::vector<std::int64_t> add;
  std::uint32_t shift = 0;
  CaptureTrigger trigger = CaptureTrigger::kAlways;
  std::uint32_t trigger_channel = 0, trigger_level = 0;
  std::vector<LabelRule> rules;
  std::optional<std::uint32_t> button_label, label;
  SampleRole keep = SampleRole::kNone;
  std::uint32_t heldout_every = 0;
  std::uint32_t channels = 0, dtype = 0;  // of a sensor that the host feeds
};
struct CapturedWindow {
  std::uint32_t id = 0, time_ms = 0;  // of the board's uptime
  std::optional<std::uint32_t> label;
  SampleRole kept = SampleRole::kNone;
  bool by_rule = false, by_button = false;
};
struct CaptureState {
  bool active = false;
  std::uint32_t captured = 0, lost_windows = 0, lost_steps = 0;
  std::uint64_t steps = 0;
  std::uint32_t kept_train = 0, kept_heldout = 0, not_kept = 0;
  std::uint32_t window_steps = 0, channels = 0, dtype = 0;
  std::vector<CapturedWindow> windows;
  bool more = false;
};

}  // namespace odt::model
