// Credentials and the audit log in a ControlStore: the same for SQLite and memory.
#include <gtest/gtest.h>

#include "any_control_store.h"

namespace odt::store {
namespace {

class AccessStoreTest : public AnyControlStore {
 protected:
  void append(int n, std::int64_t time_us) {
    model::AuditEntry entry;
    entry.actor = "ann";
    entry.method = "M" + std::to_string(n);
    entry.time_us = time_us;
    entry.seq = 77;  // not the caller's to choose
    ASSERT_TRUE(store_->commit(batch_of(AppendAudit{entry})).ok());
  }
  std::vector<std::uint64_t> kept() {
    std::vector<std::uint64_t> out;
    ListQuery query{2, ""};
    do {
      auto page = store_->audit(query);
      EXPECT_TRUE(page.ok()) << page.status();
      for (const auto& entry : page->items) out.push_back(entry.seq);
      query.page_token = page->next_token;
    } while (!query.page_token.empty());
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(All, AccessStoreTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "Sqlite" : "Memory"; });

TEST_P(AccessStoreTest, CredentialsAreKeptWholeAndMakeNoEvent) {
  model::Credential c;
  c.id = new_uuid();
  c.login_code = true;
  c.name = "ci";
  c.actor = "ann";
  c.role = model::Role::kOperator;
  c.secret = sha256("secret");
  c.expire_time_us = 5;
  c.revoke_time_us = 6;
  c.revoked_by = "bob";
  c.last_used_time_us = 7;
  c.last_used_peer = "ipv4:10.0.0.1:5";
  c.token_days = 30;
  const auto events = store_->commit(batch_of(PutCredential{c}));
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_TRUE(events->empty());
  if (GetParam()) open();  // the memory store forgets
  const auto all = store_->credentials();
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 1u);
  const auto& got = all->front();
  EXPECT_EQ(got.id, c.id);
  EXPECT_TRUE(got.login_code);
  EXPECT_EQ(got.name + got.actor + got.revoked_by, "ciannbob");
  EXPECT_EQ(got.role, c.role);
  EXPECT_EQ(got.secret, c.secret);
  EXPECT_EQ(got.expire_time_us + got.revoke_time_us + got.last_used_time_us, 18);
  EXPECT_EQ(got.last_used_peer, c.last_used_peer);
  EXPECT_EQ(got.token_days, 30u);
}

TEST_P(AccessStoreTest, AuditEntriesAreNumberedByTheStoreAndListedNewestFirst) {
  for (int n = 1; n <= 5; ++n) append(n, n);
  EXPECT_EQ(kept(), (std::vector<std::uint64_t>{5, 4, 3, 2, 1}));
}

TEST_P(AccessStoreTest, RetentionTakesTheOldestAndNumbersGoOn) {
  for (int n = 1; n <= 6; ++n) append(n, 10 * n);
  ASSERT_TRUE(store_->commit(batch_of(PruneAudit{25, 0})).ok());  // by age
  EXPECT_EQ(kept(), (std::vector<std::uint64_t>{6, 5, 4, 3}));
  ASSERT_TRUE(store_->commit(batch_of(PruneAudit{0, 2})).ok());  // by number
  EXPECT_EQ(kept(), (std::vector<std::uint64_t>{6, 5}));
  ASSERT_TRUE(store_->commit(batch_of(PruneAudit{1000, 0})).ok());
  EXPECT_EQ(kept(), (std::vector<std::uint64_t>{6}));
  append(7, 70);
  EXPECT_EQ(kept(), (std::vector<std::uint64_t>{7, 6}));
}

}  // namespace
}  // namespace odt::store
