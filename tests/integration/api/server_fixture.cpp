#include "server_fixture.h"

#include <filesystem>
#include <fstream>
#include <future>

#include "store/fs_blob_store.h"

namespace odt::test {
namespace {

std::unique_ptr<store::BlobStore> open_blobs(const std::string& folder) {
  auto opened = store::FsBlobStore::open(folder);
  if (!opened.ok()) std::abort();
  return std::move(*opened);
}

alerts::EngineOptions alert_options(FakeFleet& fleet) {
  alerts::EngineOptions options;
  options.rules = alerts::default_rules();
  options.view = [&fleet] { return fleet.view(); };
  return options;
}

}  // namespace

ApiServer::ApiServer(api::HttpOptions http_options)
    : control(std::make_unique<store::MemoryControlStore>(clock)),
      telemetry(std::make_unique<store::MemoryTelemetryStore>()),
      blobs(open_blobs(dir.path + "/blobs")),
      fleet(control),
      alerts(front.io, clock, control, alert_options(fleet)),
      hub(front.io, control, telemetry, fleet, clock),
      uploads(control, *blobs, clock, {dir.path + "/uploads", 10u << 20, 0, 1'000'000'000}),
      gate(policy, control),
      deps{gate,
           control,
           telemetry,
           *blobs,
           fleet,
           jobs,
           campaigns,
           alerts,
           uploads,
           hub,
           clock,
           [] {
             api::SystemInfo info;
             info.version = "0.0.test";
             return info;
           }} {
  control.add_observer(&hub);
  telemetry.add_observer(&hub);
  hub.start();
  if (!alerts.start().ok()) std::abort();
  if (!uploads.start().ok()) std::abort();
  std::filesystem::create_directories(dir.path + "/web");
  std::ofstream(dir.path + "/web/index.html") << "<html>dashboard</html>";
  http_options.port = 0;
  http_options.web_dir = dir.path + "/web";
  auto bound = api::HttpServer::bind(front.io, std::move(http_options));
  if (!bound.ok()) std::abort();
  http = std::move(*bound);
  auto started =
      api::GrpcServer::start({"127.0.0.1", 0, dir.path + "/odtd.sock"}, api::make_services(deps));
  if (!started.ok()) std::abort();
  grpc = std::move(*started);
  std::promise<void> serving;
  asio::post(front.io, [&] {
    http->serve({grpc->channel(), blobs.get(), &gate,
                 [this] { return api::metrics_text(deps, http->connections()); },
                 [] { return true; }});
    serving.set_value();
  });
  serving.get_future().wait();
}

ApiServer::~ApiServer() {
  hub.stop();
  asio::post(front.io, [this] { http->stop_accepting(); });
  grpc->shutdown(std::chrono::milliseconds(200));
  std::promise<void> closed;
  asio::post(front.io, [&] {
    http->close_all();
    closed.set_value();
  });
  closed.get_future().wait();
  uploads.stop();
  alerts.stop();
  front.stop();
  telemetry.stop();
  control.stop();
  fleet.pending.clear();
}

std::shared_ptr<grpc::Channel> ApiServer::connect() const {
  return grpc::CreateChannel("127.0.0.1:" + std::to_string(grpc->port()),
                             grpc::InsecureChannelCredentials());
}

void ApiServer::put_board(int number, const std::string& name) {
  model::Board board;
  board.uid = uid_of(number);
  board.name = name;
  store::Batch batch;
  batch.changes.push_back(store::PutBoard{board});
  const auto events =
      control.call_sync([&](store::ControlStore& s) { return s.commit(std::move(batch)); });
  ASSERT_TRUE(events.ok()) << events.status();
}

}  // namespace odt::test
