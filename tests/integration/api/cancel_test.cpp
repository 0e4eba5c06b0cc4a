#include <thread>

#include "server_fixture.h"

namespace odt::test {
namespace {

namespace v1 = api::v1;
using std::chrono::milliseconds;

// The fake never answers IdentifyBoard.
TEST_F(ApiTest, ADeadlineEndsACallThatNobodyAnswers) {
  const auto stub = v1::FleetService::NewStub(server.connect());
  v1::IdentifyBoardRequest request;
  request.set_uid(uid_of(1).str());
  v1::IdentifyBoardResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + milliseconds(200));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(stub->IdentifyBoard(&context, request, &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  // A late answer hurts nobody.
  ASSERT_EQ(server.fleet.pending.size(), 1u);
  server.fleet.pending[0](true);
}

TEST_F(ApiTest, ShutdownEndsCallsThatNobodyAnswers) {
  const auto channel = server.connect();
  grpc::Status status;
  std::thread caller([&] {
    const auto stub = v1::FleetService::NewStub(channel);
    v1::IdentifyBoardRequest request;
    request.set_uid(uid_of(1).str());
    v1::IdentifyBoardResponse response;
    grpc::ClientContext context;
    status = stub->IdentifyBoard(&context, request, &response);
  });
  ASSERT_TRUE(eventually([&] { return !server.fleet.pending.empty(); }));
  const auto start = std::chrono::steady_clock::now();
  server.grpc->shutdown(milliseconds(100));
  caller.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
  EXPECT_FALSE(status.ok());
}

TEST_F(ApiTest, WatchStreamsEventsAndEndsWhenCancelled) {
  server.put_board(1, "one");
  const auto stub = v1::WatchService::NewStub(server.connect());
  v1::WatchRequest request;
  request.add_topics()->set_kind(v1::Topic::KIND_FLEET);
  request.mutable_topics(0)->set_lossless(true);
  grpc::ClientContext context;
  const auto reader = stub->Watch(&context, request);
  v1::WatchResponse response;
  std::vector<std::string> names;
  bool done = false;
  while (!done && reader->Read(&response)) {
    for (const auto& event : response.events()) names.push_back(event.board().name());
    done = response.snapshot_done();
  }
  EXPECT_EQ(names, std::vector<std::string>{"one"});
  server.put_board(2, "two");
  while (names.size() < 2 && reader->Read(&response))
    for (const auto& event : response.events()) names.push_back(event.board().name());
  EXPECT_EQ(names.back(), "two");
  EXPECT_EQ(server.hub.streams(), 1u);
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(eventually([&] { return server.hub.streams() == 0; }));
}

TEST_F(ApiTest, UpdateWatchWorksOverTheWire) {
  const auto channel = server.connect();
  const auto stub = v1::WatchService::NewStub(channel);
  grpc::ClientContext context;
  const auto reader = stub->Watch(&context, {});
  v1::WatchResponse response;
  ASSERT_TRUE(reader->Read(&response));
  v1::UpdateWatchRequest update;
  update.set_watch_id(response.watch_id());
  update.add_add()->set_kind(v1::Topic::KIND_FLEET);
  v1::UpdateWatchResponse updated;
  grpc::ClientContext unary;
  ASSERT_TRUE(stub->UpdateWatch(&unary, update, &updated).ok());
  server.put_board(1, "one");
  std::string name;
  while (name.empty() && reader->Read(&response))
    if (response.events_size() > 0) name = response.events(0).board().name();
  EXPECT_EQ(name, "one");
  context.TryCancel();
  reader->Finish();
}

TEST_F(ApiTest, ABadTopicEndsTheStreamWithItsField) {
  const auto stub = v1::WatchService::NewStub(server.connect());
  v1::WatchRequest request;
  request.add_topics()->set_kind(v1::Topic::KIND_RUN);
  grpc::ClientContext context;
  const auto reader = stub->Watch(&context, request);
  v1::WatchResponse response;
  EXPECT_FALSE(reader->Read(&response));
  const auto status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("topics.key"), std::string::npos);
}

TEST_F(ApiTest, ShutdownEndsOpenStreamsQuickly) {
  const auto stub = v1::WatchService::NewStub(server.connect());
  grpc::ClientContext context;
  const auto reader = stub->Watch(&context, {});
  v1::WatchResponse response;
  ASSERT_TRUE(reader->Read(&response));
  server.hub.stop();
  while (reader->Read(&response)) {}
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace odt::test
