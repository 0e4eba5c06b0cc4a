// Who is let in, what is written down, what ends with a token.
#include "api/gate.h"

#include <gtest/gtest.h>

#include <future>

#include "api/rate_cap.h"
#include "api/request_text.h"
#include "fakes.h"
#include "odt/api/v1/auth.pb.h"

namespace odt::api {
namespace {

constexpr char kHere[] = "ipv4:127.0.0.1:5", kSocket[] = "unix:/run/odtd.sock";
constexpr char kFar[] = "ipv4:10.0.0.1:5";

class GateTest : public testing::Test {
 protected:
  explicit GateTest(AccessOptions options = {true,
                                             Role::kNone,
                                             {{"gw-1", "gateway", Role::kOperator}}})
      : policy(options),
        control(std::make_unique<store::MemoryControlStore>(clock)),
        gate(policy, control) {}
  // As odtd does: what is posted to the store ends before what it is for.
  ~GateTest() override { control.stop(); }

  auth::Book::Made token(Role role, const std::string& name = "t") {
    std::promise<Result<auth::Book::Made>> made;
    gate.book().add({}, {name, "", role, 0},
                    [&](auto result) { made.set_value(std::move(result)); });
    auto result = made.get_future().get();
    EXPECT_TRUE(result.ok()) << result.status();
    return *result;
  }
  Status revoke(const Uuid& id) {
    std::promise<Status> done;
    gate.book().revoke({}, id, [&](const auto& result) { done.set_value(result.status()); });
    return done.get_future().get();
  }
  std::vector<model::AuditEntry> audit() {
    return control.call_sync([](store::ControlStore& s) { return s.audit({1000, ""}); })->items;
  }

  SystemClock clock;
  AccessPolicy policy;
  store::ControlThread control;
  Gate gate;
};

TEST_F(GateTest, WithoutACredentialOnlyTheSocketIsSomebody) {
  EXPECT_EQ(gate.identify(kSocket, "", "")->role, Role::kAdmin);
  for (const char* peer : {kHere, kFar, ""})
    EXPECT_EQ(gate.identify(peer, "", "")->role, Role::kNone) << peer;
  const Status refused = gate.admit_door(kHere, "", "", Role::kViewer, "/metrics");
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(reason_of(refused), "TOKEN_NEEDED");
}

TEST_F(GateTest, ATokenIsItsRoleWhereverItComesFrom) {
  const auto made = token(Role::kViewer);
  for (const char* peer : {kSocket, kHere, kFar}) {
    const auto caller = gate.identify(peer, "Bearer " + made.secret, "");
    ASSERT_TRUE(caller.ok()) << caller.status();
    EXPECT_EQ(caller->role, Role::kViewer) << peer;
    EXPECT_EQ(caller->credential, "token t");
  }
  EXPECT_TRUE(gate.admit_door(kFar, "bearer " + made.secret, "", Role::kViewer, "/metrics").ok());
  EXPECT_EQ(gate.admit_door(kFar, "Bearer " + made.secret, "", Role::kAdmin, "/x").code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(GateTest, AWrongCredentialIsNeverTakenForNone) {
  for (const char* wrong : {"Bearer odt_wrong", "Basic YTpi", "Bearer ", "Bearer", "x"})
    for (const char* peer : {kSocket, kHere})
      EXPECT_EQ(gate.identify(peer, wrong, "").status().code(), absl::StatusCode::kUnauthenticated)
          << wrong;
  EXPECT_EQ(gate.identify(kFar, "", "stranger").status().code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(gate.identify(kFar, "", "gw-1")->role, Role::kOperator);
  EXPECT_EQ(gate.identify(kFar, "", "gw-1")->actor, "gateway");
}

class Stream final : public Endable {
 public:
  void end(const Status& why) override { ended = why; }
  Status ended;
};

TEST_F(GateTest, RevokingEndsCallsAndOpenStreamsAtOnce) {
  const auto made = token(Role::kViewer), other = token(Role::kViewer, "other");
  Call call, call_of_other;
  call.caller.token = made.credential.id;
  call_of_other.caller.token = other.credential.id;
  const auto stream = std::make_shared<Stream>(), stays = std::make_shared<Stream>();
  gate.watch_end(call, stream);
  gate.watch_end(call_of_other, stays);
  ASSERT_TRUE(revoke(made.credential.id).ok());
  EXPECT_EQ(stream->ended.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(stays->ended.ok());
  EXPECT_EQ(reason_of(gate.identify(kFar, "Bearer " + made.secret, "").status()), "TOKEN_REVOKED");
  EXPECT_EQ(revoke(made.credential.id).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(revoke(new_uuid()).code(), absl::StatusCode::kNotFound);
  // One that begins after the revocation ends as well.
  const auto late = std::make_shared<Stream>();
  gate.watch_end(call, late);
  EXPECT_EQ(late->ended.code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(GateTest, AFloodOfRefusalsIsFewEntries) {
  for (int i = 0; i < 500; ++i)
    (void)gate.admit_door(kFar, "Bearer odt_no", "", Role::kViewer, "/metrics");
  const auto entries = audit();
  EXPECT_EQ(entries.size(), 5u);
  EXPECT_EQ(entries.front().result, "UNAUTHENTICATED");
  EXPECT_EQ(entries.front().method, "/metrics");
  EXPECT_EQ(entries.front().peer, kFar);
}

TEST_F(GateTest, AFloodOfWrongLoginCodesIsFewEntries) {
  MethodInfo login;
  login.path = "/odt.api.v1.AuthService/Login";
  login.rule.open = login.rule.audit = true;
  Call call;
  call.method = &login;
  call.caller.peer = kFar;
  int answered = 0;
  for (int i = 0; i < 500; ++i)
    gate.settle(call, absl::UnauthenticatedError("wrong"), [&answered] { ++answered; });
  EXPECT_EQ(answered, 500);
  EXPECT_EQ(audit().size(), 5u);
  // One that succeeds is written in any case.
  std::promise<void> done;
  gate.settle(call, std::string(), [&done] { done.set_value(); });
  done.get_future().wait();
  EXPECT_EQ(audit().size(), 6u);
}

TEST(RequestText, NamesWhatIsAskedAndNoSecret) {
  v1::LoginRequest login;
  login.set_code("7KQ2M-X4PWT");
  login.set_name("a\x1b[31m\nb");
  const std::string text = request_text(login);
  EXPECT_EQ(text, "code=(secret) name=a?[31m?b");
  v1::RevokeTokenRequest revoke;
  revoke.set_request_id("r");
  revoke.set_id(std::string(16, '\x01'));
  EXPECT_EQ(request_text(revoke), "id=01010101010101010101010101010101");
  v1::AddTokenRequest big;
  big.set_name(std::string(5000, 'x'));
  EXPECT_LT(request_text(big).size(), 500u);
}

TEST(RateCap, HasABurstThenARate) {
  RateCap cap(10, 5);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(cap.take("a", start));
  EXPECT_FALSE(cap.take("a", start));
  EXPECT_TRUE(cap.take("b", start));
  EXPECT_TRUE(cap.take("a", start + std::chrono::milliseconds(100)));
  EXPECT_FALSE(cap.take("a", start + std::chrono::milliseconds(100)));
  // Any number of addresses, little memory.
  for (int i = 0; i < 20'000; ++i) cap.take(std::to_string(i), start);
}

}  // namespace
}  // namespace odt::api
