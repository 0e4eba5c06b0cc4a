#include "training/retention.h"

#include <gtest/gtest.h>

#include "store/memory_store.h"

namespace odt::training {
namespace {

Hash hash_of(std::uint8_t n) {
  Hash out;
  out.bytes.fill(n);
  return out;
}

class RetentionTest : public testing::Test {
 protected:
  void put(store::Change change) {
    store::Batch batch;
    batch.changes.push_back(std::move(change));
    const auto events = store_.commit(std::move(batch));
    ASSERT_TRUE(events.ok()) << events.status();
  }
  void snapshot(std::uint8_t n) {
    model::Snapshot s;
    s.hash = hash_of(n);
    s.model_hash = hash_of(99);
    put(store::PutSnapshot{s});
  }
  // Everything that is old enough, with nothing kept for its rank.
  Result<Pruned> prune(bool dry_run) {
    return prune_snapshots(store_, {0, 0}, {}, SystemClock().now_us() + 1'000'000, dry_run);
  }

  SystemClock clock_;
  store::MemoryControlStore store_{clock_};
};

TEST_F(RetentionTest, WhatACampaignUnderWayNeedsIsKeptAndStopsNothingElse) {
  model::Model m;
  m.hash = hash_of(99);
  put(store::PutModel{m});
  for (std::uint8_t n = 1; n <= 4; ++n) snapshot(n);
  model::Campaign c;
  c.id = new_uuid();
  c.spec.kind = model::CampaignKind::kRollout;
  c.spec.model_hash = m.hash;
  c.spec.rollout.snapshot = hash_of(1);
  model::CampaignUnit unit;
  unit.campaign_id = c.id;
  unit.previous = hash_of(2);  // what its board had before
  put(store::CreateCampaign{c, {unit}, "ann"});
  const auto told = prune(true);
  ASSERT_TRUE(told.ok()) << told.status();
  const auto done = prune(false);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->snapshots.size(), 2u);
  EXPECT_EQ(told->snapshots.size(), done->snapshots.size());
  EXPECT_EQ(done->kept, 2u);
  for (std::uint8_t n = 1; n <= 4; ++n)
    EXPECT_EQ(store_.snapshot(hash_of(n)).ok(), n <= 2) << int{n};
  EXPECT_TRUE(absl::IsFailedPrecondition(trash_snapshot(store_, {}, hash_of(2))));
  EXPECT_EQ(reasons_to_keep(store_, *store_.snapshot(hash_of(1)))->size(), 1u);
}

}  // namespace
}  // namespace odt::training
