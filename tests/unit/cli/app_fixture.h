#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/ids.h"
#include "cli/app.h"
#include "cli/json.h"
#include "cli/text.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "odt/api/v1/services.grpc.pb.h"

// odtctl against a gRPC server that answers from a script.
namespace odt::cli {

namespace v1 = api::v1;
namespace fs = std::filesystem;

inline grpc::Status refused(const std::string& text, const std::string& remedy) {
  google::rpc::ErrorInfo info;
  info.set_reason("BUSY");
  info.set_domain("odt-fleet");
  (*info.mutable_metadata())["remedy"] = remedy;
  google::rpc::Status envelope;
  envelope.add_details()->PackFrom(info);
  return {grpc::StatusCode::FAILED_PRECONDITION, text, envelope.SerializeAsString()};
}

inline v1::Board board(const std::string& uid, const std::string& name) {
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
    model->set_trainable_layers(trainable_layers);
    for (const auto& [name, hash] : older) {
      auto* other = response->add_models();
      other->set_name(name);
      other->set_hash(hash);
    }
    return grpc::Status::OK;
  }
  grpc::Status DeleteModel(grpc::ServerContext*, const v1::DeleteModelRequest* request,
                           v1::DeleteModelResponse*) override {
    if (request->hash() == in_use) return refused("model is in use by run night", "delete the run");
    deleted.push_back(request->hash());
    return grpc::Status::OK;
  }
  std::vector<std::pair<std::string, std::string>> older;  // behind "fmnist"
  std::vector<std::string> deleted;
  std::string in_use;
  std::uint32_t trainable_layers = 0;
  grpc::Status AddModel(grpc::ServerContext*, const v1::AddModelRequest* request,
                        v1::AddModelResponse* response) override {
    // As odtd says it: the file is named after the model.
    auto* job = response->mutable_job();
    job->set_kind(v1::Job::KIND_COMPILE);
    job->set_state(v1::Job::STATE_FAILED);
    job->mutable_reason()->set_text(request->name() + ".onnx: not an ONNX file");
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
    for (const auto& [name, id] : older) {
      auto* other = response->add_datasets();
      other->set_name(name);
      other->set_id(id);
    }
    return grpc::Status::OK;
  }
  grpc::Status DeleteDataset(grpc::ServerContext*, const v1::DeleteDatasetRequest* request,
                             v1::DeleteDatasetResponse*) override {
    deleted.push_back(request->id());
    return grpc::Status::OK;
  }
  grpc::Status GetDataset(grpc::ServerContext*, const v1::GetDatasetRequest* request,
                          v1::GetDatasetResponse* response) override {
    response->mutable_dataset()->set_name("shifted");
    response->mutable_dataset()->set_id(request->id());
    return grpc::Status::OK;
  }
  std::vector<std::pair<std::string, std::string>> older;  // behind "shifted"
  std::vector<std::string> deleted;
  bool imports = false;  // else imports fail
  grpc::Status ImportDataset(grpc::ServerContext*, const v1::ImportDatasetRequest* request,
                             v1::ImportDatasetResponse* response) override {
    auto* job = response->mutable_job();
    job->set_kind(v1::Job::KIND_IMPORT);
    job->set_state(imports ? v1::Job::STATE_SUCCEEDED : v1::Job::STATE_FAILED);
    job->set_result_key(std::string(16, 'd'));
    const std::string called = hex(request->data_blob()).substr(0, 8);
    job->mutable_reason()->set_text("data (" + called + "): line 3, column 1: 'abc'");
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
  grpc::Status ListRuns(grpc::ServerContext*, const v1::ListRunsRequest*,
                        v1::ListRunsResponse* response) override {
    fill(*response->add_runs());
    return grpc::Status::OK;
  }
  grpc::Status PauseRun(grpc::ServerContext*, const v1::PauseRunRequest* request,
                        v1::PauseRunResponse* response) override {
    return ask("pause", *request, *response, v1::RUN_STATE_PAUSED);
  }
  grpc::Status ResumeRun(grpc::ServerContext*, const v1::ResumeRunRequest* request,
                         v1::ResumeRunResponse* response) override {
    return ask("resume", *request, *response, v1::RUN_STATE_RUNNING);
  }
  grpc::Status CancelRun(grpc::ServerContext*, const v1::CancelRunRequest* request,
                         v1::CancelRunResponse* response) override {
    return ask("cancel", *request, *response, v1::RUN_STATE_CANCELLED);
  }
  std::vector<std::string> asked;  // verb, id, and whether a request id came along
  v1::RunState state = v1::RUN_STATE_RUNNING;

 private:
  void fill(v1::Run& run) const {
    run.set_id(std::string(16, 'r'));
    run.mutable_spec()->set_name("night");
    run.set_state(state);
  }
  template <typename Request, typename Response>
  grpc::Status ask(const std::string& verb, const Request& request, Response& response,
                   v1::RunState next) {
    asked.push_back(verb + " " + request.id() + (request.request_id().empty() ? "" : " +"));
    if (state == v1::RUN_STATE_CANCELLED)
      return refused("run night has ended", "start another one: odtctl train");
    state = next;
    fill(*response.mutable_run());
    return grpc::Status::OK;
  }

 public:
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
    if (request->size() == 0) return {grpc::StatusCode::INVALID_ARGUMENT, "size: 0 bytes"};
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

class Jobs final : public v1::JobService::Service {
 public:
  grpc::Status TrainOnPc(grpc::ServerContext*, const v1::TrainOnPcRequest* request,
                         v1::TrainOnPcResponse* response) override {
    trained = *request;
    auto* job = response->mutable_job();
    job->set_kind(v1::Job::KIND_TRAIN_PC);
    job->set_state(v1::Job::STATE_SUCCEEDED);
    job->set_result_key(std::string(32, 'm'));
    job->set_result_json(R"({"correct":844,"total":1000,"model_hash":"6d","onnx_hash":"0f"})");
    return grpc::Status::OK;
  }
  v1::TrainOnPcRequest trained;
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
             &fleet_, &library_, &data_, &runs_, &watch_, &uploads_, &weights_, &jobs_})
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
  Jobs jobs_;
  std::unique_ptr<grpc::Server> server_;
  std::ostringstream out_, err_;
  bool interrupt_ = false;
};

}  // namespace odt::cli
