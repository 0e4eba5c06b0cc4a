// Raw telemetry as a file: whole, or an error.
#include <gtest/gtest.h>

#include <algorithm>

#include "api/export_text.h"
#include "store/memory_store.h"

namespace odt::api {
namespace {

class ExportTest : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<model::TelemetryFrame> frames(250);
    for (std::uint32_t i = 0; i < frames.size(); ++i) {
      frames[i].run_id = run_;
      frames[i].attempt = 1;
      frames[i].step = i + 1;
    }
    ASSERT_TRUE(store_.append(frames).ok());
  }
  Export begin() {
    store::TelemetryStore::Range range{run_};
    range.max_frames = 100;
    return {range, true};
  }
  static long lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

  Uuid run_ = new_uuid();
  store::MemoryTelemetryStore store_;
};

TEST_F(ExportTest, PiecesAreTheWhole) {
  Export job = begin();
  long all = 0;
  while (true) {
    const auto piece = job.next(store_);
    ASSERT_TRUE(piece.ok()) << piece.status();
    if (!*piece) break;
    all += lines(**piece);
  }
  EXPECT_EQ(all, 2 + 250);  // the run's line and the names of the columns
}

TEST_F(ExportTest, RunThatIsThinnedMeanwhileIsNoShortFile) {
  Export job = begin();
  ASSERT_TRUE(job.next(store_).ok());
  ASSERT_TRUE(store_.thin(run_).ok());
  const Status status = job.next(store_).status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_NE(status.message().find("ends before step 101"), std::string::npos) << status;
  // Begun anew it says what is left.
  Export again = begin();
  const auto piece = again.next(store_);
  ASSERT_TRUE(piece.ok() && piece->has_value());
  EXPECT_NE((*piece)->find("NOT COMPLETE"), std::string::npos);
}

TEST_F(ExportTest, RunThatIsPurgedMeanwhileIsNotFound) {
  Export job = begin();
  ASSERT_TRUE(job.next(store_).ok());
  ASSERT_TRUE(store_.erase(run_).ok());
  const Status status = job.next(store_).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_NE(status.message().find("purged"), std::string::npos) << status;
}

TEST_F(ExportTest, AnotherRunThatIsThinnedMeanwhileDoesNotMatter) {
  model::TelemetryFrame other;
  other.run_id = new_uuid();
  other.attempt = other.step = 1;
  ASSERT_TRUE(store_.append({other}).ok());
  Export job = begin();
  ASSERT_TRUE(job.next(store_).ok());
  ASSERT_TRUE(store_.thin(other.run_id).ok());
  EXPECT_TRUE(job.next(store_).ok());
}

}  // namespace
}  // namespace odt::api
