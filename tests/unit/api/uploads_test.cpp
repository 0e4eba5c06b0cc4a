#include "api/uploads.h"

#include <gtest/gtest.h>

#include <fstream>
#include <future>

#include "fakes.h"
#include "store/fs_blob_store.h"

namespace odt::api {
namespace {

template <typename T, typename F>
Result<T> wait(F start) {
  std::promise<Result<T>> promise;
  start([&](Result<T> result) { promise.set_value(std::move(result)); });
  return promise.get_future().get();
}

class UploadsTest : public testing::Test {
 protected:
  void SetUp() override {
    blobs = std::move(*store::FsBlobStore::open(dir.path + "/blobs"));
    make();
  }
  void TearDown() override { uploads->stop(); }
  void make(std::int64_t forget_after_us = std::int64_t{86'400} * 1'000'000) {
    if (uploads) uploads->stop();
    uploads = std::make_unique<Uploads>(
        control, *blobs, clock, UploadOptions{dir.path + "/uploads", 1000, 0, 3, forget_after_us});
    ASSERT_TRUE(uploads->start().ok());
  }
  Result<model::Upload> create(const std::string& content) {
    return wait<model::Upload>(
        [&](auto done) { uploads->create({}, "f", content.size(), sha256(content), done); });
  }
  Result<std::uint64_t> write(const Uuid& id, std::uint64_t offset, const std::string& data) {
    return wait<std::uint64_t>([&](auto done) { uploads->write(id, offset, data, done); });
  }
  Result<Hash> finish(const Uuid& id) {
    return wait<Hash>([&](auto done) { uploads->finish({}, id, done); });
  }
  Result<model::Upload> get(const Uuid& id) {
    return wait<model::Upload>([&](auto done) { uploads->get(id, done); });
  }

  test::TempDir dir;
  SystemClock clock;
  store::ControlThread control{std::make_unique<store::MemoryControlStore>(clock)};
  std::unique_ptr<store::FsBlobStore> blobs;
  std::unique_ptr<Uploads> uploads;
};

TEST_F(UploadsTest, ChunksMayComeAgainAndBecomeABlob) {
  const auto upload = create("hello world");
  ASSERT_TRUE(upload.ok()) << upload.status();
  EXPECT_EQ(*write(upload->id, 0, "hello "), 6u);
  EXPECT_EQ(*write(upload->id, 0, "hello "), 6u);
  EXPECT_EQ(*write(upload->id, 3, "lo wor"), 9u);
  EXPECT_EQ(*write(upload->id, 9, "ld"), 11u);
  EXPECT_EQ(*finish(upload->id), sha256("hello world"));
  EXPECT_EQ(*finish(upload->id), sha256("hello world"));
  EXPECT_EQ(*blobs->get(sha256("hello world")), "hello world");
  EXPECT_EQ(get(upload->id)->received, 11u);
}

TEST_F(UploadsTest, GapsAndExcessNameTheOffset) {
  const auto upload = create("hello");
  ASSERT_TRUE(write(upload->id, 0, "he").ok());
  const auto gap = write(upload->id, 3, "lo");
  EXPECT_EQ(gap.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_NE(gap.status().message().find("expected 2"), absl::string_view::npos);
  EXPECT_EQ(write(upload->id, 2, "llo!").status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(write(upload->id, ~std::uint64_t{0}, "x").status().code(),
            absl::StatusCode::kOutOfRange);
  const auto early = finish(upload->id);
  EXPECT_EQ(early.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(get(upload->id)->received, 2u);
}

TEST_F(UploadsTest, WhatIsReceivedSurvivesARestart) {
  const auto upload = create("hello");
  ASSERT_TRUE(write(upload->id, 0, "hel").ok());
  make();
  EXPECT_EQ(get(upload->id)->received, 3u);
  ASSERT_TRUE(write(upload->id, 3, "lo").ok());
  EXPECT_TRUE(finish(upload->id).ok());
}

TEST_F(UploadsTest, AWrongHashKeepsNothing) {
  const auto upload =
      wait<model::Upload>([&](auto done) { uploads->create({}, "f", 5, sha256("other"), done); });
  ASSERT_TRUE(write(upload->id, 0, "hello").ok());
  const auto finished = finish(upload->id);
  EXPECT_EQ(finished.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(reason_of(finished.status()), "HASH_MISMATCH");
  EXPECT_FALSE(blobs->has(sha256("other")));
  EXPECT_FALSE(blobs->has(sha256("hello")));
  EXPECT_EQ(get(upload->id)->received, 0u);
}

TEST_F(UploadsTest, KnownContentNeedsNoBytes) {
  ASSERT_TRUE(blobs->put("hello").ok());
  const auto upload = create("hello");
  EXPECT_EQ(upload->received, 5u);
  EXPECT_TRUE(finish(upload->id).ok());
}

TEST_F(UploadsTest, SizeIsLimited) {
  EXPECT_EQ(create("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(create(std::string(1000, 'x')).ok());
  EXPECT_EQ(create(std::string(1001, 'x')).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(UploadsTest, TheNumberOfOpenOnesIsLimited) {
  const auto first = create("one");
  ASSERT_TRUE(first.ok() && create("two").ok() && create("three").ok());
  const auto fourth = create("four");
  EXPECT_EQ(fourth.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(fourth.status().message().find("3 uploads are open; limit 3"), std::string::npos);
  make();  // also after a restart
  EXPECT_FALSE(create("four").ok());
  ASSERT_TRUE(write(first->id, 0, "one").ok());
  ASSERT_TRUE(finish(first->id).ok());
  EXPECT_TRUE(create("four").ok());
}

TEST_F(UploadsTest, OldPartsAreForgotten) {
  const auto upload = create("hello");
  ASSERT_TRUE(write(upload->id, 0, "hel").ok());
  make(-10'000'000);
  EXPECT_EQ(get(upload->id).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace odt::api
