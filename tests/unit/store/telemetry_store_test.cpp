// The conformance suite of TelemetryStore: the same for SQLite and memory.
#include <sqlite3.h>

#include <random>

#include "store/memory_store.h"
#include "store/sqlite_telemetry.h"
#include "store/telemetry_codec.h"
#include "store_fixture.h"

namespace odt::store {
namespace {

using model::TelemetryFrame;

void expect_same(const TelemetryFrame& a, const TelemetryFrame& b) {
  EXPECT_EQ(a.run_id, b.run_id);
  EXPECT_EQ(a.attempt, b.attempt);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.board_uid, b.board_uid);
  EXPECT_EQ(a.time_us, b.time_us);
  EXPECT_EQ(a.boot_id, b.boot_id);
  EXPECT_EQ(a.event_id, b.event_id);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.correct, b.correct);
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.gap, b.gap);
}

class TelemetryStoreTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { open(); }
  void open() {
    store_.reset();
    if (!GetParam()) {
      store_ = std::make_unique<MemoryTelemetryStore>(3000);
      return;
    }
    auto opened = SqliteTelemetryStore::open(dir_.file("telemetry.db"), 1 << 20);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = std::move(*opened);
  }
  TelemetryStore::Frames read(std::uint32_t attempt = 0, std::uint32_t first = 0,
                              std::uint32_t last = 0xFFFFFFFF, std::uint32_t most = 2000) {
    auto frames = store_->read({run_, attempt, first, last, most});
    EXPECT_TRUE(frames.ok()) << frames.status();
    return *frames;
  }
  std::vector<std::uint32_t> steps(const TelemetryStore::Frames& frames) {
    std::vector<std::uint32_t> out;
    for (const auto& f : frames.frames) out.push_back(f.step);
    return out;
  }

  TempDir dir_;
  Uuid run_ = new_uuid();
  std::unique_ptr<TelemetryStore> store_;
};

INSTANTIATE_TEST_SUITE_P(All, TelemetryStoreTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "Sqlite" : "Memory"; });

TEST_P(TelemetryStoreTest, KeepsEveryField) {
  ASSERT_TRUE(store_->append({frame_of(run_, 2), frame_of(run_, 1)}).ok());
  if (GetParam()) open();
  const auto frames = read();
  ASSERT_EQ(frames.frames.size(), 2u);
  expect_same(frames.frames[0], frame_of(run_, 1));
  expect_same(frames.frames[1], frame_of(run_, 2));
}

TEST_P(TelemetryStoreTest, EqualFrameIsIgnoredWhateverItsTimeAndEventNumber) {
  ASSERT_TRUE(store_->append({frame_of(run_, 1)}).ok());
  auto again = frame_of(run_, 1);
  again.time_us += 5;
  again.event_id += 5;
  EXPECT_TRUE(store_->append({again, again}).ok());
  const auto frames = read();
  ASSERT_EQ(frames.total, 1u);
  expect_same(frames.frames[0], frame_of(run_, 1));
}

TEST_P(TelemetryStoreTest, DifferentFrameIsDataLossAndNothingIsWritten) {
  ASSERT_TRUE(store_->append({frame_of(run_, 5)}).ok());
  const std::vector<std::function<void(TelemetryFrame&)>> changes = {
      [](TelemetryFrame& f) { f.loss.sum += 1; }, [](TelemetryFrame& f) { f.correct += 1; },
      [](TelemetryFrame& f) { f.layers[1].shift += 1; },
      [](TelemetryFrame& f) { f.layers.pop_back(); }};
  for (const auto& change : changes) {
    auto other = frame_of(run_, 5);
    change(other);
    const Uuid fresh = new_uuid();
    EXPECT_TRUE(absl::IsDataLoss(store_->append({frame_of(fresh, 1), other})));
    EXPECT_EQ(store_->read({fresh})->total, 0u);
    EXPECT_TRUE(store_->append({frame_of(fresh, 1)}).ok());
  }
  auto twice = frame_of(run_, 6);
  auto conflict = twice;
  conflict.correct += 1;
  EXPECT_TRUE(absl::IsDataLoss(store_->append({twice, conflict})));
  EXPECT_EQ(read().total, 1u);
}

// The quick way from record to record of a run ends where anything else changes.
TEST_P(TelemetryStoreTest, RecordsKeepTheirBoardAndBootThroughRefusalsAndErasure) {
  const auto of = [&](std::uint32_t step, std::uint64_t boot, std::uint8_t board) {
    auto frame = frame_of(run_, step);
    frame.boot_id = boot;
    frame.board_uid.bytes.back() = board;
    return frame;
  };
  std::vector<TelemetryFrame> wanted = {of(1, 7, 1), of(2, 7, 1), of(3, 8, 1),
                                        of(4, 8, 1), of(5, 8, 2), of(6, 8, 2)};
  for (const auto& frame : wanted) ASSERT_TRUE(store_->append({frame}).ok());
  auto other = of(6, 8, 2);
  other.correct += 1;
  const Uuid fresh = new_uuid();
  EXPECT_TRUE(absl::IsDataLoss(
      store_->append({of(7, 8, 2), frame_of(fresh, 1), frame_of(fresh, 2), other})));
  ASSERT_TRUE(store_->append({frame_of(fresh, 2), frame_of(fresh, 3)}).ok());
  for (const std::uint32_t step : {7u, 8u}) {
    wanted.push_back(of(step, 9, 2));
    ASSERT_TRUE(store_->append({wanted.back()}).ok());
  }
  const auto compare = [&] {
    const auto got = read();
    ASSERT_EQ(got.frames.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) expect_same(got.frames[i], wanted[i]);
    EXPECT_EQ(store_->read({fresh})->total, 2u);
  };
  compare();
  if (GetParam()) open();
  compare();
  ASSERT_TRUE(store_->erase(run_).ok());
  wanted = {of(9, 9, 2), of(10, 9, 2)};
  for (const auto& frame : wanted) ASSERT_TRUE(store_->append({frame}).ok());
  compare();
}

TEST_P(TelemetryStoreTest, NewAttemptIsAnotherRecordAndTheNewestIsRead) {
  for (std::uint32_t step : {1u, 2u, 3u}) ASSERT_TRUE(store_->append({frame_of(run_, step)}).ok());
  auto second = frame_of(run_, 2);
  second.attempt = 2;
  second.correct = 8;
  ASSERT_TRUE(store_->append({second}).ok());
  const auto newest = read();
  ASSERT_EQ(newest.total, 3u);
  EXPECT_EQ(newest.frames[1].attempt, 2u);
  EXPECT_EQ(newest.frames[1].correct, 8u);
  EXPECT_EQ(newest.frames[2].attempt, 1u);
  EXPECT_EQ(steps(read(1)), (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(steps(read(2)), std::vector<std::uint32_t>{2});
  EXPECT_EQ(read(3).total, 0u);
}

TEST_P(TelemetryStoreTest, ReadsRangesEvenlyChosen) {
  std::vector<TelemetryFrame> frames;
  for (std::uint32_t step = 1; step <= 100; ++step) frames.push_back(frame_of(run_, step));
  ASSERT_TRUE(store_->append(frames).ok());
  EXPECT_EQ(steps(read(0, 10, 12)), (std::vector<std::uint32_t>{10, 11, 12}));
  const auto few = read(0, 0, 0xFFFFFFFF, 4);
  EXPECT_EQ(few.total, 100u);
  EXPECT_EQ(steps(few), (std::vector<std::uint32_t>{1, 34, 67, 100}));
  EXPECT_EQ(read(0, 1, 50, 50).frames.size(), 50u);
  EXPECT_EQ(read(0, 1, 50, 49).frames.size(), 49u);
  EXPECT_EQ(steps(read(0, 1, 50, 1)), std::vector<std::uint32_t>{1});
  EXPECT_EQ(read(0, 1, 50, 0).frames.size(), 0u);
  EXPECT_EQ(read(0, 1, 50, 0).total, 50u);
}

TEST_P(TelemetryStoreTest, GapGivesWayToTheStepAndNeverCoversOne) {
  auto gap = frame_of(run_, 10);
  gap.gap = 5;
  gap.layers.clear();
  ASSERT_TRUE(store_->append({gap}).ok());
  EXPECT_EQ(read().frames[0].gap, 5u);
  ASSERT_TRUE(store_->append({frame_of(run_, 10)}).ok());
  auto frames = read();
  ASSERT_EQ(frames.total, 2u);
  expect_same(frames.frames[0], frame_of(run_, 10));
  EXPECT_EQ(frames.frames[1].step, 11u);
  EXPECT_EQ(frames.frames[1].gap, 4u);
  ASSERT_TRUE(store_->append({gap}).ok());  // step 10 is there: ignored
  expect_same(read().frames[0], frame_of(run_, 10));
}

TEST_P(TelemetryStoreTest, QuotaIsAnErrorAndWhatWasThereStaysReadable) {
  std::uint32_t step = 0;
  std::mt19937 random(1);
  Status status;
  while (status.ok() && step < 2'000'000) {
    std::vector<TelemetryFrame> frames;
    for (int i = 0; i < 1000; ++i) {
      frames.push_back(frame_of(run_, ++step));
      frames.back().loss.sum = static_cast<std::int32_t>(random());  // does not pack
    }
    status = store_->append(frames);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(read().total, step - 1000);
  EXPECT_GT(*store_->size_bytes(), 0u);
}

TEST_P(TelemetryStoreTest, UnknownRunHasNoFrames) {
  EXPECT_EQ(store_->read({new_uuid()})->total, 0u);
}

TEST(TelemetryCodec, RefusesTruncatedAndUnknownBytes) {
  const std::string data = encode_frame(frame_of(new_uuid(), 300));
  TelemetryFrame frame;
  EXPECT_TRUE(decode_frame(data, frame).ok());
  for (std::size_t size = 0; size < data.size(); ++size)
    EXPECT_TRUE(absl::IsDataLoss(decode_frame(data.substr(0, size), frame))) << size;
  EXPECT_TRUE(absl::IsDataLoss(decode_frame(data + "x", frame)));
  EXPECT_TRUE(absl::IsDataLoss(decode_frame("\x02" + data.substr(1), frame)));
}

TEST(TelemetryCodec, FrameOfEightLayersIsAtMostSixtyBytes) {
  auto frame = frame_of(new_uuid(), 1'000'000);
  frame.layers.assign(8, {7, 3, 8});
  EXPECT_LE(encode_frame(frame).size(), 60u);
}

}  // namespace
}  // namespace odt::store
