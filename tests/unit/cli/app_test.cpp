// odtctl against a gRPC server that answers from a script.
#include "cli/app.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/ids.h"
#include "cli/json.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "odt/api/v1/services.grpc.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;
namespace fs = std::filesystem;

grpc::Status refused(const std::string& text, const std::string& remedy) {
  google::rpc::ErrorInfo info;
  info.set_reason("BUSY");
  info.set_domain("odt-fleet");
  (*info.mutable_metadata())["remedy"] = remedy;
  google::rpc::Status envelope;
  envelope.add_details()->PackFrom(info);
  return {grpc::StatusCode::FAILED_PRECONDITION, text, envelope.SerializeAsString()};
}

v1::Board board(const std::string& uid, const std::string& name) {
  v1::Board b;
  b.set_uid(uid);
  b.set_name(name);
  b.set_status(v1::BOARD_STATUS_ONLINE);
  (*b.mutable_labels())["site"] = "lab";
  return b;
}

class Fleet final : public v1::FleetService::Service {
 public:
  grpc::Status ListBoards(grpc::ServerContext*, const v1::ListBoardsRequest* request,
                          v1::ListBoardsResponse* response) override {
    // Two pages, so that a client that forgets the second one is found out.
    if (request->page_token().empty()) {
      *response->add_boards() = board("uid-0001", "m33-1");
      response->set_next_page_token("2");
    } else {
      *response->add_boards() = board("uid-0002", "evil\x1b[31m");
    }
    return grpc::Status::OK;
  }
  grpc::Status UpdateBoard(grpc::ServerContext*, const v1::UpdateBoardRequest* request,
                           v1::UpdateBoardResponse* response) override {
    request_ids.push_back(request->request_id());
    *response->mutable_board() = board(request->uid(), request->name());
    return grpc::Status::OK;
  }
  grpc::Status ResetBoard(grpc::ServerContext*, const v1::ResetBoardRequest*,
                          v1::ResetBoardResponse*) override {
    return refused("board m33-1 trains", "cancel the run first");
  }
  std::vector<std::string> request_ids;
};

class Library final : public v1::ModelService::Service {
 public:
  grpc::Status ListModels(grpc::ServerContext*, const v1::ListModelsRequest*,
                          v1::ListModelsResponse* response) override {
    auto* model = response->add_models();
    model->set_name("fmnist");
    model->set_hash(std::string(32, 'm'));
    return grpc::Status::OK;
  }
};
class Data final : public v1::DatasetService::Service {
 public:
  grpc::Status ListDatasets(grpc::ServerContext*, const v1::ListDatasetsRequest*,
                            v1::ListDatasetsResponse* response) override {
    auto* dataset = response->add_datasets();
    dataset->set_name("shifted");
    dataset->set_id(std::string(16, 'd'));
    return grpc::Status::OK;
  }
};
class Runs final : public v1::RunService::Service {
 public:
  grpc::Status CreateRun(grpc::ServerContext*, const v1::CreateRunRequest* request,
                         v1::CreateRunResponse* response) override {
    last = *request;
    *response->mutable_run()->mutable_spec() = request->spec();
    response->mutable_run()->set_id(std::string(16, 'r'));
    response->mutable_run()->set_state(v1::RUN_STATE_QUEUED);
    return grpc::Status::OK;
  }
  v1::CreateRunRequest last;
};

// First stream: one epoch, then it breaks off; second: a snapshot of all, and the end.
class Watcher final : public v1::WatchService::Service {
 public:
  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest*,
                     grpc::ServerWriter<v1::WatchResponse>* writer) override {
    v1::WatchResponse response;
    v1::Run& run = *response.add_events()->mutable_run();
    run.set_id(std::string(16, 'r'));
    run.set_state(v1::RUN_STATE_RUNNING);
    run.mutable_effective()->set_epochs(2);
    if (hang) {
      writer->Write(response);
      while (!context->IsCancelled()) ::usleep(5000);
      return grpc::Status::CANCELLED;
    }
    add_epoch(response, 0);
    if (streams++ > 0) {
      add_epoch(response, 1);
      run.set_state(end);
      run.mutable_reason()->set_text("diverged");
      run.mutable_reason()->set_remedy("train again");
    }
    writer->Write(response);
    return {grpc::StatusCode::UNAVAILABLE, "going down"};
  }
  static void add_epoch(v1::WatchResponse& response, std::uint32_t number) {
    v1::EpochResult& epoch = *response.add_events()->mutable_epoch();
    epoch.set_run_id(std::string(16, 'r'));
    epoch.set_attempt(1);
    epoch.set_epoch(number);
    epoch.mutable_heldout()->set_correct(80);
    epoch.mutable_heldout()->set_total(100);
  }
  int streams = 0;
  bool hang = false;
  v1::RunState end = v1::RUN_STATE_SUCCEEDED;
};

class Uploads final : public v1::UploadService::Service {
 public:
  grpc::Status CreateUpload(grpc::ServerContext*, const v1::CreateUploadRequest* request,
                            v1::CreateUploadResponse* response) override {
    hash = request->sha256();
    auto* upload = response->mutable_upload();
    upload->set_id(std::string(16, 'u'));
    upload->set_size(request->size());
    upload->set_received(content.size());
    return grpc::Status::OK;
  }
  grpc::Status WriteChunk(grpc::ServerContext*, const v1::WriteChunkRequest* request,
                          v1::WriteChunkResponse* response) override {
    if (request->offset() != content.size() || request->data().size() > 512 * 1024)
      return {grpc::StatusCode::OUT_OF_RANGE, "offset"};
    content += request->data();
    response->set_received(content.size());
    return grpc::Status::OK;
  }
  grpc::Status FinishUpload(grpc::ServerContext*, const v1::FinishUploadRequest*,
                            v1::FinishUploadResponse* response) override {
    if (sha256(content).str() != hash) return {grpc::StatusCode::DATA_LOSS, "hash"};
    response->set_blob(hash);
    return grpc::Status::OK;
  }
  std::string content, hash;
};

class Weights final : public v1::WeightsService::Service {
 public:
  grpc::Status AddSnapshot(grpc::ServerContext*, const v1::AddSnapshotRequest* request,
                           v1::AddSnapshotResponse* response) override {
    response->mutable_snapshot()->set_hash(request->blob());
    response->mutable_snapshot()->add_aliases(request->alias());
    return grpc::Status::OK;
  }
};

class AppTest : public testing::Test {
 protected:
  AppTest() {
    std::string pattern = (fs::temp_directory_path() / "odt-cli-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    address_ = "unix:" + folder_ + "/s";
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    for (grpc::Service* service : std::initializer_list<grpc::Service*>{
             &fleet_, &library_, &data_, &runs_, &watch_, &uploads_, &weights_})
      builder.RegisterService(service);
    server_ = builder.BuildAndStart();
  }
  ~AppTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    fs::remove_all(folder_);
  }
  int run(std::vector<std::string> arguments, const std::string& address = "") {
    out_.str("");
    err_.str("");
    Context context({out_, err_});
    if (interrupt_) context.interrupt.raise();
    arguments.insert(arguments.begin(), {"--address", address.empty() ? address_ : address});
    return run_app(context, arguments);
  }
  std::string out() const { return out_.str(); }
  std::string err() const { return err_.str(); }
  bool said(const std::string& text) const {
    return (out() + err()).find(text) != std::string::npos;
  }
  const std::vector<std::string> kTrain = {"train",  "--board", "m33-1",  "--model",
                                           "fmnist", "--data",  "shifted"};
  int train(std::vector<std::string> more) {
    more.insert(more.begin(), kTrain.begin(), kTrain.end());
    return run(more);
  }

  std::string folder_, address_;
  Fleet fleet_;
  Library library_;
  Data data_;
  Runs runs_;
  Watcher watch_;
  Uploads uploads_;
  Weights weights_;
  std::unique_ptr<grpc::Server> server_;
  std::ostringstream out_, err_;
  bool interrupt_ = false;
};

TEST_F(AppTest, ListsAllPagesWithoutControlCharacters) {
  EXPECT_EQ(run({"board", "list"}), 0) << err();
  EXPECT_TRUE(said("m33-1"));
  EXPECT_TRUE(said("evil?[31m"));
  EXPECT_EQ(out().find_first_of("\x1b\r"), std::string::npos);
}

TEST_F(AppTest, JsonIsStable) {
  EXPECT_EQ(run({"--json", "board", "list"}), 0);
  const auto json = nlohmann::json::parse(out());
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["uid"], "7569642d30303031");
  EXPECT_EQ(json[0]["status"], "ONLINE");
  EXPECT_EQ(json[0]["ram_bytes"], 0);
  EXPECT_EQ(json[0]["labels"]["site"], "lab");
  EXPECT_TRUE(json[0]["link"].is_null());
}

TEST_F(AppTest, MutationsCarryARequestIdOfTheirOwn) {
  EXPECT_EQ(run({"board", "rename", "m33-1", "a"}), 0) << err();
  EXPECT_EQ(run({"board", "rename", "m33-1", "b"}), 0);
  ASSERT_EQ(fleet_.request_ids.size(), 2u);
  EXPECT_FALSE(fleet_.request_ids[0].empty());
  EXPECT_NE(fleet_.request_ids[0], fleet_.request_ids[1]);
}

TEST_F(AppTest, RefusalShowsMessageAndRemedy) {
  EXPECT_EQ(run({"board", "reset", "m33-1"}), 5);
  EXPECT_TRUE(said("board m33-1 trains"));
  EXPECT_TRUE(said("remedy: cancel the run first"));
  EXPECT_EQ(run({"--json", "board", "reset", "m33-1"}), 5);
  const auto json = nlohmann::json::parse(err());
  EXPECT_EQ(json["error"]["reason"], "BUSY");
  EXPECT_EQ(json["error"]["exit"], 5);
}

TEST_F(AppTest, UnknownBoardIsNotFoundWithSuggestion) {
  EXPECT_EQ(run({"board", "show", "m33-2"}), 4);
  EXPECT_TRUE(said("Did you mean 'm33-1'?"));
}

TEST_F(AppTest, NoDaemonIsExitThreeWithRemedy) {
  EXPECT_EQ(run({"board", "list"}, "unix:" + folder_ + "/none"), 3);
  EXPECT_TRUE(said("no odtd answers at unix:" + folder_ + "/none"));
  EXPECT_TRUE(said("odtctl doctor"));
}

TEST_F(AppTest, WrongUsageIsExitTwoWithSuggestion) {
  EXPECT_EQ(run({"bord", "list"}), 2);
  EXPECT_TRUE(said("Did you mean 'board'?"));
  EXPECT_EQ(run({"board", "lisst"}), 2);
  EXPECT_TRUE(said("Did you mean 'list'?"));
  EXPECT_EQ(run({"train", "--bord", "x"}), 2);
  EXPECT_TRUE(said("Did you mean '--board'?"));
  EXPECT_EQ(run({"board", "list"}, "nonsense"), 2);
  EXPECT_EQ(train({"--mu-weight", "1,2"}), 2);
  EXPECT_TRUE(said("one (constant) or three"));
  EXPECT_EQ(train({"--rounding", "up"}), 2);
}

TEST_F(AppTest, TrainSendsOnlyWhatWasGiven) {
  EXPECT_EQ(train({"--epochs", "5", "--mu-weight", "1,0,-1", "--mu-offset", "-3", "--rounding",
                   "psto", "--no-guard", "--dead-zone", "0", "--evaluate", "--detach"}),
            0)
      << err();
  const auto& spec = runs_.last.spec();
  EXPECT_EQ(spec.board_uid(), "uid-0001");
  EXPECT_EQ(spec.model_hash(), std::string(32, 'm'));
  EXPECT_TRUE(spec.evaluate());
  const auto& h = spec.hyper();
  EXPECT_EQ(h.epochs(), 5u);
  ASSERT_EQ(h.mu_weight_size(), 3);
  EXPECT_EQ(h.mu_weight(2), -1);
  EXPECT_EQ(h.mu_offset(), -3);
  EXPECT_EQ(h.rounding(), v1::ROUNDING_PSTO);
  EXPECT_TRUE(h.has_guard());
  EXPECT_FALSE(h.guard());
  EXPECT_TRUE(h.has_dead_zone());
  EXPECT_FALSE(h.has_k());
  EXPECT_FALSE(h.has_streamed());
  EXPECT_EQ(h.policy(), v1::POLICY_UNSPECIFIED);
  EXPECT_TRUE(said("run 72727272"));
}

TEST_F(AppTest, TrainFollowsOverALostConnectionAndShowsEachEpochOnce) {
  EXPECT_EQ(train({}), 0) << err();
  EXPECT_EQ(watch_.streams, 2);
  const std::string text = out();
  const auto first = text.find("epoch 1/2");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("epoch 1/2", first + 1), std::string::npos) << text;
  EXPECT_NE(text.find("epoch 2/2"), std::string::npos);
  EXPECT_NE(text.find("held-out 80.0 %"), std::string::npos);
  EXPECT_NE(text.find("SUCCEEDED"), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

TEST_F(AppTest, FailedRunIsExitSix) {
  watch_.end = v1::RUN_STATE_FAILED;
  EXPECT_EQ(train({}), 6);
  EXPECT_TRUE(said("run FAILED: diverged"));
  EXPECT_TRUE(said("remedy: train again"));
}

TEST_F(AppTest, InterruptDetachesAndSaysHowToWatchAgain) {
  watch_.hang = true;
  interrupt_ = true;
  EXPECT_EQ(train({}), 130);
  EXPECT_TRUE(said("detached"));
  EXPECT_TRUE(said("odtctl run watch 72727272"));
}

TEST_F(AppTest, UploadGoesInChunksAndContinues) {
  std::string content(1'300'000, 'w');
  content[5] = 'x';
  std::ofstream(folder_ + "/w.odtw", std::ios::binary) << content;
  uploads_.content = content.substr(0, 1000);  // of an earlier try
  EXPECT_EQ(run({"weights", "push", folder_ + "/w.odtw", "--alias", "best"}), 0) << err();
  EXPECT_EQ(uploads_.content, content);
  EXPECT_TRUE(said(sha256(content).hex()));
  EXPECT_EQ(run({"weights", "push", folder_ + "/none"}), 4);
}

TEST_F(AppTest, HelpVersionAndCompletion) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_TRUE(said("Exit codes"));
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_TRUE(said("0.1.0"));
  EXPECT_EQ(run({"completion", "bash"}), 0);
  EXPECT_TRUE(said("complete -F _odtctl odtctl"));
  EXPECT_TRUE(said("--mu-weight"));
}

TEST_F(AppTest, DoctorWorksWithoutDaemon) {
  EXPECT_EQ(run({"doctor"}, "unix:" + folder_ + "/none"), 1);
  EXPECT_TRUE(said("FAIL odtd"));
  EXPECT_TRUE(said("disk:"));
}

}  // namespace
}  // namespace odt::cli
