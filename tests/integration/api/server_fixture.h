#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "alerts/book.h"
#include "alerts/engine.h"
#include "api/grpc_server.h"
#include "api/http_server.h"
#include "api/metrics.h"
#include "fakes.h"
#include "odt/api/v1/services.grpc.pb.h"

namespace odt::test {

// The API as odtd serves it, on free ports of 127.0.0.1, over memory stores and small fakes.
class ApiServer {
 public:
  explicit ApiServer(api::HttpOptions http_options = {});
  ~ApiServer();

  std::shared_ptr<grpc::Channel> connect() const;
  std::uint16_t http_port() const { return http->port(); }
  void put_board(int number, const std::string& name);

  SystemClock clock;
  TempDir dir;
  IoThread front;
  store::ControlThread control;
  store::TelemetryThread telemetry;
  std::unique_ptr<store::BlobStore> blobs;
  FakeFleet fleet;
  FakeJobs jobs;
  FakeCampaigns campaigns;
  alerts::Engine alerts;
  api::WatchHub hub;
  api::Uploads uploads;
  api::AccessPolicy policy;
  api::Gate gate;
  api::Deps deps;
  std::unique_ptr<api::GrpcServer> grpc;
  std::unique_ptr<api::HttpServer> http;
};

// Whether `pred` holds within three seconds.
template <typename Pred>
bool eventually(Pred pred) {
  for (int i = 0; i < 300; ++i) {
    if (pred()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class ApiTest : public testing::Test {
 protected:
  ApiServer server;
};

}  // namespace odt::test
