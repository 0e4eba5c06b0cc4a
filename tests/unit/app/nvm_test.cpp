// Non-volatile memory: what is committed, when, and what comes back after a power cut between any
// two bytes.
#include "capture_rig.h"
#include "full.h"

namespace odt::testing {
namespace {

constexpr std::uint32_t kSize = 64 * 1024;
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kCoarser = 29;  // boots are slow
#else
constexpr std::size_t kCoarser = 1;
#endif

pb::Response commit_nvm(BoardRig& rig, std::uint32_t id, const std::string& expect = {}) {
  pb::Request q;
  q.mutable_nvm_commit()->set_commit_id(id);
  q.mutable_nvm_commit()->set_expect_hash(expect);
  pb::Response r = rig.request(q);
  for (int i = 0; i < 200 && r.accepted_ms() != 0; i++) {
    rig.turns(20);
    r = rig.request(q);
  }
  EXPECT_EQ(r.accepted_ms(), 0u);
  return r;
}

pb::NvmStatus status(BoardRig& rig) {
  pb::Request q;
  q.mutable_nvm_status();
  return rig.request(q).nvm();
}

void steer_job(BoardRig& rig, pb::JobControl::Action action) {
  pb::Request q;
  q.mutable_job_control()->set_run_id(std::string(16, 'r'));
  q.mutable_job_control()->set_action(action);
  EXPECT_FALSE(rig.request(q).has_error());
}

// A resident run, paused after some steps.
struct PausedRun {
  explicit PausedRun(BoardRig& r, bool guard = false)
      : rig(r), train(golden_part(40, 32)), held(guard ? golden_part(0, 40) : std::string()) {
    rig.hello();
    load(rig, train, held);
    spec = small_spec(train, held);
    spec.set_epochs(40);
    EXPECT_FALSE(rig.request(start_request(spec)).has_error());
  }
  void go_on(int turns = 9) {
    steer_job(rig, pb::JobControl::ACTION_RESUME);
    rig.turns(turns);
    steer_job(rig, pb::JobControl::ACTION_PAUSE);
  }
  BoardRig& rig;
  std::string train, held;
  pb::RunSpec spec;
};

// Replays a log of writes up to a byte.
std::string cut(std::string memory, const std::vector<RigNvm::Write>& log, std::size_t bytes) {
  for (const auto& w : log) {
    const std::size_t n = std::min(bytes, w.data.size());
    memory.replace(w.at, n, w.data, 0, n);
    bytes -= n;
  }
  return memory;
}

std::size_t total(const std::vector<RigNvm::Write>& log) {
  std::size_t n = 0;
  for (const auto& w : log) n += w.data.size();
  return n;
}

// A commit over an older one, cut at every `stride`th byte: the board comes back with one of them.
void old_or_new(std::uint32_t page, std::uint32_t unit, std::size_t stride) {
  RigNvm memory(kSize, page, unit);
  RigOptions options;
  options.arena = 96 * 1024;
  options.nvm = &memory;
  BoardRig rig(options);
  PausedRun run(rig);
  run.go_on();
  ASSERT_FALSE(commit_nvm(rig, 1).has_error());
  run.go_on();
  ASSERT_FALSE(commit_nvm(rig, 2).has_error());  // both slots are full
  const pb::State old = state_of(rig);
  run.go_on();
  const std::string before = memory.bytes;
  memory.log.clear();
  ASSERT_FALSE(commit_nvm(rig, 3).has_error());
  const pb::State fresh = state_of(rig);
  ASSERT_NE(old.state_hash(), fresh.state_hash());
  const auto log = memory.log;
  const std::size_t all = total(log);
  bool turned = false;
  for (std::size_t at = 0; at <= all; at += at < all ? std::min(stride, all - at) : 1) {
    memory.bytes = cut(before, log, at);
    rig.restart();
    const pb::HelloAck ack = rig.hello();
    ASSERT_TRUE(ack.restored()) << "cut at byte " << at;
    const bool is_new = ack.last_step() == fresh.step();
    const pb::State& want = is_new ? fresh : old;
    ASSERT_EQ(ack.state_hash(), want.state_hash().substr(0, 16)) << "cut at byte " << at;
    ASSERT_TRUE(is_new || !turned) << "old again at byte " << at;
    turned = is_new;
    if (at % 1009 != 0) continue;
    // What HELLO_ACK says is what can be read.
    ASSERT_EQ(sha256(rig.pull(pb::RESOURCE_STATE)), want.state_hash());
  }
  EXPECT_TRUE(turned) << "the whole commit is the new one";
}

}  // namespace

TEST(Nvm, PowerCutAtEveryByteLeavesOldOrNew) { old_or_new(128, 0, kCoarser); }
TEST(Nvm, PowerCutWithSmallPagesLeavesOldOrNew) { old_or_new(16, 0, 37 * kCoarser); }
TEST(Nvm, PowerCutWithEraseUnitsLeavesOldOrNew) { old_or_new(16, 2048, 37 * kCoarser); }
TEST(Nvm, PowerCutWithLargePagesLeavesOldOrNew) { old_or_new(4096, 8192, 61 * kCoarser); }

TEST(Nvm, AFirstCommitThatIsCutIsNone) {
  RigNvm memory(kSize);
  BoardRig rig({.nvm = &memory});
  PausedRun run(rig);
  run.go_on();
  const std::string before = memory.bytes;
  ASSERT_FALSE(commit_nvm(rig, 1).has_error());
  const auto log = memory.log;
  for (std::size_t at = 0; at < total(log); at += 499) {
    memory.bytes = cut(before, log, at);
    rig.restart();
    const pb::HelloAck ack = rig.hello();
    ASSERT_FALSE(ack.restored());
    ASSERT_TRUE(ack.model_hash().empty());
  }
}

TEST(Nvm, CommitsDoNotChangeTheRun) {
  std::string want;
  for (const std::uint32_t every : {0u, 1u, 3u}) {
    RigNvm memory(kSize);
    BoardRig rig({.nvm = &memory});
    rig.hello();
    const std::string train = golden_part(40, 32), held = golden_part(0, 40);
    load(rig, train, held);
    pb::RunSpec spec = small_spec(train, held);
    spec.set_commit_every(every);
    ASSERT_FALSE(rig.request(start_request(spec)).has_error());
    rig.settle(20000);
    const pb::State state = state_of(rig);
    ASSERT_EQ(state.job(), pb::JOB_STATE_DONE);
    if (want.empty()) want = state.state_hash();
    EXPECT_EQ(state.state_hash(), want);
    const pb::NvmStatus nvm = status(rig);
    EXPECT_EQ(nvm.sequence() > 0, every != 0);
    if (every != 0) {
      EXPECT_EQ(nvm.hash(), want) << "the end is committed, too";
    }
    std::size_t commits = 0;
    for (const auto& [id, event] : rig.events) commits += event.has_nvm();
    EXPECT_EQ(commits, every == 0 ? 0u : 12 / every + 1);
  }
}

TEST(Nvm, ARunGoesOnFromWhatCameBack) {
  RigNvm memory(kSize);
  BoardRig rig({.nvm = &memory});
  PausedRun run(rig, true);
  run.go_on(3000);  // beyond a first best, in mid-epoch or not
  const pb::State held = state_of(rig);
  ASSERT_FALSE(commit_nvm(rig, 1, held.state_hash()).has_error());
  steer_job(rig, pb::JobControl::ACTION_RESUME);
  rig.settle(200000);
  pb::Request ack;
  ack.mutable_ack_epoch()->set_run_id(std::string(16, 'r'));
  ack.mutable_ack_epoch()->set_attempt(1);
  const auto finish = [&](std::uint32_t attempt) {
    ack.mutable_ack_epoch()->set_attempt(attempt);
    for (int i = 0; i < 100 && state_of(rig).job() != pb::JOB_STATE_DONE; i++) {
      ack.mutable_ack_epoch()->set_epoch(static_cast<std::uint32_t>(i));
      rig.request(ack);
      rig.settle(5000);
    }
    return state_of(rig);
  };
  const pb::State want = finish(1);
  ASSERT_EQ(want.job(), pb::JOB_STATE_DONE);
  rig.restart();
  const pb::HelloAck hello = rig.hello();
  ASSERT_TRUE(hello.restored());
  EXPECT_EQ(hello.run_id(), std::string(16, 'r'));
  EXPECT_EQ(hello.last_step(), held.step());
  EXPECT_EQ(hello.job(), pb::JOB_STATE_UNSPECIFIED);
  rig.push(pb::RESOURCE_SAMPLES, run.train, pb::SAMPLE_ROLE_TRAIN);
  rig.push(pb::RESOURCE_SAMPLES, run.held, pb::SAMPLE_ROLE_HELDOUT);
  pb::Request start = start_request(run.spec, std::string(16, 'r'), 2);
  start.mutable_start_run()->set_expect_state_hash(held.state_hash());
  const auto started = rig.request(start);
  ASSERT_FALSE(started.has_error()) << started.ShortDebugString();
  rig.settle(20000);
  EXPECT_EQ(finish(2).state_hash(), want.state_hash());
}

TEST(Nvm, BusyComesFirstAndTheLinkIsPolledBetweenPages) {
  RigNvm memory(kSize);
  BoardRig rig({.nvm = &memory});
  PausedRun run(rig);
  run.go_on();
  pb::Request q;
  q.mutable_nvm_commit()->set_commit_id(1);
  EXPECT_GT(rig.request(q).accepted_ms(), 0u);
  rig.turns(3);
  EXPECT_TRUE(rig.take(FRAME_BUSY).has_value());
  rig.send(FRAME_PING, 77);
  rig.turns(3);
  EXPECT_TRUE(rig.take(FRAME_PONG).has_value());
  EXPECT_EQ(status(rig).sequence(), 0u) << "still under way";
  // What would change what is written has to wait; nothing has happened.
  const auto start = rig.request(start_request(run.spec, std::string(16, 's')));
  EXPECT_GT(start.accepted_ms(), 0u);
  rig.turns(500);
  bool over = false;
  for (const auto& f : rig.take()) over = over || f.type == FRAME_PONG;
  EXPECT_TRUE(over) << "PONG ends BUSY";
  EXPECT_EQ(status(rig).sequence(), 1u);
}

TEST(Nvm, IdsAndCompareAndSet) {
  RigNvm memory(kSize);
  BoardRig rig({.nvm = &memory});
  PausedRun run(rig);
  run.go_on();
  EXPECT_EQ(commit_nvm(rig, 1, std::string(32, 'x')).error().code(),
            pb::STATUS_CODE_FAILED_PRECONDITION);
  EXPECT_EQ(commit_nvm(rig, 0).error().code(), pb::STATUS_CODE_INVALID_ARGUMENT);
  EXPECT_EQ(commit_nvm(rig, 1, state_of(rig).state_hash()).nvm().sequence(), 1u);
  EXPECT_EQ(commit_nvm(rig, 1).nvm().sequence(), 1u) << "equal id";
  EXPECT_EQ(commit_nvm(rig, 2).nvm().sequence(), 1u) << "equal content";
  run.go_on();
  EXPECT_EQ(commit_nvm(rig, 1).nvm().sequence(), 2u);
  EXPECT_EQ(status(rig).writes_0() + status(rig).writes_1(), 2u);
}

TEST(Nvm, WhatDoesNotFitTwiceIsRefusedWithTheLimit) {
  RigNvm memory(8192);
  BoardRig rig({.nvm = &memory});
  PausedRun run(rig);
  run.go_on();
  const auto r = commit_nvm(rig, 1);
  EXPECT_EQ(r.error().code(), pb::STATUS_CODE_RESOURCE_EXHAUSTED);
  EXPECT_EQ(r.error().limit(), 8192u / 2 - 128);
  EXPECT_NE(r.error().text().find("two slots"), std::string::npos) << r.error().text();
  EXPECT_TRUE(memory.log.empty());
  steer_job(rig, pb::JobControl::ACTION_STOP);
  run.spec.set_commit_every(1);
  EXPECT_EQ(rig.request(start_request(run.spec, std::string(16, 's'))).error().code(),
            pb::STATUS_CODE_RESOURCE_EXHAUSTED);
}

TEST(Nvm, APageThatDoesNotReadBackLeavesTheOldCommit) {
  RigNvm memory(kSize);
  BoardRig rig({.nvm = &memory});
  PausedRun run(rig);
  run.go_on();
  ASSERT_FALSE(commit_nvm(rig, 1).has_error());
  const pb::State old = state_of(rig);
  run.go_on();
  memory.good_writes = 10;
  EXPECT_EQ(commit_nvm(rig, 2).error().code(), pb::STATUS_CODE_DATA_LOSS);
  memory.good_writes = SIZE_MAX;
  EXPECT_EQ(status(rig).hash(), old.state_hash());
  rig.restart();
  EXPECT_EQ(rig.hello().state_hash(), old.state_hash().substr(0, 16));
}

// Chunks of a transfer that was opened before the commit come while it is written.
TEST(Nvm, ContentThatChangesUnderACommitIsNotCommitted) {
  RigNvm memory(kSize);
  BoardRig rig({.nvm = &memory});
  PausedRun run(rig);
  run.go_on();
  const std::string older = rig.pull(pb::RESOURCE_STATE);
  run.go_on();
  ASSERT_EQ(commit_nvm(rig, 1).nvm().sequence(), 1u);
  run.go_on();
  steer_job(rig, pb::JobControl::ACTION_STOP);
  rig.open(pb::RESOURCE_STATE, older, 0, 0);
  pb::Request q;
  q.mutable_nvm_commit()->set_commit_id(2);
  ASSERT_GT(rig.request(q).accepted_ms(), 0u);
  rig.turns(4);
  rig.events.clear();
  rig.chunks(older, 0, static_cast<std::uint32_t>(older.size()));
  rig.settle();
  ASSERT_FALSE(rig.events.empty());
  EXPECT_NE(rig.events.back().second.nvm().text().find("changed meanwhile"), std::string::npos);
  EXPECT_EQ(status(rig).sequence(), 1u);
  rig.restart();
  EXPECT_TRUE(rig.hello().restored());
}

struct NvmCapture : Capture {};

// How windows are made is content, too: other settings before the head is written.
TEST_F(NvmCapture, SettingsThatChangeUnderACommitAreNotCommitted) {
  RigNvm memory(kSize);
  begin({.nvm = &memory});
  ASSERT_FALSE(start().has_error());
  ASSERT_EQ(commit_nvm(*rig, 1).nvm().sequence(), 1u);
  const auto change_under = [&](std::uint32_t id, std::uint32_t stride, int turns) {
    settings.set_stride_steps(stride);
    ASSERT_FALSE(start().has_error());
    pb::Request q;
    q.mutable_nvm_commit()->set_commit_id(id);
    ASSERT_GT(rig->request(q).accepted_ms(), 0u);
    rig->turns(turns);
    ASSERT_EQ(rig->app().nvm.sequence, 1u);
    settings.set_stride_steps(stride + 1);
    ASSERT_FALSE(start().has_error());
    rig->settle();
  };
  for (int turns = 0; turns < 3; turns++) {
    rig->events.clear();
    change_under(static_cast<std::uint32_t>(10 + turns), 1, turns);
    ASSERT_FALSE(rig->events.empty());
    EXPECT_NE(rig->events.back().second.nvm().text().find("changed meanwhile"), std::string::npos)
        << turns;
    EXPECT_EQ(status(*rig).sequence(), 1u);
  }
  EXPECT_EQ(commit_nvm(*rig, 20).nvm().sequence(), 2u) << "without a change it is committed";
}

TEST(Nvm, WithoutMemoryItIsSaid) {
  BoardRig rig;
  EXPECT_EQ(rig.hello().caps() & APP_CAP_NVM, 0u);
  pb::Request q;
  q.mutable_nvm_commit()->set_commit_id(1);
  EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_UNIMPLEMENTED);
}

TEST(Nvm, NothingToCommitIsSaid) {
  RigNvm memory(kSize);
  BoardRig rig({.nvm = &memory});
  EXPECT_NE(rig.hello().caps() & APP_CAP_NVM, 0u);
  EXPECT_EQ(commit_nvm(rig, 1).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
}

TEST(Nvm, AnyContentBootsAndIsUsedAnew) {
  RigNvm memory(kSize);
  BoardRig rig({.nvm = &memory});
  PausedRun run(rig);
  run.go_on();
  ASSERT_FALSE(commit_nvm(rig, 1).has_error());
  const std::string good = memory.bytes;
  std::uint32_t x = 1;
  const int rounds = test::repeats(120, 400);
  for (int round = 0; round < rounds; round++) {
    memory.bytes = good;
    for (int i = 0; i < 1 + round % 7; i++) {
      x = x * 1664525u + 1013904223u;
      const std::size_t at = round % 3 == 0 ? x % 128 : (x >> 8) % 20000;
      memory.bytes[kSize / 2 + at] = static_cast<char>(x >> 24);
    }
    rig.restart();
    const pb::HelloAck ack = rig.hello();
    if (memory.bytes == good || ack.restored()) continue;  // it hit what is not read
    EXPECT_TRUE(ack.model_hash().empty());
    EXPECT_FALSE(rig.push(pb::RESOURCE_MODEL_IMAGE, golden_image()).has_error());
    EXPECT_FALSE(commit_nvm(rig, 5).has_error());
  }
}

}  // namespace odt::testing
