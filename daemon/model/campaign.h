#pragma once

#include "model/run.h"

// Campaigns. Meanings, units and ranges: messages of the same name in proto/odt/api/v1/types.proto.
namespace odt::model {

enum class CampaignKind : std::uint8_t {
  kUnspecified = 0,
  kSame = 1,
  kSweep = 2,
  kTwin = 3,
  kRollout = 4,
  kFederated = 5,
};
enum class CampaignState : std::uint8_t {
  kUnspecified = 0,
  kQueued = 1,
  kRunning = 2,
  kPaused = 3,
  kRollingBack = 4,
  kSucceeded = 5,
  kFailed = 6,
  kCancelled = 7,
};
constexpr bool is_final(CampaignState s) {
  return s == CampaignState::kSucceeded || s == CampaignState::kFailed ||
         s == CampaignState::kCancelled;
}
enum class UnitState : std::uint8_t {
  kUnspecified = 0,
  kPending = 1,
  kRunning = 2,
  kSucceeded = 3,
  kFailed = 4,
  kCancelled = 5,
  kSkipped = 6,
  kLate = 7,
  kRolledBack = 8,
};
constexpr bool is_final(UnitState s) { return s > UnitState::kRunning; }

enum class SweepStrategy : std::uint8_t { kUnspecified = 0, kGrid = 1, kRandom = 2, kHalving = 3 };
struct SweepAxis {
  std::string name;
  std::vector<std::string> values;
  bool operator==(const SweepAxis&) const = default;
};
struct SweepSpec {
  SweepStrategy strategy = SweepStrategy::kUnspecified;
  std::vector<SweepAxis> axes;
  std::uint32_t trials = 0, seed = 0, eta = 0, min_epochs = 0, budget_board_s = 0;
  bool operator==(const SweepSpec&) const = default;
};
struct RolloutSpec {
  Hash snapshot;
  std::uint32_t canary_ppm = 0;
  std::vector<std::uint32_t> phases_ppm;
  std::optional<std::uint32_t> max_drop_ppm;
  std::string split;
  bool commit = false;
  bool operator==(const RolloutSpec&) const = default;
};
struct FederatedSpec {
  std::uint32_t rounds = 0, min_boards = 0, deadline_s = 0, outlier_q8 = 0, personalise_epochs = 0;
  bool operator==(const FederatedSpec&) const = default;
};
struct BoardDataset {
  BoardUid board;
  Uuid dataset;
  bool operator==(const BoardDataset&) const = default;
};

struct CampaignSpec {
  std::string name;
  CampaignKind kind = CampaignKind::kUnspecified;
  std::string query;
  std::vector<BoardUid> boards;
  Hash model_hash;
  Uuid dataset_id;
  std::vector<BoardDataset> datasets;
  HyperParams hyper;
  Hash start_snapshot;
  bool evaluate = false;
  std::uint32_t resume_deadline_s = 0;
  SweepSpec sweep;
  std::optional<HyperParams> hyper_b;
  RolloutSpec rollout;
  FederatedSpec federated;
  std::uint32_t max_parallel = 0;
  bool operator==(const CampaignSpec&) const = default;
};

struct TwinResult {
  enum class What : std::uint8_t {
    kUnspecified = 0,
    kEqual = 1,
    kLoss = 2,
    kBits = 3,
    kShift = 4,
    kPrecision = 5,
    kState = 6,
    kLength = 7,
  };
  What what = What::kUnspecified;
  std::uint32_t step = 0, layer = 0;
  std::int64_t a = 0, b = 0;
  std::uint32_t first_state_epoch = 0, steps_compared = 0;
  std::vector<std::string> settings;
  bool operator==(const TwinResult&) const = default;
};

struct Campaign {
  Uuid id;
  CampaignSpec spec;
  CampaignState state = CampaignState::kQueued;
  Desired desired = Desired::kRun;
  Reason reason;
  std::vector<BoardUid> boards;
  std::uint32_t round = 0, rounds_total = 0;
  std::uint32_t units_total = 0, units_running = 0, units_done = 0, units_failed = 0;
  std::optional<std::uint32_t> best_unit;
  Hash result;
  TwinResult twin;
  std::uint64_t board_us = 0;
  std::int64_t start_time_us = 0, end_time_us = 0;
  std::string owner;  // of its runs
  Meta meta;
};

struct CampaignEvent {
  Uuid campaign_id;
  std::uint32_t seq = 0;  // per campaign, from 1; set by the store
  std::int64_t time_us = 0;
  CampaignState from = CampaignState::kUnspecified, to = CampaignState::kUnspecified;
  std::string cause, actor;
  Uuid command_id;
};

// The legal transitions; the test of the state machine is this table.
bool is_legal_transition(CampaignState from, CampaignState to);

// What comes next for a board of a rollout; stored before it is done.
enum class RolloutStage : std::uint8_t {
  kPull = 0,     // read what the board has
  kBefore = 1,   // evaluate that
  kRestore = 2,  // from here on the board may have the new weights
  kAfter = 3,    // evaluate those
  kDone = 4,
  kCommitted = 5,
};

struct CampaignUnit {
  Uuid campaign_id;
  std::uint32_t index = 0, round = 0, trial = 0;
  BoardUid board;
  Hash model_hash;
  Uuid dataset_id;
  HyperParams hyper;
  Hash start_snapshot;
  UnitState state = UnitState::kPending;
  Reason reason;
  // Chosen and stored before the run is created, so that it is created once.
  Uuid run_id;
  std::uint32_t tries = 0;
  Accuracy before, after, heldout_start, heldout_best;
  Loss heldout_best_loss;
  std::uint32_t train_samples = 0;
  Hash weights, previous;
  std::uint64_t drift_l1 = 0;
  std::uint32_t changed_ppm = 0;
  std::uint64_t weight = 0;
  std::int64_t start_time_us = 0, end_time_us = 0;
  std::uint32_t steps_done = 0;
  bool personal = false;
  bool held = false;  // its run was paused by the campaign
  RolloutStage stage = RolloutStage::kPull;
};

struct CampaignRound {
  Uuid campaign_id;
  std::uint32_t round = 0;
  Hash start, average;
  std::uint32_t boards = 0, averaged = 0;
  std::uint64_t samples = 0, median_l1 = 0;
  std::int64_t start_time_us = 0, end_time_us = 0;
};

}  // namespace odt::model
