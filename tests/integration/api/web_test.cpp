#include <thread>

#include "api/web_frame.h"
#include "http_client.h"
#include "server_fixture.h"

namespace odt::test {
namespace {

namespace v1 = api::v1;
using std::chrono::milliseconds;

constexpr char kGetInfo[] = "/odt.api.v1.SystemService/GetInfo";
constexpr char kGetBoard[] = "/odt.api.v1.FleetService/GetBoard";
constexpr char kIdentify[] = "/odt.api.v1.FleetService/IdentifyBoard";
constexpr char kWatch[] = "/odt.api.v1.WatchService/Watch";

TEST_F(ApiTest, WebUnaryCallsKeepTheConnection) {
  HttpClient client(server.http_port());
  for (int i = 0; i < 50; ++i) {
    const auto response = client.call(kGetInfo, "");
    ASSERT_EQ(response.status, 200);
    const auto frames = frames_of(response.body);
    ASSERT_EQ(frames.size(), 2u);
    v1::GetInfoResponse info;
    ASSERT_TRUE(info.ParseFromString(frames[0].payload));
    EXPECT_EQ(info.version(), "0.0.test");
    EXPECT_EQ(trailer_of(response.body, "grpc-status"), "0");
  }
}

TEST_F(ApiTest, WebErrorsComeInTheTrailer) {
  HttpClient client(server.http_port());
  v1::GetBoardRequest request;
  request.set_uid("short");
  const auto response = client.call(kGetBoard, request.SerializeAsString());
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(frames_of(response.body).size(), 1u);
  EXPECT_EQ(trailer_of(response.body, "grpc-status"), "3");
  EXPECT_NE(trailer_of(response.body, "grpc-message").find("uid"), std::string::npos);
  EXPECT_FALSE(trailer_of(response.body, "grpc-status-details-bin").empty());
  const auto unknown = client.call("/odt.api.v1.FleetService/Nothing", "");
  EXPECT_EQ(trailer_of(unknown.body, "grpc-status"), "12");
}

TEST_F(ApiTest, WebRequestsAreChecked) {
  HttpClient client(server.http_port());
  for (const char* type : {"application/jsonx", "application/grpc-web-text", "text/plain"})
    EXPECT_EQ(client.request("POST", kGetInfo, {{"Content-Type", type}}, "x").status, 415) << type;
  EXPECT_EQ(client.request("POST", kGetInfo, {}, "x").status, 415);
  const HttpClient::Headers web{{"Content-Type", "application/grpc-web+proto"}};
  EXPECT_EQ(trailer_of(client.request("POST", kGetInfo, web, "xx").body, "grpc-status"), "3");
  EXPECT_EQ(
      trailer_of(client.request("POST", kGetInfo, web, std::string(5, '\1')).body, "grpc-status"),
      "12");
  EXPECT_EQ(trailer_of(client.call(kGetInfo, "", {{"grpc-timeout", "soon"}}).body, "grpc-status"),
            "3");
  EXPECT_EQ(client.request("DELETE", "/").status, 405);
}

TEST_F(ApiTest, JsonCallsKeepTheConnection) {
  HttpClient client(server.http_port());
  const HttpClient::Headers json{{"Content-Type", "application/json"}};
  for (int i = 0; i < 20; ++i) {
    const auto good = client.request("POST", kGetInfo, json, "{}");
    ASSERT_EQ(good.status, 200);
    EXPECT_NE(good.body.find(R"("version":"0.0.test")"), std::string::npos) << good.body;
    const auto bad = client.request("POST", kGetBoard, json, R"({"uid": "AQ=="})");
    ASSERT_EQ(bad.status, 400);
    EXPECT_NE(bad.body.find(R"("code": "INVALID_ARGUMENT")"), std::string::npos) << bad.body;
  }
  EXPECT_EQ(client.request("POST", kWatch, json, "{}").status, 501);
  EXPECT_EQ(client.request("POST", "/", json, "{}").status, 404);
}

TEST_F(ApiTest, JsonCallsHaveDeadlinesAndLimits) {
  HttpClient client(server.http_port());
  const std::string board = R"({"uid": ")" + api::base64(uid_of(1).str()) + R"(="})";
  const auto late = client.request(
      "POST", kIdentify, {{"Content-Type", "application/json"}, {"grpc-timeout", "200m"}}, board);
  EXPECT_EQ(late.status, 504) << late.body;
  const auto big = client.request("POST", kGetInfo, {{"Content-Type", "application/json"}},
                                  std::string((4u << 20) + 6, ' '));
  EXPECT_EQ(big.status, 413) << big.body;
}

TEST_F(ApiTest, WebMessagesAreLimited) {
  HttpClient client(server.http_port());
  const auto response = client.call(kGetInfo, std::string((4u << 20) + 1, 'x'));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(trailer_of(response.body, "grpc-status"), "8");
}

TEST_F(ApiTest, WebDeadlinesEndCalls) {
  HttpClient client(server.http_port());
  v1::IdentifyBoardRequest request;
  request.set_uid(uid_of(1).str());
  const auto response =
      client.call(kIdentify, request.SerializeAsString(), {{"grpc-timeout", "200m"}});
  EXPECT_EQ(trailer_of(response.body, "grpc-status"), "4");
  EXPECT_EQ(client.call(kGetInfo, "").status, 200);
}

TEST_F(ApiTest, WebHostAndOriginAreChecked) {
  HttpClient client(server.http_port());
  EXPECT_EQ(client.request("GET", "/", {{"Host", "evil.example"}}).status, 403);
  EXPECT_EQ(client.call(kGetInfo, "", {{"Host", "evil.example"}}).status, 403);
  EXPECT_EQ(client.call(kGetInfo, "", {{"Origin", "http://evil.example"}}).status, 403);
  const auto same =
      client.call(kGetInfo, "", {{"Host", "localhost:1"}, {"Origin", "http://localhost:1"}});
  EXPECT_EQ(same.status, 200);
  EXPECT_EQ(same.headers.count("access-control-allow-origin"), 0u);
  const auto preflight = client.request("OPTIONS", kGetInfo, {{"Origin", "http://evil.example"}});
  EXPECT_EQ(preflight.status, 403);
}

// What the bridge tells the server of the caller cannot be said by the caller.
TEST_F(ApiTest, WebCallersCannotNameTheirPeer) {
  HttpClient client(server.http_port());
  const auto response =
      client.call(kGetInfo, "", {{"x-odt-bridge", "guess"}, {"x-odt-peer", "unix:"}});
  EXPECT_EQ(trailer_of(response.body, "grpc-status"), "0");  // not even looked at
  grpc::ClientContext context;
  context.AddMetadata("x-odt-bridge", "guess");
  context.AddMetadata("x-odt-peer", "unix:");
  v1::GetInfoResponse info;
  EXPECT_EQ(v1::SystemService::NewStub(server.connect())->GetInfo(&context, {}, &info).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(ApiTest, WebWatchStreamsAndSeesTheTabClose) {
  auto client = std::make_unique<HttpClient>(server.http_port());
  v1::WatchRequest request;
  request.add_topics()->set_kind(v1::Topic::KIND_FLEET);
  request.mutable_topics(0)->set_lossless(true);
  client->begin_call(kWatch, request.SerializeAsString());
  EXPECT_EQ(client->read_head().status, 200);
  std::string body;
  bool done = false;
  while (!done) {
    const auto chunk = client->read_chunk();
    ASSERT_FALSE(chunk.empty());
    for (const auto& frame : frames_of(chunk)) {
      v1::WatchResponse response;
      ASSERT_TRUE(response.ParseFromString(frame.payload));
      done = done || response.snapshot_done();
    }
  }
  server.put_board(1, "one");
  v1::WatchResponse event;
  const auto frames = frames_of(client->read_chunk());
  ASSERT_EQ(frames.size(), 1u);
  ASSERT_TRUE(event.ParseFromString(frames[0].payload));
  EXPECT_EQ(event.events(0).board().name(), "one");
  EXPECT_EQ(server.hub.streams(), 1u);
  client.reset();
  EXPECT_TRUE(eventually([&] { return server.hub.streams() == 0; }));
}

TEST_F(ApiTest, WebManyStreamsAndCallsAtOnce) {
  std::vector<std::unique_ptr<HttpClient>> watchers;
  for (int i = 0; i < 20; ++i) {
    watchers.push_back(std::make_unique<HttpClient>(server.http_port()));
    watchers.back()->begin_call(kWatch, "");
    EXPECT_EQ(watchers.back()->read_head().status, 200);
  }
  std::vector<std::thread> callers;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i)
    callers.emplace_back([&] {
      HttpClient client(server.http_port());
      for (int k = 0; k < 100; ++k)
        if (trailer_of(client.call(kGetInfo, "").body, "grpc-status") == "0") ++good;
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(good, 800);
  EXPECT_TRUE(eventually([&] { return server.hub.streams() == 20; }));
  watchers.clear();
  EXPECT_TRUE(eventually([&] { return server.hub.streams() == 0; }));
}

TEST_F(ApiTest, WebStreamEndsWithATrailerWhenTheDaemonStops) {
  HttpClient client(server.http_port());
  client.begin_call(kWatch, "");
  EXPECT_EQ(client.read_head().status, 200);
  std::string body = client.read_chunk();
  server.hub.stop();
  for (std::string chunk = client.read_chunk(); !chunk.empty(); chunk = client.read_chunk())
    body += chunk;
  EXPECT_EQ(trailer_of(body, "grpc-status"), "14");
}

TEST_F(ApiTest, BlobsAreServedWithRanges) {
  ASSERT_TRUE(server.blobs->put("0123456789").ok());
  const std::string path = "/v1/blobs/" + sha256("0123456789").hex();
  HttpClient client(server.http_port());
  auto response = client.request("GET", path);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "0123456789");
  EXPECT_EQ(response.headers["accept-ranges"], "bytes");
  response = client.request("GET", path, {{"Range", "bytes=2-4"}});
  EXPECT_EQ(response.status, 206);
  EXPECT_EQ(response.body, "234");
  EXPECT_EQ(response.headers["content-range"], "bytes 2-4/10");
  EXPECT_EQ(client.request("GET", path, {{"Range", "bytes=10-"}}).status, 416);
  EXPECT_EQ(client.request("HEAD", path).headers["content-length"], "10");
  EXPECT_EQ(client.request("GET", "/v1/blobs/" + std::string(64, '0')).status, 404);
  EXPECT_EQ(client.request("GET", "/v1/blobs/../../x").status, 400);
}

TEST_F(ApiTest, DashboardIsServedWithItsPolicy) {
  HttpClient client(server.http_port());
  auto response = client.request("GET", "/");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "<html>dashboard</html>");
  EXPECT_NE(response.headers["content-security-policy"].find("default-src 'self'"),
            std::string::npos);
  EXPECT_EQ(response.headers["x-content-type-options"], "nosniff");
  const auto again = client.request("GET", "/", {{"If-None-Match", response.headers["etag"]}});
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(client.request("GET", "/assets/none.js").status, 404);
  EXPECT_EQ(client.request("GET", "/healthz").body, "ok\n");
  EXPECT_EQ(client.request("GET", "/readyz").status, 200);
  EXPECT_NE(client.request("GET", "/metrics").body.find("odt_watch_streams"), std::string::npos);
}

TEST(HttpConnections, SilentOnesMakeRoom) {
  api::HttpOptions options;
  options.max_connections = 8;
  ApiServer server(options);
  std::vector<std::unique_ptr<HttpClient>> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(std::make_unique<HttpClient>(server.http_port()));
  HttpClient client(server.http_port());
  EXPECT_EQ(trailer_of(client.call(kGetInfo, "").body, "grpc-status"), "0");
  // Who is answered is not sent away.
  std::vector<std::unique_ptr<HttpClient>> streams;
  for (int i = 0; i < 8; ++i) {
    streams.push_back(std::make_unique<HttpClient>(server.http_port()));
    streams.back()->begin_call(kWatch, "");
    EXPECT_EQ(streams.back()->read_head().status, 200) << i;
  }
  HttpClient refused(server.http_port());
  EXPECT_EQ(refused.request("GET", "/").status, 0);
  for (auto& stream : streams) EXPECT_FALSE(stream->read_chunk().empty());
  EXPECT_LE(server.http->connections(), 9u);
}

TEST_F(ApiTest, RubbishIsRefused) {
  HttpClient rubbish(server.http_port());
  rubbish.send("\x16\x03\x01 not http\r\n\r\n");
  EXPECT_EQ(rubbish.read().status, 400);
  HttpClient huge(server.http_port());
  huge.send("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n");
  EXPECT_EQ(huge.read().status, 400);
  HttpClient client(server.http_port());
  EXPECT_EQ(client.request("GET", "/healthz").status, 200);
}

}  // namespace
}  // namespace odt::test
