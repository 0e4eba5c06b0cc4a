// What is written down, and what a flood of refusals becomes.
#include "auth/audit_log.h"

#include <gtest/gtest.h>

#include <future>

#include "store/memory_store.h"
#include "support/fake_clock.h"

namespace odt::auth {
namespace {

class AuditLogTest : public testing::Test {
 protected:
  // As odtd does: what is posted to the store ends before what it is for.
  ~AuditLogTest() override { control.stop(); }

  std::vector<model::AuditEntry> entries() {
    return control.call_sync([](store::ControlStore& s) { return s.audit({1000, ""}); })->items;
  }
  model::AuditEntry entry(const std::string& method, const std::string& peer = "ipv4:10.0.0.1:5") {
    model::AuditEntry out;
    out.actor = "ann";
    out.method = method;
    out.peer = peer;
    out.result = "OK";
    return out;
  }

  test::FakeClock clock;
  store::ControlThread control{std::make_unique<store::MemoryControlStore>(clock)};
  AuditLog log{control, clock, {100, 2}};
};

TEST_F(AuditLogTest, AnEntryIsThereWhenItsCallIsAnswered) {
  std::promise<Status> done;
  log.append(entry("RenameBoard"), [&](const Status& status) { done.set_value(status); });
  EXPECT_TRUE(done.get_future().get().ok());
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_EQ(entries().front().method, "RenameBoard");
  EXPECT_EQ(entries().front().time_us, clock.now_us());
}

TEST_F(AuditLogTest, AFloodIsAFewEntriesAndOneWithTheirNumber) {
  int lines = 0;
  for (int i = 0; i < 500; ++i) lines += log.refused(entry("Get")) ? 1 : 0;
  EXPECT_EQ(lines, 5);
  log.refused(entry("Get", "ipv4:10.0.0.2:5"));
  log.tick();
  EXPECT_EQ(entries().size(), 6u);
  clock.advance(std::chrono::seconds(10));
  log.tick();
  const auto all = entries();
  ASSERT_EQ(all.size(), 7u);
  EXPECT_EQ(all.front().times, 495u);
}

TEST_F(AuditLogTest, MemoryOfAFloodFromManyAddressesIsBounded) {
  int singly = 0;
  for (int i = 0; i < 5000; ++i)
    singly += log.refused(entry("Get", "ipv4:10.0." + std::to_string(i / 250) + "." +
                                           std::to_string(i % 250) + ":5"))
                  ? 1
                  : 0;
  EXPECT_EQ(singly, 1000 + 5) << "the others share one place";
}

TEST_F(AuditLogTest, TheNewestStay) {
  for (int i = 0; i < 150; ++i) log.append(entry(std::to_string(i)), [](const Status&) {});
  log.tick();
  ASSERT_EQ(entries().size(), 100u);
  EXPECT_EQ(entries().front().method, "149");
}

TEST_F(AuditLogTest, OldEntriesGo) {
  log.append(entry("Old"), [](const Status&) {});
  clock.advance(std::chrono::hours(24 * 3));
  log.append(entry("New"), [](const Status&) {});
  log.tick();
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_EQ(entries().front().method, "New");
}

}  // namespace
}  // namespace odt::auth
