#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>

#include <thread>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server_fixture.h"

namespace odt::test {
namespace {

namespace v1 = api::v1;

std::string reason_in(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (!details.ParseFromString(status.error_details()) || details.details_size() == 0) return "";
  return details.details(0).UnpackTo(&info) ? info.reason() : "";
}

TEST_F(ApiTest, ListsAndGetsBoards) {
  server.put_board(1, "one");
  server.put_board(2, "two");
  const auto stub = v1::FleetService::NewStub(server.connect());
  v1::ListBoardsRequest list;
  list.set_page_size(1);
  v1::ListBoardsResponse page;
  grpc::ClientContext first;
  ASSERT_TRUE(stub->ListBoards(&first, list, &page).ok());
  ASSERT_EQ(page.boards_size(), 1);
  EXPECT_EQ(page.boards(0).name(), "one");
  list.set_page_token(page.next_page_token());
  grpc::ClientContext second;
  ASSERT_TRUE(stub->ListBoards(&second, list, &page).ok());
  EXPECT_EQ(page.boards(0).name(), "two");
  EXPECT_TRUE(page.next_page_token().empty());

  v1::GetBoardRequest get;
  get.set_uid(uid_of(9).str());
  v1::GetBoardResponse got;
  grpc::ClientContext third;
  const auto status = stub->GetBoard(&third, get, &got);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(reason_in(status), "BOARD_UNKNOWN");
}

// A board is stored a moment before the fleet's view has it: no one can act on it yet.
TEST_F(ApiTest, ABoardThatTheFleetDoesNotShowIsNotOnline) {
  model::Board board;
  board.uid = uid_of(1);
  board.status = model::BoardStatus::kOnline;
  store::Batch batch;
  batch.changes.push_back(store::PutBoard{board});
  ASSERT_TRUE(
      server.control.call_sync([&](store::ControlStore& s) { return s.commit(batch); }).ok());
  const auto stub = v1::FleetService::NewStub(server.connect());
  const auto shown = [&] {
    v1::GetBoardRequest get;
    get.set_uid(board.uid.str());
    v1::GetBoardResponse got;
    grpc::ClientContext context;
    EXPECT_TRUE(stub->GetBoard(&context, get, &got).ok());
    return got.board().status();
  };
  EXPECT_EQ(shown(), v1::BOARD_STATUS_OFFLINE);
  server.fleet.show({{board}, {}, 1});
  EXPECT_EQ(shown(), v1::BOARD_STATUS_ONLINE);
}

TEST_F(ApiTest, ACohortBeforeTheFleetsFirstViewHasNoBoards) {
  server.fleet.show_nothing_yet();
  const auto stub = v1::WeightsService::NewStub(server.connect());
  v1::RestoreCohortRequest request;
  request.set_request_id("0123456789abcdef");
  request.set_snapshot(std::string(32, 'h'));
  request.set_boards("site=lab");
  v1::RestoreCohortResponse response;
  grpc::ClientContext context;
  const auto status = stub->RestoreCohort(&context, request, &response);
  EXPECT_EQ(reason_in(status), "NO_BOARDS") << status.error_message();
}

TEST_F(ApiTest, CancelJobReachesWhoeverCarriesItOut) {
  const auto stub = v1::JobService::NewStub(server.connect());
  for (const auto kind : {model::Job::Kind::kEvaluate, model::Job::Kind::kCompile}) {
    model::Job job;
    job.id = new_uuid();
    job.kind = kind;
    job.state = model::Job::State::kRunning;
    store::Batch batch;
    batch.changes.push_back(store::PutJob{job});
    ASSERT_TRUE(
        server.control
            .call_sync([&batch](store::ControlStore& s) { return s.commit(std::move(batch)); })
            .ok());
    v1::CancelJobRequest request;
    request.set_id(job.id.str());
    v1::CancelJobResponse response;
    grpc::ClientContext context;
    const auto status = stub->CancelJob(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(server.fleet.evaluations_cancelled, 1);
    EXPECT_EQ(response.job().id() == job.id.str(), kind == model::Job::Kind::kEvaluate);
  }
  v1::CancelJobRequest request;
  request.set_id(new_uuid().str());
  v1::CancelJobResponse response;
  grpc::ClientContext context;
  EXPECT_EQ(stub->CancelJob(&context, request, &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(ApiTest, UnixSocketServesToo) {
  const auto stub = v1::SystemService::NewStub(grpc::CreateChannel(
      "unix:" + server.dir.path + "/odtd.sock", grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::GetInfoResponse info;
  ASSERT_TRUE(stub->GetInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.version(), "0.0.test");
  EXPECT_EQ(info.gateway_id().size(), 16u);
}

// Every method answers an empty request with a status of its own: none hangs, none is missing.
TEST_F(ApiTest, EveryMethodAnswersAnEmptyRequest) {
  const auto channel = server.connect();
  grpc::GenericStub stub(channel);
  const auto* file = v1::GetInfoRequest::descriptor()->file();
  for (int s = 0; s < file->service_count(); ++s) {
    for (int m = 0; m < file->service(s)->method_count(); ++m) {
      const auto* method = file->service(s)->method(m);
      if (method->server_streaming()) continue;
      const std::string path = "/" + file->service(s)->full_name() + "/" + method->name();
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
      grpc::CompletionQueue queue;
      const grpc::Slice empty("");
      const grpc::ByteBuffer request(&empty, 1);
      grpc::ByteBuffer response;
      grpc::Status status;
      auto call = stub.PrepareUnaryCall(&context, path, request, &queue);
      call->StartCall();
      call->Finish(&response, &status, nullptr);
      void* tag = nullptr;
      bool ok = false;
      ASSERT_TRUE(queue.Next(&tag, &ok));
      EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ||
                  status.error_code() == grpc::StatusCode::NOT_FOUND)
          << path << ": " << status.error_code() << " " << status.error_message();
      queue.Shutdown();
      while (queue.Next(&tag, &ok)) {}
    }
  }
}

v1::CreateRunRequest create_request(const std::string& id) {
  v1::CreateRunRequest request;
  request.set_request_id(id);
  request.mutable_spec()->set_board_uid(uid_of(1).str());
  request.mutable_spec()->set_model_hash(std::string(32, 'm'));
  request.mutable_spec()->set_dataset_id(std::string(16, 'd'));
  return request;
}

TEST_F(ApiTest, ARepeatedRequestHasOneEffectAndTheSameAnswer) {
  const auto stub = v1::RunService::NewStub(server.connect());
  std::string ids[2];
  for (auto& id : ids) {
    grpc::ClientContext context;
    v1::CreateRunResponse response;
    const auto status = stub->CreateRun(&context, create_request("abc"), &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    id = response.run().id();
  }
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(server.fleet.runs_created, 1);

  auto other = create_request("abc");
  other.mutable_spec()->set_name("another");
  grpc::ClientContext context;
  v1::CreateRunResponse response;
  const auto status = stub->CreateRun(&context, other, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(reason_in(status), "REQUEST_ID_REUSED");
}

TEST_F(ApiTest, TheSameRequestAtOnceHasOneEffect) {
  const auto channel = server.connect();
  std::vector<std::thread> callers;
  std::mutex mutex;
  std::set<std::string> ids;
  for (int i = 0; i < 8; ++i)
    callers.emplace_back([&] {
      const auto stub = v1::RunService::NewStub(channel);
      grpc::ClientContext context;
      v1::CreateRunResponse response;
      if (!stub->CreateRun(&context, create_request("once"), &response).ok()) return;
      const std::lock_guard lock(mutex);
      ids.insert(response.run().id());
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(ids.size(), 1u);
  EXPECT_EQ(server.fleet.runs_created, 1);
}

TEST_F(ApiTest, AFailedRequestMayBeTriedAgain) {
  const auto stub = v1::FleetService::NewStub(server.connect());
  v1::UpdateBoardRequest request;
  request.set_request_id("rename");
  request.set_uid(uid_of(1).str());
  request.set_name("new");
  v1::UpdateBoardResponse response;
  grpc::ClientContext before;
  EXPECT_EQ(stub->UpdateBoard(&before, request, &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
  server.put_board(1, "old");
  grpc::ClientContext after;
  const auto status = stub->UpdateBoard(&after, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.board().name(), "new");
}

TEST_F(ApiTest, ErrorsCarryReasonRemedyAndField) {
  const auto stub = v1::FleetService::NewStub(server.connect());
  v1::ResetBoardRequest reset;
  reset.set_uid(uid_of(1).str());
  v1::ResetBoardResponse response;
  grpc::ClientContext context;
  const auto status = stub->ResetBoard(&context, reset, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(reason_in(status), "BOARD_OFFLINE");
}

TEST_F(ApiTest, UploadsBecomeBlobs) {
  const auto stub = v1::UploadService::NewStub(server.connect());
  const std::string content(600'000, 'x');
  v1::CreateUploadRequest create;
  create.set_name("x.onnx");
  create.set_size(content.size());
  create.set_sha256(sha256(content).str());
  v1::CreateUploadResponse created;
  grpc::ClientContext first;
  ASSERT_TRUE(stub->CreateUpload(&first, create, &created).ok());
  for (std::size_t at = 0; at < content.size();) {
    v1::WriteChunkRequest chunk;
    chunk.set_upload_id(created.upload().id());
    chunk.set_offset(at);
    chunk.set_data(content.substr(at, 512u << 10));
    v1::WriteChunkResponse written;
    grpc::ClientContext context;
    ASSERT_TRUE(stub->WriteChunk(&context, chunk, &written).ok());
    at = written.received();
  }
  v1::FinishUploadRequest finish;
  finish.set_id(created.upload().id());
  v1::FinishUploadResponse finished;
  grpc::ClientContext last;
  ASSERT_TRUE(stub->FinishUpload(&last, finish, &finished).ok());
  EXPECT_EQ(finished.blob(), sha256(content).str());
  EXPECT_TRUE(server.blobs->has(sha256(content)));

  v1::WriteChunkRequest big;
  big.set_upload_id(created.upload().id());
  big.set_data(std::string((512u << 10) + 1, 'x'));
  v1::WriteChunkResponse written;
  grpc::ClientContext context;
  EXPECT_EQ(stub->WriteChunk(&context, big, &written).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ApiTest, PortInUseIsNamed) {
  const auto taken = api::GrpcServer::check({"127.0.0.1", server.grpc->port(), ""});
  EXPECT_EQ(taken.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(taken.message().find(std::to_string(server.grpc->port())), absl::string_view::npos);
  EXPECT_FALSE(remedy_of(taken).empty());
  const auto socket = api::GrpcServer::check({"127.0.0.1", 0, server.dir.path + "/odtd.sock"});
  EXPECT_EQ(socket.code(), absl::StatusCode::kAlreadyExists);
  api::HttpOptions http;
  http.port = server.http_port();
  EXPECT_EQ(api::HttpServer::bind(server.front.io, http).status().code(),
            absl::StatusCode::kAlreadyExists);
  const auto long_path = api::GrpcServer::check({"127.0.0.1", 0, "/" + std::string(120, 's')});
  EXPECT_EQ(long_path.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace odt::test
