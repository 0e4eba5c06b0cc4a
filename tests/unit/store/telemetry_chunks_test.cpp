// Chunks, rollups and series: both telemetry stores against plain arithmetic on the records.
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "store/memory_store.h"
#include "store/sqlite_telemetry.h"
#include "store_fixture.h"

namespace odt::store {
namespace {

using model::TelemetryFrame;

TelemetryFrame noisy(const Uuid& run, std::uint32_t attempt, std::uint32_t step,
                     std::mt19937& random) {
  TelemetryFrame f = frame_of(run, step);
  f.attempt = attempt;
  f.time_us = 1'700'000'000'000'000 + std::int64_t{step} * 100'000 +
              static_cast<std::int64_t>(random() % 2000);
  f.event_id = step;
  f.loss = {static_cast<std::int64_t>(random() % 100'000) - 20'000,
            static_cast<std::int8_t>(-8 - static_cast<int>(random() % 2)),
            static_cast<std::uint32_t>(8 + random() % 2), model::LossKind::kCe};
  f.correct = static_cast<std::uint32_t>(random() % 9);
  f.layers.clear();
  for (int i = 0; i < 8; ++i)
    f.layers.push_back({static_cast<std::uint8_t>(5 + random() % 4),
                        static_cast<std::int8_t>(static_cast<int>(random() % 5) - 1), 8});
  return f;
}

// floor(sum * 2^(exp2 + 16) / count), in doubles where they are exact.
std::int64_t loss_value(const model::Loss& loss) {
  const double exact = std::ldexp(static_cast<double>(loss.sum), loss.exp2 + 16) / loss.count;
  return static_cast<std::int64_t>(std::floor(exact));
}

// The value of a series in a record; nothing: it has none.
std::optional<std::int64_t> value_of(const TelemetryFrame& f, SeriesKind kind,
                                     std::uint32_t layer) {
  if (f.gap != 0) return std::nullopt;
  if (kind == SeriesKind::kLoss)
    return f.loss.count == 0 ? std::nullopt : std::optional(loss_value(f.loss));
  if (kind == SeriesKind::kCorrect) return f.correct;
  if (layer >= f.layers.size()) return std::nullopt;
  if (kind == SeriesKind::kBits) return f.layers[layer].bits;
  return kind == SeriesKind::kShift ? f.layers[layer].shift : f.layers[layer].k;
}

class ChunksTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { open(); }
  void open() {
    if (!GetParam()) {
      if (!store_) store_ = std::make_unique<MemoryTelemetryStore>();
      return;
    }
    store_.reset();
    auto opened = SqliteTelemetryStore::open(dir_.file("telemetry.db"), 64 << 20);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = std::move(*opened);
  }
  void append(std::uint32_t attempt, std::uint32_t first, std::uint32_t last,
              std::uint32_t every = 1) {
    std::vector<TelemetryFrame> frames;
    for (std::uint32_t step = first; step <= last; step += every) {
      frames.push_back(noisy(run_, attempt, step, random_));
      kept_[{attempt, step}] = frames.back();
      if (frames.size() < 37 && step + every <= last) continue;
      const Status status = store_->append(frames);
      ASSERT_TRUE(status.ok()) << status;
      frames.clear();
    }
  }
  void expect_read(std::uint32_t attempt = 0) {
    std::map<std::uint32_t, TelemetryFrame> wanted;
    for (const auto& [key, frame] : kept_)
      if (attempt == 0 || attempt == key.first) wanted[key.second] = frame;
    const auto got = store_->read({run_, attempt, 0, 0xFFFFFFFF, 10'000'000});
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->frames.size(), wanted.size());
    EXPECT_EQ(got->total, wanted.size());
    auto it = wanted.begin();
    for (const TelemetryFrame& f : got->frames) {
      const TelemetryFrame& w = (it++)->second;
      EXPECT_TRUE(f.step == w.step && f.attempt == w.attempt && f.loss == w.loss &&
                  f.correct == w.correct && f.layers == w.layers && f.time_us == w.time_us &&
                  f.boot_id == w.boot_id && f.board_uid == w.board_uid &&
                  f.event_id == w.event_id && f.gap == w.gap)
          << f.attempt << "/" << f.step << " against " << w.attempt << "/" << w.step;
    }
  }
  void expect_series(const SeriesQuery& q) {
    const auto frames = store_->read({run_, q.attempt, q.first_step, q.last_step, 10'000'000});
    const auto got = store_->series(q);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->points, frames->total);
    if (frames->frames.empty()) return;
    EXPECT_EQ(got->first_step, frames->frames.front().step);
    EXPECT_EQ(got->last_step, frames->frames.back().step);
    ASSERT_LE(got->bucket_first.size(), q.buckets);
    ASSERT_TRUE(std::is_sorted(got->bucket_first.begin(), got->bucket_first.end()));
    const auto bucket = [&](std::uint32_t step) {
      return static_cast<std::size_t>(
          std::upper_bound(got->bucket_first.begin(), got->bucket_first.end(), step) -
          got->bucket_first.begin() - 1);
    };
    std::uint64_t gaps = 0;
    std::vector<std::uint32_t> counts(got->bucket_first.size());
    for (const TelemetryFrame& f : frames->frames) {
      gaps += f.gap;
      ++counts[bucket(f.step)];
    }
    EXPECT_EQ(got->gap_steps, gaps);
    EXPECT_EQ(got->count, counts);
    for (const Series& s : got->series) {
      std::vector<std::int64_t> min(counts.size()), max(counts.size()), sum(counts.size());
      std::vector<std::uint32_t> count(counts.size());
      for (const TelemetryFrame& f : frames->frames) {
        const auto value = value_of(f, s.kind, s.layer);
        if (!value) continue;
        const std::size_t b = bucket(f.step);
        min[b] = count[b] == 0 ? *value : std::min(min[b], *value);
        max[b] = count[b] == 0 ? *value : std::max(max[b], *value);
        sum[b] += *value;
        ++count[b];
      }
      const std::string name =
          "series " + std::to_string(static_cast<int>(s.kind)) + "/" + std::to_string(s.layer);
      EXPECT_EQ(s.min, min) << name;
      EXPECT_EQ(s.max, max) << name;
      EXPECT_EQ(s.sum, sum) << name;
      EXPECT_EQ(s.count.empty() ? got->count : s.count, count) << name;
    }
  }
  SeriesQuery query(std::uint32_t buckets, std::uint32_t first = 0, std::uint32_t last = 0xFFFFFFFF,
                    std::uint32_t attempt = 0) {
    return {run_, attempt, first, last, buckets, {}, {}};
  }

  TempDir dir_;
  Uuid run_ = new_uuid();
  std::mt19937 random_{7};
  std::map<std::pair<std::uint32_t, std::uint32_t>, TelemetryFrame> kept_;
  std::unique_ptr<TelemetryStore> store_;
};

INSTANTIATE_TEST_SUITE_P(All, ChunksTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "Sqlite" : "Memory"; });

TEST_P(ChunksTest, EveryFieldOutlivesChunksAndRestarts) {
  append(1, 1, 700);
  expect_read();
  open();
  expect_read();
  append(1, 701, 1500);
  open();
  expect_read();
  EXPECT_EQ(store_->use(run_)->raw_frames, 1500u);
}

TEST_P(ChunksTest, RepeatedStepsAreComparedInChunksToo) {
  append(1, 1, 900);
  open();
  const std::vector<TelemetryFrame> equal = {kept_[{1, 3}], kept_[{1, 300}], kept_[{1, 899}]};
  EXPECT_TRUE(store_->append(equal).ok());
  TelemetryFrame other = kept_[{1, 300}];
  other.layers[2].bits += 1;
  TelemetryFrame fresh = noisy(run_, 1, 901, random_);
  EXPECT_TRUE(absl::IsDataLoss(store_->append({fresh, other})));
  expect_read();  // nothing of that call was written
  append(1, 901, 902);
  expect_read();
}

TEST_P(ChunksTest, LateStepsAndGapsFindTheirPlace) {
  TelemetryFrame gap = noisy(run_, 1, 100, random_);
  gap.gap = 400;
  gap.layers.clear();
  append(1, 1, 99);
  ASSERT_TRUE(store_->append({gap}).ok());
  kept_[{1, 100}] = gap;
  append(1, 500, 1100);
  expect_read();
  // The gap's steps come after all, in the wrong order.
  for (const std::uint32_t step : {100u, 320u, 101u, 250u, 499u}) {
    const TelemetryFrame late = noisy(run_, 1, step, random_);
    ASSERT_TRUE(store_->append({late}).ok());
    if (step == 100 || step == 101) {
      TelemetryFrame rest = kept_[{1, step}];
      rest.step += 1;
      rest.gap -= 1;
      kept_[{1, step + 1}] = rest;
    }
    kept_[{1, step}] = late;
  }
  expect_read();
  append(1, 1101, 2000);
  open();
  expect_read();
  expect_series(query(9));
  expect_series(query(700, 90, 510));
}

TEST_P(ChunksTest, SeriesEqualWhatTheRecordsSay) {
  append(1, 1, 3000);
  for (const std::uint32_t buckets : {1u, 7u, 100u, 200u, 1000u, 5000u}) {
    expect_series(query(buckets));
    expect_series(query(buckets, 1001, 2222));
    expect_series(query(buckets, 17, 17));
  }
  expect_series(query(10, 5000, 6000));
  open();
  expect_series(query(50));
  SeriesQuery few = query(20);
  few.kinds = {SeriesKind::kLoss, SeriesKind::kBits};
  few.layers = {2, 5, 200};
  const auto got = store_->series(few);
  ASSERT_EQ(got->series.size(), 3u);
  EXPECT_EQ(got->series[1].layer, 2u);
  EXPECT_EQ(got->series[2].layer, 5u);
  expect_series(few);
}

TEST_P(ChunksTest, SeriesOfSeveralAttemptsTakeTheNewest) {
  append(1, 1, 1300);
  append(2, 1000, 2000, 3);
  append(4, 1500, 1600);
  expect_read();
  expect_read(2);
  for (const std::uint32_t buckets : {1u, 13u, 200u, 2000u}) {
    expect_series(query(buckets));
    expect_series(query(buckets, 900, 1555));
    expect_series(query(buckets, 0, 0xFFFFFFFF, 2));
  }
}

TEST_P(ChunksTest, SparseStepsAndLongJumps) {
  append(1, 10, 40'000, 10);
  append(1, 4'000'000'000, 4'000'003'000, 7);
  open();
  expect_read();
  expect_series(query(150));
  expect_series(query(150, 0, 40'000));
}

TEST_P(ChunksTest, PartsGoThroughTheWholeRun) {
  append(1, 1, 1300);
  append(2, 1000, 2000);
  std::uint64_t next = 0;
  std::vector<std::uint32_t> steps;
  while (next <= 0xFFFFFFFF) {
    const auto part =
        store_->read_part({run_, 0, static_cast<std::uint32_t>(next), 0xFFFFFFFF, 300});
    ASSERT_TRUE(part.ok());
    EXPECT_LE(part->frames.size(), 1000u);
    for (const auto& frame : part->frames) steps.push_back(frame.step);
    next = part->next_step;
  }
  ASSERT_EQ(steps.size(), 2000u);
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
}

TEST_P(ChunksTest, PartsTellThatRecordsWentBetweenThem) {
  append(1, 1, 1300);
  const Uuid other = new_uuid();
  ASSERT_TRUE(store_->append({frame_of(other, 1)}).ok());
  const auto cuts = [&] { return store_->read_part({run_, 0, 0, 0xFFFFFFFF, 300})->cuts; };
  const std::uint64_t before = cuts();
  ASSERT_TRUE(store_->thin(other).ok());
  ASSERT_TRUE(store_->erase(other).ok());
  EXPECT_EQ(cuts(), before);
  ASSERT_TRUE(store_->thin(run_).ok());
  const std::uint64_t thinned = cuts();
  EXPECT_NE(thinned, before);
  ASSERT_TRUE(store_->erase(run_).ok());
  EXPECT_NE(cuts(), thinned);
}

// Steps of SQLite's machine while fn runs, in every database opened from now on.
class SqliteWork {
 public:
  SqliteWork() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(&opened)); }
  ~SqliteWork() { sqlite3_reset_auto_extension(); }
  template <typename F>
  static int of(F fn) {
    steps_ = 0;
    fn();
    return steps_;
  }

 private:
  static int opened(sqlite3* db, char**, const void*) {
    sqlite3_progress_handler(
        db, 1, [](void*) { return ++steps_, 0; }, nullptr);
    return SQLITE_OK;
  }
  static inline int steps_ = 0;
};

TEST_P(ChunksTest, PartsOfALongRunCostTheSameWhereverTheyAre) {
  if (!GetParam()) return;
  append(1, 1, 256 * 100);
  const SqliteWork work;
  open();
  const auto cost = [&](std::uint32_t first) {
    return SqliteWork::of([&] {
      const auto part = store_->read_part({run_, 0, first, 0xFFFFFFFF, 300});
      ASSERT_TRUE(part.ok());
      EXPECT_GE(part->frames.size(), 300u);
    });
  };
  const int at_start = cost(0), in_the_middle = cost(256 * 50), near_the_end = cost(256 * 96);
  EXPECT_GT(at_start, 0);
  EXPECT_LT(at_start, 2 * near_the_end);
  EXPECT_LT(in_the_middle, 2 * near_the_end);
  EXPECT_LT(near_the_end, 2 * at_start);
  store_.reset();
}

TEST_P(ChunksTest, ThinnedRunsKeepTheirRollups) {
  append(1, 1, 3000);
  append(2, 2800, 3500);
  const auto before = store_->series(query(40));
  EXPECT_GT(*store_->thin(run_), 0u);
  open();
  EXPECT_EQ(store_->read({run_})->total, 0u);
  const auto use = store_->use(run_);
  EXPECT_EQ(use->raw_frames, 0u);
  if (!GetParam()) return;  // windows where attempts meet are told apart by chunk
  const auto after = store_->series(query(40));
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->thinned_points, after->points);
  ASSERT_EQ(after->series.size(), before->series.size());
  // The middle of the run, away from where the attempts meet, is as it was.
  for (std::size_t s = 0; s < after->series.size(); ++s)
    for (std::size_t b = 1; b < 30; ++b) {
      EXPECT_EQ(after->series[s].min[b], before->series[s].min[b]);
      EXPECT_EQ(after->series[s].sum[b], before->series[s].sum[b]);
    }
}

TEST_P(ChunksTest, ErasedRunsLeaveTheOthersAlone) {
  append(1, 1, 600);
  const Uuid other = new_uuid();
  ASSERT_TRUE(store_->append({frame_of(other, 1), frame_of(other, 2)}).ok());
  EXPECT_EQ(*store_->erase(other), 2u);
  open();
  EXPECT_EQ(store_->read({other})->total, 0u);
  const Uuid third = new_uuid();
  ASSERT_TRUE(store_->append({frame_of(third, 9)}).ok());
  open();
  EXPECT_EQ(store_->read({third})->total, 1u);
  EXPECT_EQ(store_->read({other})->total, 0u);
  expect_read();
}

TEST_P(ChunksTest, FullDiskLosesNothingThatWasWritten) {
  if (!GetParam()) return;
  store_.reset();
  auto small = SqliteTelemetryStore::open(dir_.file("small.db"), 1 << 20);
  ASSERT_TRUE(small.ok());
  store_ = std::move(*small);
  std::uint32_t step = 0;
  Status status;
  while (step < 500'000) {
    std::vector<TelemetryFrame> frames;
    for (std::uint32_t i = 0; i < 200; ++i) frames.push_back(noisy(run_, 1, ++step, random_));
    status = store_->append(frames);
    if (!status.ok()) break;
    for (const auto& f : frames) kept_[{1, f.step}] = f;
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  expect_read();
  expect_series(query(33));
  // Room comes back: what is kept is whole, and writing goes on.
  ASSERT_TRUE(store_->erase(run_).ok());
  kept_.clear();
  run_ = new_uuid();
  append(1, 1, 1000);
  expect_read();
}

TEST(TelemetryRoom, EightLayerFramesTakeAtMostSixtyBytes) {
  TempDir dir;
  auto store = SqliteTelemetryStore::open(dir.file("telemetry.db"), 64 << 20);
  ASSERT_TRUE(store.ok());
  std::mt19937 random(3);
  const std::uint32_t runs = 20, steps = 1500;
  std::vector<Uuid> ids;
  for (std::uint32_t i = 0; i < runs; ++i) ids.push_back(new_uuid());
  for (std::uint32_t step = 1; step <= steps; ++step) {
    std::vector<TelemetryFrame> frames;
    for (const Uuid& id : ids) frames.push_back(noisy(id, 1, step, random));
    ASSERT_TRUE((*store)->append(frames).ok());
  }
  EXPECT_LE((*store)->room()->file_bytes, std::uint64_t{60} * runs * steps);
}

}  // namespace
}  // namespace odt::store
