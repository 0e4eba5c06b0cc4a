#include "support/virtual/fault_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace odt::test {
namespace {

using model::RunState;

constexpr std::uint32_t kBatch = 8, kTrainSamples = 96;
constexpr char kAlias[] = "matrix";

}  // namespace

bool FaultMatrix::Case::try_again(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsAborted(status) || absl::IsCancelled(status) || absl::IsDataLoss(status) ||
         reason_of(status) == "BOARD_BUSY";
}

void FaultMatrix::Case::start_fault(std::int64_t duration_us) {
  const auto pick = [this](std::int64_t n) {
    return static_cast<std::int64_t>(time.random() % static_cast<std::uint64_t>(n));
  };
  WireFaults noise;
  const int rate = static_cast<int>(std::array<int, 3>{10, 40, 120}[pick(3)]);
  switch (fault) {
    case Fault::kDrop:
      noise.drop = rate;
      break;
    case Fault::kFlip:
      noise.flip = rate;
      break;
    case Fault::kBurst:
      noise.burst = rate;
      break;
    case Fault::kTruncate:
      noise.truncate = rate;
      break;
    case Fault::kDuplicate:
      noise.duplicate = rate;
      break;
    case Fault::kGarbage:
      noise.garbage = rate;
      break;
    case Fault::kDelay:
      noise.delay = rate / 4;
      noise.delay_us = 300'000 + pick(5'000'000);
      break;
    default:
      break;
  }
  board().to_board.faults = board().to_host.faults = noise;
  quiet_at = time.elapsed_us() + kNoise;
  world.after(kNoise, [this] { board().to_board.faults = board().to_host.faults = {}; });
  if (fault <= Fault::kDelay) return;
  const int times = 1 + static_cast<int>(pick(3));
  for (int i = 0; i < times; ++i) {
    const std::int64_t at = pick(duration_us * (i + 1) + 1);
    const std::int64_t hold = i == 0 && pick(4) == 0 ? 60 * kSecond : 50'000 + pick(9 * kSecond);
    quiet_at = std::max(quiet_at, time.elapsed_us() + at + hold);
    world.after(at, [this, hold] {
      ++events;
      switch (fault) {
        case Fault::kStall:
          board().stall(time.elapsed_us() + hold);
          break;
        case Fault::kCut:
          world.cut(0, hold);
          break;
        case Fault::kReset:
          if (board().powered()) board().reset(time.elapsed_us());
          break;
        case Fault::kPowerCycle:
          if (board().powered()) world.power_cycle(0, hold);
          break;
        case Fault::kDaemonKill:
          killed = true;
          daemon->wake();
          break;
        default:
          break;
      }
    });
  }
}

std::optional<model::Run> FaultMatrix::Case::run_to_end(Outcome& out) {
  model::RunSpec spec;
  spec.board_uid = uid;
  spec.model_hash = data.model_hash;
  spec.dataset_id = data.dataset;
  spec.hyper.epochs = epochs;
  spec.hyper.batch = kBatch;
  spec.hyper.streamed = streamed;
  if (commit_every != 0) spec.hyper.commit_every = commit_every;
  spec.evaluate = true;
  Uuid id;
  const auto ask = [&] {
    daemon->fleet().create_run(context(fmt::format("run-{}", epochs)), spec, false,
                               take<model::Run>([&](const model::Run& run) { id = run.id; }));
  };
  if (!persist(ask, limit())) {
    out.hang = "the run was not made: " + last.ToString();
    return std::nullopt;
  }
  const auto stored = [&] {
    return daemon->control().call_sync([id](store::ControlStore& s) { return s.run(id); });
  };
  if (const auto run = stored(); !run.ok()) {
    out.lost.push_back("the run that was acknowledged: " + run.status().ToString());
    return std::nullopt;
  }
  std::int64_t looked = -kSecond;
  const auto over = [&] {
    if (time.elapsed_us() - looked < 20'000) return false;
    looked = time.elapsed_us();
    return model::is_final(stored()->state);
  };
  const bool ended = go(over, limit());
  const model::Run run = *stored();
  if (!ended)
    out.hang = fmt::format("the run is in state {} after {} of {} epochs: {}",
                           static_cast<int>(run.state), run.epochs_done, epochs, run.reason.text);
  else if (run.state != RunState::kSucceeded)
    out.wrong.push_back(
        fmt::format("the run ended in state {}: {}", static_cast<int>(run.state), run.reason.text));
  if (!ended || run.state != RunState::kSucceeded) return std::nullopt;
  return run;
}

std::optional<model::Run> FaultMatrix::Case::train(Outcome& out) {
  auto run = run_to_end(out);
  if (!run) return run;
  if (!matrix.state_.is_zero() && run->final_state_hash != matrix.state_)
    out.wrong.push_back("the final state is " + run->final_state_hash.hex());
  else if (!matrix.weights_.is_zero() && run->final_weights_hash != matrix.weights_)
    out.wrong.push_back("the final weights are " + run->final_weights_hash.hex());
  check_records(out, *run);
  return run;
}

void FaultMatrix::Case::check_records(Outcome& out, const model::Run& run) {
  const Uuid id = run.id;
  const auto records =
      daemon->control().call_sync([id](store::ControlStore& s) { return s.epochs(id); });
  std::vector<bool> seen(epochs);
  for (const auto& epoch : *records)
    if (epoch.epoch < epochs) seen[epoch.epoch] = true;
  for (std::uint32_t e = 0; e < epochs; ++e)
    if (!seen[e]) out.lost.push_back(fmt::format("the record of epoch {}", e));
  if (!daemon->blobs().get(run.final_weights_hash).ok()) out.lost.push_back("the final weights");
  store::TelemetryStore::Range range;
  range.run = id;
  const auto frames =
      daemon->telemetry().call_sync([range](store::TelemetryStore& s) { return s.read(range); });
  const std::uint32_t steps = epochs * kTrainSamples / kBatch;
  std::uint32_t there = 0, gone = 0;
  for (const auto& frame : frames->frames) frame.gap != 0 ? gone += frame.gap : there += 1;
  if (streamed && there < steps)
    out.lost.push_back(fmt::format("{} of {} streamed step records", steps - there, steps));
  else if (there + gone < steps)
    out.lost.push_back(fmt::format("{} step records without a gap that says so ({} gone, {} there)",
                                   steps - there - gone, gone, there));
}

bool FaultMatrix::Case::put_weights(Outcome& out, const std::string& request, Hash weights) {
  const auto ask = [&] {
    daemon->fleet().restore_weights(context(request), uid, weights,
                                    take<model::Board>([](const model::Board&) {}));
  };
  if (persist(ask, limit())) return true;
  out.hang = "the weights were not taken: " + last.ToString();
  return false;
}

void FaultMatrix::Case::wait_until(std::int64_t us) {
  go([&] { return time.elapsed_us() >= us; }, us);
}

Hash FaultMatrix::Case::look(const std::string& request, const std::string& alias) {
  Hash got;
  const auto ask = [&] {
    daemon->fleet().pull_weights(
        context(request), uid, alias,
        take<model::Snapshot>([&](const model::Snapshot& s) { got = s.hash; }));
  };
  return persist(ask, limit()) ? got : Hash{};
}

void FaultMatrix::Case::pull(Outcome& out) {
  Hash got;
  std::uint32_t boots = board().boots();
  int turn = 0;
  while ((got = look("pull", kAlias)).is_zero()) {
    // A board that has restarted meanwhile has lost its weights and says so: it gets them again.
    if (board().boots() == boots || time.elapsed_us() >= limit()) {
      out.hang = "the weights were not read: " + last.ToString();
      return;
    }
    boots = board().boots();
    if (!put_weights(out, fmt::format("again-{}", ++turn), matrix.weights_)) return;
  }
  if (got != matrix.weights_) out.wrong.push_back("the weights read are " + got.hex());
  const auto content = daemon->blobs().get(got);
  if (!content.ok())
    out.lost.push_back("the content of the snapshot: " + content.status().ToString());
  else if (sha256(*content) != got)
    out.wrong.push_back("the snapshot's content is another one");
  // Once more after a restart of the daemon.
  killed = true;
  wait_until(time.elapsed_us() + kSecond);
  const auto row =
      daemon->control().call_sync([got](store::ControlStore& s) { return s.snapshot(got); });
  if (!row.ok() || std::count(row->aliases.begin(), row->aliases.end(), kAlias) != 1)
    out.lost.push_back("the snapshot that was acknowledged");
}

void FaultMatrix::Case::push(Outcome& out) {
  if (!put_weights(out, "push", matrix.weights_)) return;
  const std::uint32_t boots = board().boots();
  // What the board really holds, when the line is quiet.
  wait_until(std::max(quiet_at, time.elapsed_us()) + kSecond);
  const Hash got = look("look");
  if (board().boots() != boots) return;  // its memory was lost after the acknowledgement
  if (got.is_zero())
    out.lost.push_back("the weights that the board acknowledged: " + last.ToString());
  else if (got != matrix.weights_)
    out.wrong.push_back("the board holds weights " + got.hex());
}

}  // namespace odt::test
