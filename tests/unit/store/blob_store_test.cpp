#include <fstream>
#include <thread>

#include "store/durable_file.h"
#include "store/fs_blob_store.h"
#include "store/memory_store.h"
#include "store_fixture.h"

namespace odt::store {
namespace {

namespace fs = std::filesystem;

class BlobStoreTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam())
      store_ = *FsBlobStore::open(dir_.file("blobs"));
    else
      store_ = std::make_unique<MemoryBlobStore>();
  }
  TempDir dir_;
  std::unique_ptr<BlobStore> store_;
};

INSTANTIATE_TEST_SUITE_P(All, BlobStoreTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "Files" : "Memory"; });

TEST_P(BlobStoreTest, GivesBackWhatWasPut) {
  const std::string content("a\0b", 3);
  const Hash hash = *store_->put(content);
  EXPECT_EQ(hash, sha256(content));
  EXPECT_EQ(*store_->put(content), hash);
  EXPECT_TRUE(store_->has(hash));
  EXPECT_EQ(*store_->get(hash), content);
  EXPECT_EQ(*store_->get(*store_->put("")), "");
}

TEST_P(BlobStoreTest, UnknownHashIsNotFound) {
  EXPECT_FALSE(store_->has(hash_of(1)));
  EXPECT_TRUE(absl::IsNotFound(store_->get(hash_of(1)).status()));
}

TEST_P(BlobStoreTest, AdoptsOnlyAFileOfThatHash) {
  const std::string path = dir_.file("upload");
  std::ofstream(path) << "content";
  EXPECT_TRUE(absl::IsInvalidArgument(store_->adopt(path, hash_of(1))));
  EXPECT_FALSE(store_->has(hash_of(1)));
  EXPECT_TRUE(fs::exists(path));
  const Hash hash = sha256("content");
  EXPECT_TRUE(store_->adopt(path, hash).ok());
  EXPECT_EQ(*store_->get(hash), "content");
  EXPECT_TRUE(absl::IsNotFound(store_->adopt(dir_.file("none"), hash)));
}

TEST(FsBlobStore, SurvivesReopeningAndSweepsInterruptedWrites) {
  TempDir dir;
  auto store = *FsBlobStore::open(dir.path());
  const Hash hash = *store->put("x");
  const std::string left = *store->path(hash) + ".tmp-1-2";
  std::ofstream(left) << "half";
  store = *FsBlobStore::open(dir.path());
  EXPECT_TRUE(store->has(hash));
  EXPECT_FALSE(fs::exists(left));
}

TEST(FsBlobStore, ChangedFileIsDataLoss) {
  TempDir dir;
  auto store = *FsBlobStore::open(dir.path());
  const Hash hash = *store->put("content");
  std::ofstream(*store->path(hash)) << "tampered";
  EXPECT_TRUE(absl::IsDataLoss(store->get(hash).status()));
}

TEST(FsBlobStore, WritersOfOneContentDoNotHurtEachOther) {
  TempDir dir;
  auto store = *FsBlobStore::open(dir.path());
  const std::string content(100'000, 'z');
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { EXPECT_TRUE(store->put(content).ok()); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(*store->get(sha256(content)), content);
}

TEST(DurableFile, FailureLeavesTheOldFile) {
  TempDir dir;
  ASSERT_TRUE(write_durably(dir.file("f"), "old").ok());
  fs::create_directory(dir.file("d"));
  EXPECT_FALSE(write_durably(dir.file("d"), "new").ok());  // rename over a folder
  EXPECT_EQ(*read_file(dir.file("f")), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 2);
}

}  // namespace
}  // namespace odt::store
