#include "support/virtual/fault_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace odt::test {
namespace {

using model::RunState;

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kPatience = 1800 * kSecond;  // after the last fault
constexpr std::int64_t kNoise = 60 * kSecond;       // a noisy line is quiet after that
constexpr std::uint32_t kEpochs = 3, kBatch = 8, kTrainSamples = 96;
constexpr char kAlias[] = "matrix";

// May an operator's tool try again after this answer?
bool try_again(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsAborted(status) || absl::IsCancelled(status) || absl::IsDataLoss(status) ||
         reason_of(status) == "BOARD_BUSY";
}

}  // namespace

const std::vector<std::pair<Fault, const char*>>& faults() {
  static const std::vector<std::pair<Fault, const char*>> list = {
      {Fault::kDrop, "drop"},
      {Fault::kFlip, "flip"},
      {Fault::kBurst, "burst"},
      {Fault::kTruncate, "truncate"},
      {Fault::kDuplicate, "duplicate"},
      {Fault::kGarbage, "garbage"},
      {Fault::kDelay, "delay"},
      {Fault::kStall, "stall"},
      {Fault::kCut, "cut"},
      {Fault::kReset, "reset"},
      {Fault::kPowerCycle, "power_cycle"},
      {Fault::kDaemonKill, "daemon_kill"}};
  return list;
}

const std::vector<std::pair<Operation, const char*>>& operations() {
  static const std::vector<std::pair<Operation, const char*>> list = {
      {Operation::kTrain, "train"}, {Operation::kPull, "pull"}, {Operation::kPush, "push"}};
  return list;
}

std::string Outcome::text() const {
  std::string out;
  for (const auto& w : wrong) out += "wrong: " + w + "\n";
  for (const auto& l : lost) out += "lost: " + l + "\n";
  if (!hang.empty()) out += "hang: " + hang + "\n";
  return out;
}

// One board and the lives of one daemon.
struct FaultMatrix::Case {
  Case(FaultMatrix& m, Fault f, Operation o, std::uint64_t s)
      : matrix(m),
        fault(f),
        operation(o),
        streamed(s % 2 != 0),
        time(s * 977 + static_cast<std::uint64_t>(f) * 31 + static_cast<std::uint64_t>(o)),
        world(time),
        data(o == Operation::kTrain ? *m.empty_ : *m.trained_) {
    BoardSetup setup;
    setup.uid.bytes = {0, 0, 0, 0, 0, 0, 0x5f, 1};
    setup.seed = time.random();
    setup.baud = s % 3 == 0 ? 921600 : 115200;
    setup.one_way_us = s % 4 == 0 ? 8000 : 500;
    setup.step_us = s % 5 == 0 ? 30000 : 2000;
    world.add(setup, s / 2 % 2 != 0);
    uid = setup.uid;
    daemon = std::make_unique<VirtualDaemon>(time, world, data);
  }

  VirtualBoard& board() { return world.board(0); }

  // Runs on through the ends of the daemon's lives until `done`.
  bool go(const std::function<bool()>& done, std::int64_t until) {
    for (;;) {
      const bool ended = daemon->run([&] { return killed || done(); }, until);
      if (!killed) return ended;
      killed = false;
      answer.reset();
      asked = false;
      daemon.reset();
      daemon = std::make_unique<VirtualDaemon>(time, world, data);
    }
  }

  template <typename T>
  Done<T> take(std::function<void(const T&)> keep) {
    return [this, keep = std::move(keep), life = daemon.get()](Result<T> result) {
      if (life != daemon.get()) return;
      if (result.ok()) keep(*result);
      answer = result.status();
      life->wake();
    };
  }
  CallContext context(const std::string& request) {
    CallContext c;
    c.actor = "matrix";
    c.request_id = request;
    c.command_id = new_uuid();
    return c;
  }
  // What a person does: asks, and asks again where that can help. True: answered with OK.
  bool persist(const std::function<void()>& ask, std::int64_t until) {
    for (;;) {
      answer.reset();
      asked = false;
      const bool ended = go(
          [&] {
            if (!asked && daemon->online(uid)) {
              asked = true;
              ask();
            }
            return answer.has_value();
          },
          until);
      if (!ended) return false;
      last = *answer;
      if (last.ok() || !try_again(last)) return last.ok();
      const std::int64_t pause = time.elapsed_us() + 500'000;
      go([&] { return time.elapsed_us() >= pause; }, pause);
    }
  }

  void start_fault(std::int64_t duration_us);
  void train(Outcome& out);
  void pull(Outcome& out);
  void push(Outcome& out);
  bool put_weights(Outcome& out, const std::string& request);
  std::int64_t limit() const { return quiet_at + kPatience; }

  FaultMatrix& matrix;
  Fault fault;
  Operation operation;
  bool streamed;
  VirtualTime time;
  VirtualWorld world;
  VirtualData data;
  BoardUid uid;
  std::unique_ptr<VirtualDaemon> daemon;
  bool killed = false, asked = false;
  std::optional<Status> answer;
  Status last;
  std::int64_t quiet_at = 0;  // no fault after that
  std::uint64_t events = 0;   // resets, cuts, kills
};

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

void FaultMatrix::Case::train(Outcome& out) {
  model::RunSpec spec;
  spec.board_uid = uid;
  spec.model_hash = data.model_hash;
  spec.dataset_id = data.dataset;
  spec.hyper.epochs = kEpochs;
  spec.hyper.batch = kBatch;
  spec.hyper.streamed = streamed;
  spec.evaluate = true;
  Uuid id;
  const auto ask = [&] {
    daemon->fleet().create_run(context("run"), spec, false,
                               take<model::Run>([&](const model::Run& run) { id = run.id; }));
  };
  if (!persist(ask, limit())) {
    out.hang = "the run was not made: " + last.ToString();
    return;
  }
  const auto stored = [&] {
    return daemon->control().call_sync([id](store::ControlStore& s) { return s.run(id); });
  };
  if (const auto run = stored(); !run.ok()) {
    out.lost.push_back("the run that was acknowledged: " + run.status().ToString());
    return;
  }
  std::int64_t looked = -kSecond;
  const auto over = [&] {
    if (time.elapsed_us() - looked < 20'000) return false;
    looked = time.elapsed_us();
    return model::is_final(stored()->state);
  };
  const bool ended = go(over, limit());
  const model::Run run = *stored();
  if (!ended) {
    out.hang = fmt::format("the run is in state {} after {} of {} epochs: {}",
                           static_cast<int>(run.state), run.epochs_done, kEpochs, run.reason.text);
    return;
  }
  if (run.state != RunState::kSucceeded)
    out.wrong.push_back(
        fmt::format("the run ended in state {}: {}", static_cast<int>(run.state), run.reason.text));
  else if (!matrix.state_.is_zero() && run.final_state_hash != matrix.state_)
    out.wrong.push_back("the final state is " + run.final_state_hash.hex());
  else if (!matrix.weights_.is_zero() && run.final_weights_hash != matrix.weights_)
    out.wrong.push_back("the final weights are " + run.final_weights_hash.hex());
  if (run.state != RunState::kSucceeded) return;
  if (matrix.state_.is_zero()) {
    matrix.state_ = run.final_state_hash;
    matrix.weights_ = run.final_weights_hash;
  }
  const auto epochs =
      daemon->control().call_sync([id](store::ControlStore& s) { return s.epochs(id); });
  std::vector<bool> seen(kEpochs);
  for (const auto& epoch : *epochs)
    if (epoch.epoch < kEpochs) seen[epoch.epoch] = true;
  for (std::uint32_t e = 0; e < kEpochs; ++e)
    if (!seen[e]) out.lost.push_back(fmt::format("the record of epoch {}", e));
  if (!daemon->blobs().get(run.final_weights_hash).ok()) out.lost.push_back("the final weights");
  store::TelemetryStore::Range range;
  range.run = id;
  const auto frames =
      daemon->telemetry().call_sync([range](store::TelemetryStore& s) { return s.read(range); });
  const std::uint32_t steps = kEpochs * kTrainSamples / kBatch;
  std::uint32_t there = 0, gone = 0;
  for (const auto& frame : frames->frames) frame.gap != 0 ? gone += frame.gap : there += 1;
  if (streamed && there < steps)
    out.lost.push_back(fmt::format("{} of {} streamed step records", steps - there, steps));
  else if (there + gone < steps)
    out.lost.push_back(fmt::format("{} step records without a gap that says so ({} gone, {} there)",
                                   steps - there - gone, gone, there));
}

bool FaultMatrix::Case::put_weights(Outcome& out, const std::string& request) {
  const auto ask = [&] {
    daemon->fleet().restore_weights(context(request), uid, matrix.weights_,
                                    take<model::Board>([](const model::Board&) {}));
  };
  if (persist(ask, limit())) return true;
  out.hang = "the weights were not taken: " + last.ToString();
  return false;
}

void FaultMatrix::Case::pull(Outcome& out) {
  Hash got;
  std::uint32_t boots = board().boots();
  int turn = 0;
  const auto ask = [&] {
    daemon->fleet().pull_weights(
        context("pull"), uid, kAlias,
        take<model::Snapshot>([&](const model::Snapshot& s) { got = s.hash; }));
  };
  while (!persist(ask, limit())) {
    // A board that has restarted meanwhile has lost its weights and says so: it gets them again.
    if (board().boots() == boots || time.elapsed_us() >= limit()) {
      out.hang = "the weights were not read: " + last.ToString();
      return;
    }
    boots = board().boots();
    if (!put_weights(out, fmt::format("again-{}", ++turn))) return;
  }
  if (got != matrix.weights_) out.wrong.push_back("the weights read are " + got.hex());
  const auto content = daemon->blobs().get(got);
  if (!content.ok())
    out.lost.push_back("the content of the snapshot: " + content.status().ToString());
  else if (sha256(*content) != got)
    out.wrong.push_back("the snapshot's content is another one");
  // Once more after a restart of the daemon.
  killed = true;
  const std::int64_t later = time.elapsed_us() + kSecond;
  go([&] { return time.elapsed_us() >= later; }, later);
  const auto row =
      daemon->control().call_sync([got](store::ControlStore& s) { return s.snapshot(got); });
  if (!row.ok() || std::count(row->aliases.begin(), row->aliases.end(), kAlias) != 1)
    out.lost.push_back("the snapshot that was acknowledged");
}

void FaultMatrix::Case::push(Outcome& out) {
  if (!put_weights(out, "push")) return;
  const std::uint32_t boots = board().boots();
  // What the board really holds, when the line is quiet.
  const std::int64_t later = std::max(quiet_at, time.elapsed_us()) + kSecond;
  go([&] { return time.elapsed_us() >= later; }, later);
  Hash got;
  const auto ask = [&] {
    daemon->fleet().pull_weights(
        context("look"), uid, "",
        take<model::Snapshot>([&](const model::Snapshot& s) { got = s.hash; }));
  };
  const bool read = persist(ask, limit());
  if (board().boots() != boots) return;  // its memory was lost after the acknowledgement
  if (!read)
    out.lost.push_back("the weights that the board acknowledged: " + last.ToString());
  else if (got != matrix.weights_)
    out.wrong.push_back("the board holds weights " + got.hex());
}

FaultMatrix::FaultMatrix(const std::string& golden_dir)
    : empty_(std::make_unique<VirtualData>(golden_dir)) {
  learn_reference();
}

void FaultMatrix::learn_reference() {
  Case first(*this, Fault::kNone, Operation::kTrain, 0);
  Outcome out;
  first.train(out);
  if (!out.sound() || state_.is_zero())
    throw std::runtime_error("the undisturbed run: " + out.text());
  first.daemon.reset();
  trained_ = std::make_unique<VirtualData>(first.data);
}

Outcome FaultMatrix::run(Fault fault, Operation operation, std::uint64_t seed) {
  // How long the operation takes undisturbed decides when things happen; it depends on the line
  // and the board, which the seed picks.
  const std::pair key(operation, seed % 60);
  if (durations_.count(key) == 0) {
    std::int64_t took = 0;
    const Outcome calm = play(Fault::kNone, operation, seed % 60, 0, &took);
    if (!calm.sound()) throw std::runtime_error("undisturbed: " + calm.text());
    durations_[key] = took;
  }
  return play(fault, operation, seed, durations_[key], nullptr);
}

Outcome FaultMatrix::play(Fault fault, Operation operation, std::uint64_t seed,
                          std::int64_t duration_us, std::int64_t* took_us) {
  Outcome out;
  Case one(*this, fault, operation, seed);
  one.quiet_at = kSecond;
  if (!one.go([&] { return one.daemon->online(one.uid); }, 60 * kSecond)) {
    out.hang = "the board did not come online";
    return out;
  }
  if (operation == Operation::kPull && !one.put_weights(out, "before")) return out;
  const std::int64_t begin = one.time.elapsed_us();
  if (fault != Fault::kNone) one.start_fault(duration_us);
  switch (operation) {
    case Operation::kTrain:
      one.train(out);
      break;
    case Operation::kPull:
      one.pull(out);
      break;
    case Operation::kPush:
      one.push(out);
      break;
  }
  out.seconds = static_cast<double>(one.time.elapsed_us()) / 1e6;
  out.injected = one.events + one.board().to_board.injected + one.board().to_host.injected;
  if (took_us != nullptr) *took_us = one.time.elapsed_us() - begin;
  return out;
}

}  // namespace odt::test
