#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "rig.h"
#include "store/open.h"
#include "support/sim_board.h"

// The run layer with its real neighbours: SQLite, TCP links and odt-sim-board processes. Samples
// are those of the golden run.
namespace odt::test {

inline std::string golden(const std::string& name) {
  std::ifstream in(std::string(ODT_GOLDEN_DIR) + "/" + name, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  if (content.str().empty()) throw std::runtime_error("golden/" + name + " is missing");
  return content.str();
}

// A data directory with the model and two datasets: all 600 samples for training, or 400 / 100 /
// 100.
class DataDir {
 public:
  DataDir() {
    char path[] = "/tmp/odt-training-XXXXXX";
    path_ = mkdtemp(path);
    SystemClock clock;
    auto stores = store::open_stores(path_, clock);
    if (!stores.ok()) throw std::runtime_error(stores.status().ToString());
    const std::string image = golden("image.odtm");
    net.hash = *stores->blobs->put(image);
    net.name = "dense-196-32-10";
    net.image_bytes = image.size();
    net.n_classes = 10;
    net.input_shape = {196};
    net.has_ce_scale = true;
    net.source_accuracy = {851, 1000};
    net.trainable_layers = 2;
    auto all = data::SampleSet::parse(std::make_shared<const std::string>(golden("samples.odts")));
    whole = add(*stores, "whole", *all, 600, 0, 0);
    split = add(*stores, "split", *all, 400, 100, 100);
    store::Batch batch;
    batch.changes.push_back(store::PutModel{net});
    batch.changes.push_back(store::PutDataset{whole});
    batch.changes.push_back(store::PutDataset{split});
    auto done = stores->control->commit(std::move(batch));
    if (!done.ok()) throw std::runtime_error(done.status().ToString());
  }
  ~DataDir() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

  model::Model net;
  model::Dataset whole, split;
  std::map<Uuid, model::DerivedSamples> derived;

 private:
  model::Dataset add(store::OpenedStores& stores, const char* name, const data::SampleSet& all,
                     std::uint32_t train, std::uint32_t heldout, std::uint32_t test) {
    model::Dataset d;
    d.id = new_uuid();
    d.name = name;
    d.shape = {14, 14};
    d.n_classes = 10;
    d.train = train;
    d.heldout = heldout;
    d.test = test;
    model::DerivedSamples samples;
    samples.model_hash = net.hash;
    samples.train = *stores.blobs->put(all.slice(0, train));
    if (heldout != 0) samples.heldout = *stores.blobs->put(all.slice(train, heldout));
    if (test != 0) samples.test = *stores.blobs->put(all.slice(train + heldout, test));
    samples.sample_set_hash = sha256(samples.train.str() + samples.heldout.str());
    derived[d.id] = samples;
    return d;
  }
  std::string path_;
};

class DirJobs final : public FakeJobs {
 public:
  explicit DirJobs(const DataDir& dir) : dir_(dir) {}
  void derive(CallContext, Uuid dataset, Hash, Done<model::DerivedSamples> done) override {
    done(dir_.derived.at(dataset));
  }

 private:
  const DataDir& dir_;
};

class SimBoard {
 public:
  SimBoard(std::uint8_t number, std::uint16_t daemon_port, std::vector<std::string> options = {})
      : options_(std::move(options)) {
    uid.bytes = {0, 0, 0, 0, 0, 0, 0x51, number};
    options_.insert(options_.begin(),
                    {sim_board_binary(), "--connect", "127.0.0.1:" + std::to_string(daemon_port),
                     "--uid", uid.hex()});
    start();
  }
  void start() { process_ = ChildProcess(options_); }
  void kill() { process_.end(); }
  void signal(int number) { process_.kill(number); }
  BoardUid uid;

 private:
  std::vector<std::string> options_;
  ChildProcess process_;
};

// One life of the daemon over a data directory.
class SimRig {
 public:
  SimRig(const DataDir& dir, std::uint16_t port) : jobs_(dir) {
    auto stores = store::open_stores(dir.path(), clock_);
    if (!stores.ok()) throw std::runtime_error(stores.status().ToString());
    stores_ = std::move(*stores);
    control_ = std::make_unique<store::ControlThread>(std::move(stores_.control));
    telemetry_ = std::make_unique<store::TelemetryThread>(std::move(stores_.telemetry));
    training::OrchestratorOptions options;
    options.fleet.tcp_listen = {"127.0.0.1:" + std::to_string(port)};
    options.fleet.scan_ports = [] { return std::vector<model::Port>{}; };
    if (std::getenv("ODT_TEST_LOG") != nullptr)
      options.log = [](int level, const std::string& text) {
        std::fprintf(stderr, "[%d] %s\n", level, text.c_str());
      };
    fleet_ = std::make_unique<training::Orchestrator>(io_, clock_, *control_, *telemetry_,
                                                      *stores_.blobs, jobs_, std::move(options));
    const Status started = fleet_->start();
    if (!started.ok()) throw std::runtime_error(started.ToString());
    thread_ = std::thread([this] { io_.run(); });
  }
  ~SimRig() {
    if (!thread_.joinable()) return;
    std::promise<void> stopped;
    fleet_->stop([&stopped] { stopped.set_value(); });
    stopped.get_future().wait_for(5s);
    crash();
  }
  // Nothing is said to anybody, and what was not committed is lost.
  void crash() {
    io_.stop();
    thread_.join();
    control_->call_sync([](store::ControlStore&) { return true; });
    telemetry_->call_sync([](store::TelemetryStore&) { return true; });
  }

  training::Orchestrator& fleet() { return *fleet_; }
  template <typename T>
  Result<T> ask(std::function<void(Done<T>)> question) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    auto future = promise->get_future();
    question([promise](Result<T> answer) { promise->set_value(std::move(answer)); });
    if (future.wait_for(20s) != std::future_status::ready)
      return absl::DeadlineExceededError("no answer in 20 s");
    return future.get();
  }
  CallContext ctx() {
    CallContext c;
    c.actor = "tester";
    c.command_id = new_uuid();
    return c;
  }
  Result<model::Run> create(const model::RunSpec& spec) {
    return ask<model::Run>(
        [&](Done<model::Run> done) { fleet_->create_run(ctx(), spec, false, std::move(done)); });
  }
  Result<model::Run> desire(const Uuid& run, model::Desired desired) {
    return ask<model::Run>(
        [&](Done<model::Run> done) { fleet_->set_desired(ctx(), run, desired, std::move(done)); });
  }
  bool wait_until(std::function<bool()> condition, std::chrono::seconds limit = 60s) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < deadline) {
      if (condition()) return true;
      std::this_thread::sleep_for(3ms);
    }
    return condition();
  }
  bool wait_online(const BoardUid& uid) {
    return wait_until([&] {
      for (const auto& b : fleet_->view()->boards)
        if (b.uid == uid) return b.status == model::BoardStatus::kOnline;
      return false;
    });
  }
  model::Run run(const Uuid& id) {
    return *control_->call_sync([id](store::ControlStore& s) { return s.run(id); });
  }
  std::vector<model::EpochResult> epochs(const Uuid& id) {
    return *control_->call_sync([id](store::ControlStore& s) { return s.epochs(id); });
  }
  // RUNNING has followed the last WAITING_BOARD.
  bool running_again(const Uuid& id) {
    auto events = control_->call_sync([id](store::ControlStore& s) { return s.run_events(id); });
    bool waiting = false, running = false;
    for (const auto& event : *events) {
      if (event.to == model::RunState::kWaitingBoard) waiting = true, running = false;
      if (event.to == model::RunState::kRunning) running = waiting;
    }
    return running;
  }
  std::uint32_t frames(const Uuid& id) {
    store::TelemetryStore::Range range;
    range.run = id;
    return telemetry_->call_sync([range](store::TelemetryStore& s) { return s.read(range); })
        ->total;
  }
  bool wait_state(const Uuid& id, model::RunState state, std::chrono::seconds limit = 60s) {
    return wait_until([&] { return run(id).state == state || model::is_final(run(id).state); },
                      limit) &&
           run(id).state == state;
  }
  store::ControlThread& control() { return *control_; }
  std::string blob(const Hash& hash) {
    const auto get = [this, hash](store::ControlStore&) { return stores_.blobs->get(hash); };
    return control_->call_sync(get).value_or("");
  }

 private:
  SystemClock clock_;
  DirJobs jobs_;
  store::OpenedStores stores_;
  std::unique_ptr<store::ControlThread> control_;
  std::unique_ptr<store::TelemetryThread> telemetry_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  std::unique_ptr<training::Orchestrator> fleet_;
  std::thread thread_;
};

}  // namespace odt::test
