#include "training/rate_book.h"

#include <gtest/gtest.h>

#include "store/memory_store.h"
#include "training/blob_share.h"

namespace odt::training {
namespace {

model::Run run_of(std::uint32_t step_us) {
  model::Run run;
  run.id = new_uuid();
  run.spec.board_uid.bytes = Bytes(8, 1);
  run.timing.step_us = step_us;
  return run;
}

TEST(RateBook, WhatWasNotedWhileTheStoreWasReadIsNewer) {
  RateBook book;
  auto run = run_of(100);
  RateBook::Contents stored;
  stored.runs[run.id].timing = run.timing;
  const auto only_stored = run_of(300);
  stored.runs[only_stored.id].timing = only_stored.timing;
  run.timing.step_us = 200;
  book.note(run, nullptr);
  EXPECT_FALSE(book.loaded());
  book.take(std::move(stored));
  EXPECT_TRUE(book.loaded());
  ASSERT_EQ(book.runs().size(), 2u);
  EXPECT_EQ(book.runs().at(run.id).timing.step_us, 200u);
  EXPECT_EQ(book.runs().at(only_stored.id).timing.step_us, 300u);
}

TEST(RateBook, RunsThatMeasuredNothingAreNotInIt) {
  RateBook book;
  book.note(run_of(0), nullptr);
  EXPECT_TRUE(book.runs().empty());
}

TEST(RateBook, TheOldestGoAndTheModelsThatNobodyNeeds) {
  RateBook book;
  std::vector<Uuid> ids;
  for (std::uint32_t i = 0; i < 1030; ++i) {
    auto run = run_of(1 + i);
    model::Model model;
    model.hash.bytes[0] = static_cast<std::uint8_t>(i < 30 ? i : 200);
    run.spec.model_hash = model.hash;
    book.note(run, &model);
    ids.push_back(run.id);
  }
  EXPECT_EQ(book.runs().size(), 1000u);
  EXPECT_FALSE(book.runs().contains(ids[29]));
  EXPECT_TRUE(book.runs().contains(ids[30]));
  Hash gone, kept;
  gone.bytes[0] = 3;
  kept.bytes[0] = 200;
  EXPECT_EQ(book.model(gone), nullptr);
  EXPECT_NE(book.model(kept), nullptr);
}

TEST(BlobShare, ABlobIsInMemoryOnceAndOnlyWhileSomebodyHoldsIt) {
  store::MemoryBlobStore blobs;
  const Hash hash = *blobs.put("content");
  BlobShare share;
  EXPECT_EQ(share.held(hash), nullptr);
  auto first = share.get(blobs, hash);
  ASSERT_TRUE(first.ok());
  auto second = share.get(blobs, hash);
  EXPECT_EQ(first->get(), second->get());
  EXPECT_EQ(share.held(hash), *first);
  *first = nullptr;
  EXPECT_NE(share.held(hash), nullptr) << "the second holds it";
  *second = nullptr;
  EXPECT_EQ(share.held(hash), nullptr);
  EXPECT_TRUE(absl::IsNotFound(share.get(blobs, Hash{}).status()));
}

}  // namespace
}  // namespace odt::training
