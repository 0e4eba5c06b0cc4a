#include "support/virtual/fault_matrix.h"

#include "support/virtual/fault_case.h"

namespace odt::test {

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
      {Operation::kTrain, "train"},
      {Operation::kPull, "pull"},
      {Operation::kPush, "push"},
      {Operation::kCommit, "commit"}};
  return list;
}

std::string Outcome::text() const {
  std::string out;
  for (const auto& w : wrong) out += "wrong: " + w + "\n";
  for (const auto& l : lost) out += "lost: " + l + "\n";
  if (!hang.empty()) out += "hang: " + hang + "\n";
  return out;
}

FaultMatrix::FaultMatrix(const std::string& golden_dir)
    : empty_(std::make_unique<VirtualData>(golden_dir)) {
  learn_reference();
}

void FaultMatrix::learn_reference() {
  Case first(*this, Fault::kNone, Operation::kTrain, 0);
  Outcome out;
  const auto run = first.train(out);
  if (!run || !out.sound()) throw std::runtime_error("the undisturbed run: " + out.text());
  state_ = run->final_state_hash;
  weights_ = run->final_weights_hash;
  first.epochs = 1;
  const auto shorter = first.run_to_end(out);
  if (!shorter) throw std::runtime_error("the shorter run: " + out.text());
  older_ = shorter->final_weights_hash;
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
  one.quiet_at = Case::kSecond;
  if (!one.go([&] { return one.daemon->online(one.uid); }, 60 * Case::kSecond)) {
    out.hang = "the board did not come online";
    return out;
  }
  if (operation == Operation::kPull && !one.put_weights(out, "before", weights_)) return out;
  if (operation == Operation::kCommit) one.commit_first(out);
  if (!out.sound()) return out;
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
    case Operation::kCommit:
      one.commit(out);
      break;
  }
  out.seconds = static_cast<double>(one.time.elapsed_us()) / 1e6;
  out.injected = one.events + one.board().to_board.injected + one.board().to_host.injected;
  if (took_us != nullptr) *took_us = one.time.elapsed_us() - begin;
  return out;
}

}  // namespace odt::test
