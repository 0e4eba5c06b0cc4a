#pragma once

#include <functional>

#include "data/batcher.h"
#include "data/quantize.h"
#include "training/env.h"

// What is done with a board in a session: each operation fails with UNAVAILABLE when the session
// ends, CANCELLED when `stop` says so.
namespace odt::training {

using StopFn = std::function<bool()>;

// Batches go to one slot, one after the other: the next is sent when the answer to the last is
// here, and a second slot would cost the room of a batch.
inline constexpr std::uint32_t kBatchSlot = 0;

// A row of board_command around a mutating request: intent before, done or unknown after.
class CommandLog {
 public:
  CommandLog(Env& env, BoardUid uid, Uuid run_id)
      : env_(env), uid_(std::move(uid)), run_id_(run_id) {}
  asio::awaitable<Status> begin(std::string kind, Hash target);
  asio::awaitable<void> settle(Status outcome);

 private:
  asio::awaitable<Status> put(model::CommandState state);
  Env& env_;
  BoardUid uid_;
  Uuid run_id_;
  model::BoardCommand command_;
};

// Settles what was open when a session or the daemon ended: `state` is the board's truth.
asio::awaitable<void> settle_commands(Env& env, BoardUid uid, model::DeviceState state);

// Stops whatever run the board still has, then makes it hold the image and nothing else: the
// image's weights, no job, no samples. Errors: NOT_FOUND (image), those of the board.
asio::awaitable<Status> load_image(Env& env, Session session, model::DeviceState state,
                                   Hash model_hash);
asio::awaitable<Status> stop_other_run(Env& env, Session session, model::DeviceState state,
                                       Uuid keep);

// Renews the board's lease with what is sent.
session::BoardSession::Progress progress_of(Env& env, const Session& session);

// targets: of each sample where they stand in place of labels, else 0.
asio::awaitable<Result<data::SampleSet>> load_samples(Env& env, Hash blob,
                                                      std::uint32_t targets = 0);

// Streams a whole set through the weights that the board holds now. progress: samples done.
// each: one sample a step, so that the loss of every sample is known.
struct EvalOutcome {
  model::EvalReport report;
  std::uint32_t eval_id = 0;
  std::vector<std::uint64_t> scores;  // each: the samples' losses
  std::vector<std::uint32_t> wrong;   // each: samples said wrongly
};
asio::awaitable<Result<EvalOutcome>> evaluate_streamed(
    Env& env, Session session, data::SampleSet set, StopFn stop,
    std::function<void(std::uint32_t)> progress = {}, bool each = false);

// Of samples that the board holds: its captured ones.
asio::awaitable<Result<EvalOutcome>> evaluate_resident(Session session, std::uint32_t eval_id,
                                                       model::SampleRole role, StopFn stop);

// At least one score.
model::Scores summary_of(std::vector<std::uint64_t> scores, Hash blob);

// Weights as the board holds them (odt_weights v1), verified against its own hash.
struct Pulled {
  std::shared_ptr<const std::string> content;
  Hash hash;
  std::uint32_t step = 0;
  Uuid run_id;  // that the board says they are of; zero: none
  std::uint32_t attempt = 0;
};
asio::awaitable<Result<Pulled>> pull_current_weights(Session session);

// How source values become what a board receives (capture_ops.cpp). Errors: NOT_FOUND.
asio::awaitable<Result<data::InputStage>> input_stage(Env& env, Hash model);

// Of odt_weights v1, whose whole is checked. Errors: INVALID_ARGUMENT.
struct WeightsHeader {
  std::uint16_t rules_version = 0;
  std::uint8_t rule_set = 0, n_layers = 0, k = 0;  // k of the first layer
  Hash model_hash;
  std::vector<std::uint32_t> layer_k;
};
Result<WeightsHeader> read_weights_header(const std::string& content);
// SHA-256 of the guard's best weights as a training state (ODTT v1) names it; zero: none.
Hash best_hash_of_state(const std::string& state);

}  // namespace odt::training
