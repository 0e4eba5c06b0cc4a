#include <thread>

#include "model/setting.h"
#include "odt/api/v1/alerts.grpc.pb.h"
#include "server_fixture.h"

// Alerts and settings by scope through the real server.
namespace odt::test {
namespace {

namespace v1 = api::v1;

class AlertApi : public ApiTest {
 protected:
  template <typename Stub, typename Request, typename Response>
  grpc::Status call(Stub& stub,
                    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response& response) {
    grpc::ClientContext context;
    return (stub.*method)(&context, request, &response);
  }
  std::int64_t in_an_hour() const { return server.clock.now_us() + 3'600'000'000; }
  grpc::Status set(const std::string& key, const std::string& value, v1::SettingScope scope,
                   const std::string& target = "", int board = 0) {
    v1::SetSettingRequest request;
    auto* setting = request.mutable_setting();
    setting->set_key(key);
    setting->set_value(value);
    setting->set_scope(scope);
    setting->set_target(target);
    if (board != 0) setting->set_board_uid(uid_of(board).str());
    v1::SetSettingResponse response;
    grpc::ClientContext context;
    const auto status = settings->SetSetting(&context, request, &response);
    applies = response.boards();
    return status;
  }

  std::unique_ptr<v1::AlertService::Stub> alerts = v1::AlertService::NewStub(server.connect());
  std::unique_ptr<v1::SettingsService::Stub> settings =
      v1::SettingsService::NewStub(server.connect());
  std::uint32_t applies = 0;
};

TEST_F(AlertApi, RulesHaveRangesAndDefaults) {
  v1::ListAlertRulesResponse rules;
  grpc::ClientContext list;
  ASSERT_TRUE(alerts->ListAlertRules(&list, {}, &rules).ok());
  ASSERT_EQ(rules.settings().rules_size(), 8);
  v1::UpdateAlertRuleRequest update;
  v1::UpdateAlertRuleResponse updated;
  const auto send = [&] {
    grpc::ClientContext context;
    return alerts->UpdateAlertRule(&context, update, &updated).error_code();
  };
  EXPECT_EQ(send(), grpc::StatusCode::INVALID_ARGUMENT) << "no rule";
  update.set_rule(v1::ALERT_RULE_KIND_OFFLINE);
  EXPECT_EQ(send(), grpc::StatusCode::INVALID_ARGUMENT) << "nothing to change";
  update.set_threshold(4);
  EXPECT_EQ(send(), grpc::StatusCode::INVALID_ARGUMENT) << "under its range";
  update.set_threshold(30);
  ASSERT_EQ(send(), grpc::StatusCode::OK);
  EXPECT_TRUE(updated.rule().changed());
  EXPECT_EQ(updated.rule().default_threshold(), 60);
  const auto stored =
      server.control.call_sync([](store::ControlStore& s) { return s.alert_settings(); });
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(stored->rules[0].threshold, 30);
}

TEST_F(AlertApi, SilencesComeAndGo) {
  server.put_board(1, "one");
  v1::SilenceAlertsRequest request;
  v1::SilenceAlertsResponse response;
  const auto send = [&] {
    grpc::ClientContext context;
    return alerts->SilenceAlerts(&context, request, &response).error_code();
  };
  request.set_until_time_us(in_an_hour());
  EXPECT_EQ(send(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_board_uid(uid_of(2).str());
  EXPECT_EQ(send(), grpc::StatusCode::NOT_FOUND);
  request.set_board_uid(uid_of(1).str());
  ASSERT_EQ(send(), grpc::StatusCode::OK);
  v1::ListAlertRulesResponse rules;
  grpc::ClientContext list;
  ASSERT_TRUE(alerts->ListAlertRules(&list, {}, &rules).ok());
  ASSERT_EQ(rules.settings().silences_size(), 1);
  v1::UnsilenceAlertsRequest end;
  end.set_id(response.silence().id());
  v1::UnsilenceAlertsResponse ended;
  grpc::ClientContext first, second;
  EXPECT_TRUE(alerts->UnsilenceAlerts(&first, end, &ended).ok());
  EXPECT_EQ(alerts->UnsilenceAlerts(&second, end, &ended).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(AlertApi, ChangesComeOnWatch) {
  const auto watch = v1::WatchService::NewStub(server.connect());
  v1::WatchRequest request;
  request.add_topics()->set_kind(v1::Topic::KIND_ALERTS);
  request.add_topics()->set_kind(v1::Topic::KIND_SETTINGS);
  for (int i = 0; i < 2; ++i) request.mutable_topics(i)->set_lossless(true);
  grpc::ClientContext context;
  const auto stream = watch->Watch(&context, request);
  v1::WatchResponse response;
  bool rules = false, setting = false, gone = false, snapshot = false;
  while (!(rules && setting && gone) && stream->Read(&response)) {
    for (const auto& event : response.events()) {
      rules |= event.has_alert_settings() && event.event_seq() != 0;
      setting |= event.has_setting() && event.setting().key() == "batch";
      gone |= event.has_deleted() && event.deleted().kind() == "setting";
    }
    if (!response.snapshot_done() || snapshot) continue;
    snapshot = true;
    v1::UpdateAlertRuleRequest update;
    update.set_rule(v1::ALERT_RULE_KIND_STUCK);
    update.set_enabled(false);
    v1::UpdateAlertRuleResponse updated;
    grpc::ClientContext change;
    ASSERT_TRUE(alerts->UpdateAlertRule(&change, update, &updated).ok());
    ASSERT_TRUE(set("batch", "16", v1::SETTING_SCOPE_FLEET).ok());
    v1::UnsetSettingRequest unset;
    unset.mutable_setting()->set_scope(v1::SETTING_SCOPE_FLEET);
    unset.mutable_setting()->set_key("batch");
    v1::UnsetSettingResponse done;
    grpc::ClientContext remove;
    ASSERT_TRUE(settings->UnsetSetting(&remove, unset, &done).ok());
  }
  EXPECT_TRUE(rules && setting && gone);
  context.TryCancel();
}

TEST_F(AlertApi, SettingsAreCheckedBeforeTheyAreKept) {
  server.put_board(1, "one");
  const auto refused = [&](const std::string& key, const std::string& value,
                           v1::SettingScope scope = v1::SETTING_SCOPE_FLEET,
                           const std::string& target = "", int board = 0) {
    return set(key, value, scope, target, board).error_code();
  };
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  EXPECT_EQ(refused("mu_wieght", "1"), kInvalid);
  EXPECT_EQ(refused("mu_weight", "x"), kInvalid);
  EXPECT_EQ(refused("mu_weight", "1/2"), kInvalid);
  EXPECT_EQ(refused("mu_weight", "99"), kInvalid);
  EXPECT_EQ(refused("batch", "0"), kInvalid);
  EXPECT_EQ(refused("guard", "yes"), kInvalid);
  EXPECT_EQ(refused("resume_deadline_s", "0"), kInvalid);
  EXPECT_EQ(refused("batch", "8", v1::SETTING_SCOPE_UNSPECIFIED), kInvalid);
  EXPECT_EQ(refused("batch", "8", v1::SETTING_SCOPE_FLEET, "sim"), kInvalid);
  EXPECT_EQ(refused("batch", "8", v1::SETTING_SCOPE_BOARD_TYPE), kInvalid);
  EXPECT_EQ(refused("batch", "8", v1::SETTING_SCOPE_COHORT, "site=lab,,"), kInvalid);
  EXPECT_EQ(refused("batch", "8", v1::SETTING_SCOPE_BOARD, "", 9), grpc::StatusCode::NOT_FOUND);
  v1::ListSettingsResponse page;
  grpc::ClientContext list;
  ASSERT_TRUE(settings->ListSettings(&list, {}, &page).ok());
  EXPECT_EQ(page.settings_size(), 0);
  EXPECT_TRUE(set("mu_weight", "1/-1/-3", v1::SETTING_SCOPE_FLEET).ok());
  EXPECT_EQ(applies, 1u);
}

TEST_F(AlertApi, TheMostSpecificSettingHolds) {
  server.put_board(1, "one");
  server.put_board(2, "two");
  ASSERT_TRUE(set("batch", "8", v1::SETTING_SCOPE_FLEET).ok());
  ASSERT_TRUE(set("batch", "16", v1::SETTING_SCOPE_COHORT, "name=one").ok());
  EXPECT_EQ(applies, 1u);
  ASSERT_TRUE(set("epochs", "3", v1::SETTING_SCOPE_FLEET).ok());
  ASSERT_TRUE(set("batch", "32", v1::SETTING_SCOPE_BOARD, "", 1).ok());
  v1::GetEffectiveSettingsRequest request;
  request.set_board_uid(uid_of(1).str());
  v1::GetEffectiveSettingsResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(settings->GetEffectiveSettings(&context, request, &response).ok());
  std::map<std::string, v1::EffectiveSetting> by_key;
  for (const auto& item : response.settings()) by_key[item.key()] = item;
  EXPECT_EQ(by_key["batch"].desired(), "32");
  EXPECT_EQ(by_key["batch"].source().scope(), v1::SETTING_SCOPE_BOARD);
  ASSERT_EQ(by_key["batch"].overridden_size(), 2);
  EXPECT_EQ(by_key["batch"].overridden(0).value(), "16");
  EXPECT_EQ(by_key["batch"].overridden(1).value(), "8");
  EXPECT_EQ(by_key["epochs"].desired(), "3");
  EXPECT_TRUE(by_key["mu_weight"].desired().empty());
  EXPECT_FALSE(by_key["mu_weight"].has_source());
  EXPECT_TRUE(response.run_id().empty());
}

}  // namespace
}  // namespace odt::test
