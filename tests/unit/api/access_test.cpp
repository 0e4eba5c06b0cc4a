#include "api/access.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <set>

#include "api/services.h"
#include "fakes.h"
#include "odt/api/v1/alerts.pb.h"
#include "odt/api/v1/auth.pb.h"
#include "odt/api/v1/campaigns.pb.h"
#include "odt/api/v1/console.pb.h"
#include "odt/api/v1/evaluations.pb.h"
#include "odt/api/v1/events.pb.h"
#include "odt/api/v1/lab.pb.h"
#include "odt/api/v1/services.pb.h"
#include "odt/api/v1/storage.pb.h"

namespace odt::api {
namespace {

// Of every file of the API.
std::vector<const google::protobuf::ServiceDescriptor*> declared_services() {
  std::vector<const google::protobuf::ServiceDescriptor*> out;
  for (const auto* file :
       {v1::GetInfoRequest::descriptor()->file(), v1::GetCampaignRequest::descriptor()->file(),
        v1::GetStorageRequest::descriptor()->file(), v1::GetAlertRequest::descriptor()->file(),
        v1::WhoAmIRequest::descriptor()->file(), v1::ReserveBoardRequest::descriptor()->file(),
        v1::ListConsoleRequest::descriptor()->file(),
        v1::ListEvaluationsRequest::descriptor()->file(),
        v1::SearchEventsRequest::descriptor()->file()})
    for (int s = 0; s < file->service_count(); ++s) out.push_back(file->service(s));
  return out;
}

TEST(Access, LocalPeersAreAdmin) {
  const AccessPolicy policy;
  for (const char* peer : {"unix:", "unix:/run/odtd.sock", "ipv4:127.0.0.1:5", "ipv6:[::1]:5",
                           "ipv6:%5B::1%5D:5", "ipv6:[::ffff:127.0.0.1]:5"})
    EXPECT_EQ(policy.caller(peer).role, Role::kAdmin) << peer;
  for (const char* peer : {"", "ipv4:10.0.0.1:5", "ipv6:[fe80::1]:5", "ipv4:1.127.0.0.1:5"})
    EXPECT_EQ(policy.caller(peer).role, Role::kNone) << peer;
}

TEST(Access, RemoteRoleIsALimit) {
  const AccessPolicy policy(Role::kViewer);
  const Caller remote = policy.caller("ipv4:10.0.0.1:5");
  EXPECT_TRUE(policy.check(remote, Role::kViewer, "m").ok());
  const Status refused = policy.check(remote, Role::kOperator, "m");
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(reason_of(refused), "ROLE_TOO_LOW");
  EXPECT_FALSE(remedy_of(refused).empty());
}

TEST(Access, EveryMethodHasAnAccessOptionAndMutationsTakeARequestId) {
  int methods = 0;
  for (const auto* service : declared_services()) {
    for (int m = 0; m < service->method_count(); ++m) {
      const auto* method = service->method(m);
      const auto rule = access_rule(*method);
      ASSERT_TRUE(rule.ok()) << rule.status();
      EXPECT_NE(rule->role, Role::kNone) << method->full_name();
      const bool takes_id = method->input_type()->FindFieldByName("request_id") != nullptr;
      EXPECT_EQ(rule->mutates, takes_id) << method->full_name();
      ++methods;
    }
  }
  EXPECT_GT(methods, 40);
}

TEST(Access, EveryMethodIsRegistered) {
  SystemClock clock;
  asio::io_context front;
  store::ControlThread control(std::make_unique<store::MemoryControlStore>(clock));
  store::TelemetryThread telemetry(std::make_unique<store::MemoryTelemetryStore>());
  store::MemoryBlobStore blobs;
  test::FakeFleet fleet(control);
  test::FakeJobs jobs;
  test::FakeCampaigns campaigns;
  test::FakeAlerts alerts;
  test::TempDir dir;
  Uploads uploads(control, blobs, clock, {dir.path, 1 << 20, 0, 0});
  WatchHub hub(front, control, telemetry, fleet, clock);
  AccessPolicy policy;
  Gate gate(policy, control);
  Deps deps{gate,      control, telemetry, blobs, fleet, jobs,
            campaigns, alerts,  uploads,   hub,   clock, {}};
  const auto services = make_services(deps);

  std::set<std::string> registered, declared;
  for (const auto* method : gate.methods()) registered.insert(method->path);
  for (const auto* service : declared_services())
    for (int m = 0; m < service->method_count(); ++m)
      declared.insert("/" + service->full_name() + "/" + service->method(m)->name());
  EXPECT_EQ(registered, declared);
  EXPECT_EQ(services.size(), declared_services().size());
}

}  // namespace
}  // namespace odt::api
