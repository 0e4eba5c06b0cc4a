// Alerts and settings by scope in a ControlStore: the same for SQLite and memory.
#include <gtest/gtest.h>

#include "any_control_store.h"

namespace odt::store {
namespace {

class AlertStoreTest : public AnyControlStore {
 protected:
  Result<std::vector<model::Event>> put(Change change) {
    return store_->commit(batch_of(std::move(change)));
  }
};
INSTANTIATE_TEST_SUITE_P(All, AlertStoreTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "Sqlite" : "Memory"; });

model::Alert alert_of(int n) {
  model::Alert a;
  a.id = new_uuid();
  a.rule = model::AlertKind::kStuck;
  a.state = model::AlertState::kFiring;
  a.severity = model::AlertSeverity::kCritical;
  a.subject = "b" + std::to_string(n);
  a.board = uid_of(n);
  a.run_id = new_uuid();
  a.reason = {"RUN_STUCK", "text", "remedy"};
  a.value = -5;
  a.threshold = 120;
  a.count = 3;
  a.first_time_us = 1;
  a.fire_time_us = 2;
  a.last_time_us = 3;
  a.ack_time_us = 4;
  a.ack_by = "ann";
  a.ack_note = "on it";
  a.silenced_until_us = 9;
  a.delivery = {model::DeliveryState::kPending, 2, "HTTP status 500", 5, 6};
  return a;
}

TEST_P(AlertStoreTest, AlertsAreKeptWhole) {
  const model::Alert a = alert_of(1);
  const auto events = put(PutAlert{a});
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_TRUE(put(PutAlert{alert_of(2)}).ok());
  if (GetParam()) open();
  const auto b = store_->alert(a.id);
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(b->rule, a.rule);
  EXPECT_EQ(b->state, a.state);
  EXPECT_EQ(b->severity, a.severity);
  EXPECT_EQ(b->subject, a.subject);
  EXPECT_EQ(b->board, a.board);
  EXPECT_EQ(b->run_id, a.run_id);
  EXPECT_EQ(b->reason, a.reason);
  EXPECT_EQ(b->value, a.value);
  EXPECT_EQ(b->count, a.count);
  EXPECT_EQ(b->ack_note, a.ack_note);
  EXPECT_EQ(b->silenced_until_us, a.silenced_until_us);
  EXPECT_EQ(b->delivery, a.delivery);
  EXPECT_EQ(b->meta.etag, events->front().seq);
  const auto page = store_->alerts({1, ""});
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->items.size(), 1u);
  EXPECT_FALSE(page->next_token.empty());
  const auto again = store_->events_from(1, 10);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(std::get<model::Alert>(again->front().body).id, a.id);
  EXPECT_TRUE(absl::IsNotFound(store_->alert(new_uuid()).status()));
}

TEST_P(AlertStoreTest, RulesAndSilencesAreOne) {
  EXPECT_TRUE(absl::IsNotFound(store_->alert_settings().status()));
  model::AlertSettings s;
  model::AlertRule& rule = s.rules.emplace_back();
  rule.rule = model::AlertKind::kDisk;
  rule.threshold = 7;
  rule.enabled = false;
  rule.changed = true;
  s.silences.push_back({new_uuid(), model::AlertKind::kDisk, uid_of(1), 77, "note", "ann", 5});
  ASSERT_TRUE(put(PutAlertSettings{s}).ok());
  s.rules.front().threshold = 8;
  ASSERT_TRUE(put(PutAlertSettings{s}).ok());
  const auto stored = store_->alert_settings();
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->rules.front().threshold, 8);
  EXPECT_FALSE(stored->rules.front().enabled);
  EXPECT_EQ(stored->silences.front().board, uid_of(1));
  EXPECT_EQ(stored->silences.front().note, "note");
}

TEST_P(AlertStoreTest, SettingsByScopeAreSetAndUnset) {
  model::Setting s;
  s.scope = model::SettingScope::kCohort;
  s.target = "site=lab";
  s.key = "batch";
  s.value = "8";
  ASSERT_TRUE(put(PutScopedSetting{s}).ok());
  s.value = "16";
  ASSERT_TRUE(put(PutScopedSetting{s}).ok());
  model::Setting fleet;
  fleet.scope = model::SettingScope::kFleet;
  fleet.key = "batch";
  fleet.value = "4";
  ASSERT_TRUE(put(PutScopedSetting{fleet}).ok());
  const auto page = store_->scoped_settings({10, ""});
  ASSERT_TRUE(page.ok());
  ASSERT_EQ(page->items.size(), 2u);
  EXPECT_EQ(page->items[0].value, "4") << "the widest scope first";
  EXPECT_EQ(page->items[1].value, "16");
  s.meta.etag = 1;
  EXPECT_TRUE(absl::IsAborted(put(PutScopedSetting{s}).status()));
  ASSERT_TRUE(put(Delete{"setting", scoped_setting_key(s)}).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->scoped_setting(s).status()));
  EXPECT_TRUE(absl::IsNotFound(put(Delete{"setting", scoped_setting_key(s)}).status()));
  const auto events = store_->events_from(1, 10);
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(std::get<model::Deleted>(events->back().body).kind, "setting");
}

}  // namespace
}  // namespace odt::store
