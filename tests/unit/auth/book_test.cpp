// Tokens and login codes.
#include "auth/book.h"

#include <gtest/gtest.h>

#include <future>

#include "auth/secret.h"
#include "store/memory_store.h"
#include "support/fake_clock.h"

namespace odt::auth {
namespace {

using model::Role;

constexpr char kFar[] = "ipv4:10.0.0.1:5";
constexpr std::chrono::hours kDay{24};

class BookTest : public testing::Test {
 protected:
  BookTest() : control(std::make_unique<store::MemoryControlStore>(clock)), book(control, clock) {
    book.on_end([this](const Uuid& id, const Status& why) { ended.emplace_back(id, why); });
  }
  // As odtd does: what is posted to the store ends before what it is for.
  ~BookTest() override { control.stop(); }

  template <typename T, typename F>
  Result<T> wait(F&& start) {
    std::promise<Result<T>> done;
    start([&](Result<T> result) { done.set_value(std::move(result)); });
    return done.get_future().get();
  }
  Result<Book::Made> add(const std::string& name, Role role = Role::kViewer,
                         std::uint32_t days = 0) {
    return wait<Book::Made>([&](auto done) { book.add({}, {name, "", role, days}, done); });
  }
  Result<Book::Made> code(Role role = Role::kViewer, std::uint32_t days = 0) {
    return wait<Book::Made>([&](auto done) { book.add_code({}, {"", "ann", role, days}, done); });
  }
  Result<Book::Made> login(const std::string& typed, const std::string& peer = kFar) {
    return wait<Book::Made>([&](auto done) { book.login(typed, "", peer, done); });
  }
  Status revoke(const Uuid& id) {
    return wait<model::Credential>([&](auto done) { book.revoke({}, id, done); }).status();
  }
  std::vector<model::Credential> stored() {
    return *control.call_sync([](store::ControlStore& s) { return s.credentials(); });
  }

  test::FakeClock clock;
  store::ControlThread control;
  Book book;
  std::vector<std::pair<Uuid, Status>> ended;
};

TEST_F(BookTest, ATokenIsKnownByItsSecretAloneAndTheSecretIsNotKept) {
  const auto made = add("ci", Role::kOperator);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->secret.size(), 47u);
  EXPECT_EQ(made->secret.substr(0, 4), "odt_");
  const auto known = book.known(made->secret, kFar);
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(known->role, Role::kOperator);
  EXPECT_EQ(known->actor, "ci");
  EXPECT_EQ(reason_of(book.known(made->secret + "x", kFar).status()), "TOKEN_UNKNOWN");
  EXPECT_EQ(reason_of(book.known("", kFar).status()), "TOKEN_UNKNOWN");
  ASSERT_EQ(stored().size(), 1u);
  EXPECT_EQ(stored().front().secret, sha256(made->secret));
  EXPECT_NE(*add("other")->secret.c_str(), '\0');
  EXPECT_NE(made->secret, add("third")->secret);
}

TEST_F(BookTest, ATokenExpires) {
  const auto made = add("short", Role::kViewer, 2);
  clock.advance(2 * kDay - std::chrono::seconds(1));
  EXPECT_TRUE(book.known(made->secret, kFar).ok());
  book.tick();
  EXPECT_TRUE(ended.empty());
  clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(reason_of(book.known(made->secret, kFar).status()), "TOKEN_EXPIRED");
  book.tick();
  book.tick();
  ASSERT_EQ(ended.size(), 1u) << "its streams end, once";
  EXPECT_EQ(ended[0].first, made->credential.id);
  EXPECT_EQ(reason_of(ended[0].second), "TOKEN_EXPIRED");
}

TEST_F(BookTest, ATokenIsRevokedAtOnceAndForGood) {
  const auto made = add("lost");
  ASSERT_TRUE(revoke(made->credential.id).ok());
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(reason_of(ended[0].second), "TOKEN_REVOKED");
  EXPECT_EQ(reason_of(book.known(made->secret, kFar).status()), "TOKEN_REVOKED");
  EXPECT_FALSE(book.in_force(made->credential.id));
  EXPECT_EQ(revoke(made->credential.id).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(revoke(new_uuid()).code(), absl::StatusCode::kNotFound);
  clock.advance(kDay);
  book.tick();  // last uses are written: the revocation stays
  Book again(control, clock);
  ASSERT_TRUE(again.load().ok());
  EXPECT_EQ(reason_of(again.known(made->secret, kFar).status()), "TOKEN_REVOKED");
}

TEST_F(BookTest, LastUsesAreWrittenDownByTheMinute) {
  const auto made = add("used");
  (void)book.known(made->secret, kFar);
  clock.advance(std::chrono::seconds(61));
  book.tick();
  EXPECT_EQ(stored().front().last_used_peer, kFar);
  EXPECT_NE(stored().front().last_used_time_us, 0);
}

TEST_F(BookTest, NamesInForceAreUnique) {
  const auto made = add("ci");
  EXPECT_EQ(reason_of(add("ci").status()), "TOKEN_NAME_TAKEN");
  ASSERT_TRUE(revoke(made->credential.id).ok());
  EXPECT_TRUE(add("ci").ok());
  for (const char* bad : {"", "a b", "x\n", "\x1b[31m", "\xff"})
    EXPECT_EQ(add(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  EXPECT_EQ(add(std::string(65, 'x')).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(add("r", Role::kNone).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(add("r", static_cast<Role>(77)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(add("r", Role::kViewer, 4000).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(BookTest, ALoginCodeGivesATokenOnce) {
  const auto made = code(Role::kOperator, 3);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(book.known(made->secret, kFar).ok()) << "a code is no token";
  EXPECT_FALSE(book.known(plain_login_code(made->secret), kFar).ok());
  std::string typed = " " + made->secret;
  for (char& c : typed) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto first = login(typed);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->credential.role, Role::kOperator);
  EXPECT_EQ(first->credential.actor, "ann");
  EXPECT_EQ(first->credential.expire_time_us - clock.now_us(),
            std::chrono::microseconds(3 * kDay).count());
  EXPECT_TRUE(book.known(first->secret, kFar).ok());
  EXPECT_EQ(reason_of(login(made->secret).status()), "LOGIN_CODE_WRONG");
}

TEST_F(BookTest, ALoginCodeLivesTenMinutesAlsoThroughARestart) {
  const auto made = code();
  clock.advance(std::chrono::minutes(10) - std::chrono::seconds(1));
  Book again(control, clock);
  ASSERT_TRUE(again.load().ok());
  clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(reason_of(login(made->secret).status()), "LOGIN_CODE_WRONG");
  clock.advance(-std::chrono::seconds(1));
  const auto used = wait<Book::Made>([&](auto done) { again.login(made->secret, "", kFar, done); });
  EXPECT_TRUE(used.ok()) << used.status();
}

TEST_F(BookTest, CodesCannotBeGuessed) {
  const auto good = code();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(reason_of(login("AAAAA-AAAAA").status()), "LOGIN_CODE_WRONG");
  EXPECT_EQ(reason_of(login(good->secret).status()), "LOGIN_LIMIT");
  for (int i = 0; i < 90; ++i)
    EXPECT_EQ(reason_of(login("AAAAA-AAAAA", "ipv4:10.1.0." + std::to_string(i) + ":5").status()),
              "LOGIN_CODE_WRONG");
  EXPECT_EQ(reason_of(login(good->secret, "ipv4:10.9.9.9:5").status()), "LOGIN_LIMIT")
      << "nor by many addresses";
  clock.advance(std::chrono::minutes(11));
  EXPECT_TRUE(login(code()->secret).ok());
}

TEST_F(BookTest, DeadCodesDoNotPileUp) {
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(code().ok());
    clock.advance(std::chrono::minutes(11));
  }
  EXPECT_EQ(stored().size(), 1u);
}

TEST(Secret, HeadersAndCodesAsPeopleWriteThem) {
  EXPECT_EQ(bearer_token("Bearer odt_x"), "odt_x");
  EXPECT_EQ(bearer_token("bEARER  odt_x"), "odt_x");
  for (const char* bad : {"", "Bearer", "Basic YTpi", "Bearerodt_x", "odt_x"})
    EXPECT_EQ(bearer_token(bad), "") << bad;
  EXPECT_EQ(plain_login_code(" 7kq2m-x4pwt"), "7KQ2MX4PWT");
  EXPECT_EQ(new_login_code().size(), 11u);
}

TEST(Address, IsThePeerWithoutItsPort) {
  for (const auto& [peer, want] : {std::pair{"ipv4:10.0.0.1:5", "10.0.0.1"},
                                   {"ipv6:[fe80::1]:5", "fe80::1"},
                                   {"ipv6:%5B::1%5D:5", "::1"},
                                   {"unix:/run/x", "unix"},
                                   {"unix:", "unix"},
                                   {"", ""}})
    EXPECT_EQ(address_of(peer), want) << peer;
}

}  // namespace
}  // namespace odt::auth
