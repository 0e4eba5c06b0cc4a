#pragma once

#include <functional>

#include "support/virtual/fault_matrix.h"

namespace odt::test {

// One board and the lives of one daemon.
struct FaultMatrix::Case {
  static constexpr std::int64_t kSecond = 1'000'000;
  static constexpr std::int64_t kPatience = 1800 * kSecond;  // after the last fault
  static constexpr std::int64_t kNoise = 60 * kSecond;       // a noisy line is quiet after that

  Case(FaultMatrix& m, Fault f, Operation o, std::uint64_t s)
      : matrix(m),
        fault(f),
        operation(o),
        streamed(s % 2 != 0),
        by_run(o == Operation::kCommit && s / 5 % 2 != 0),
        time(s * 977 + static_cast<std::uint64_t>(f) * 31 + static_cast<std::uint64_t>(o)),
        world(time),
        data(o == Operation::kTrain || by_run ? *m.empty_ : *m.trained_) {
    BoardSetup setup;
    setup.uid.bytes = {0, 0, 0, 0, 0, 0, 0x5f, 1};
    setup.seed = time.random();
    setup.baud = s % 3 == 0 ? 921600 : 115200;
    setup.one_way_us = s % 4 == 0 ? 8000 : 500;
    setup.step_us = s % 5 == 0 ? 30000 : 2000;
    if (o == Operation::kCommit) setup.nvm = memory(s);
    world.add(setup, s / 2 % 2 != 0);
    uid = setup.uid;
    daemon = std::make_unique<VirtualDaemon>(time, world, data);
  }

  // An EEPROM, or flash with erase units; a slot takes the whole training state.
  static NvmSetup memory(std::uint64_t s) {
    if (s / 3 % 2 != 0) return {.bytes = 128 * 1024};
    return {.bytes = 192 * 1024, .page = 16, .unit = 2048, .write_us = 100, .erase_us = 20000};
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
  // May an operator's tool try again after this answer?
  static bool try_again(const Status& status);
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
  // nullopt: it has not succeeded, `out` says why.
  std::optional<model::Run> run_to_end(Outcome& out);
  std::optional<model::Run> train(Outcome& out);
  void check_records(Outcome& out, const model::Run& run);
  void pull(Outcome& out);
  void push(Outcome& out);
  bool put_weights(Outcome& out, const std::string& request, Hash weights);
  // The weights on the board; zero: not to be had.
  Hash look(const std::string& request, const std::string& alias = {});
  void wait_until(std::int64_t us);

  // fault_commit.cpp: before the faults, and with them.
  void commit_first(Outcome& out);
  void commit(Outcome& out);
  void commit_by_hand(Outcome& out);
  void commit_by_run(Outcome& out);
  std::optional<model::NvmInfo> memory_after(training::FleetControl::NvmAction action,
                                             const std::string& request);
  void check_boots(Outcome& out, std::uint32_t first, Hash must);
  bool lives_on(Outcome& out);
  std::int64_t limit() const { return quiet_at + kPatience; }

  FaultMatrix& matrix;
  Fault fault;
  Operation operation;
  bool streamed;
  bool by_run;  // kCommit: a run commits, not a person
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
  std::uint32_t epochs = 3, commit_every = 0;
};

}  // namespace odt::test
