#pragma once

#include <condition_variable>
#include <cstring>
#include <future>
#include <mutex>
#include <thread>

#include "fake_board.h"
#include "store/memory_store.h"
#include "training/orchestrator.h"

// The run layer with stores in memory, samples from a string and boards that a test scripts.
namespace odt::test {

using namespace std::chrono_literals;

class FakeJobs : public jobs::JobControl {
 public:
  Result<model::DerivedSamples> samples = absl::NotFoundError("no samples");
  void derive(CallContext, Uuid, Hash, Done<model::DerivedSamples> done) override { done(samples); }
  void freeze(CallContext, Uuid, Hash, Done<model::DerivedSamples> done) override { done(samples); }
  void add_model(CallContext, Hash, std::string, std::uint32_t, jobs::CompileChoice,
                 Done<model::Job> done) override {
    done(absl::UnimplementedError(""));
  }
  void import_dataset(CallContext, jobs::ImportOptions, jobs::ImportBlobs,
                      Done<model::Job> done) override {
    done(absl::UnimplementedError(""));
  }
  void train_on_pc(CallContext, jobs::TrainOnPcOptions, Done<model::Job> done) override {
    done(absl::UnimplementedError(""));
  }
  void replay(CallContext, Uuid, Done<model::Job> done) override {
    done(absl::UnimplementedError(""));
  }
  void export_onnx(CallContext, Hash, bool, Done<model::Job> done) override {
    done(absl::UnimplementedError("not here"));
  }
  void cancel(CallContext, Uuid, Done<model::Job> done) override {
    done(absl::UnimplementedError(""));
  }
};

inline std::string make_samples(std::uint32_t count, std::uint32_t len, std::uint32_t seed) {
  std::string out(data::samples_bytes(count, len), '\0');
  out.replace(0, 4, "ODTS");
  out[4] = 1;
  out[6] = 2;
  std::memcpy(out.data() + 8, &count, 4);
  std::memcpy(out.data() + 12, &len, 4);
  for (std::uint32_t i = 0; i < count; ++i) out[16 + i] = static_cast<char>(i % 2);
  for (std::size_t i = 16 + (count + 3) / 4 * 4; i < out.size(); ++i)
    out[i] = static_cast<char>(seed = seed * 1664525 + 1013904223);
  return out;
}

// What outlives a restart of the daemon: stores and the models in them.
struct Library {
  SystemClock clock;
  store::MemoryBlobStore blobs;
  store::ControlThread control{std::make_unique<store::MemoryControlStore>(clock)};
  store::TelemetryThread telemetry{std::make_unique<store::MemoryTelemetryStore>()};
  FakeJobs jobs;
  model::Model net;
  model::Dataset digits;

  Library() {
    const std::string image(400, 'i');
    net.hash = *blobs.put(image);
    net.name = "net";
    net.image_bytes = image.size();
    net.n_classes = 2;
    net.input_shape = {4};
    net.source_accuracy = {90, 100};
    net.has_ce_scale = true;
    net.ram_k8_bytes = 500;
    net.ram_k16_bytes = 800;
    digits.id = new_uuid();
    digits.name = "digits";
    digits.shape = {2, 2};
    digits.n_classes = 2;
    digits.train = 43;
    digits.heldout = 60;
    digits.test = 70;
    const std::string train = make_samples(43, 4, 1), heldout = make_samples(60, 4, 2),
                      test = make_samples(70, 4, 3);
    model::DerivedSamples derived;
    derived.model_hash = net.hash;
    derived.train = *blobs.put(train);
    derived.heldout = *blobs.put(heldout);
    derived.test = *blobs.put(test);
    derived.sample_set_hash = sha256(derived.train.str() + derived.heldout.str());
    jobs.samples = derived;
    store::Batch batch;
    batch.changes.push_back(store::PutModel{net});
    batch.changes.push_back(store::PutDataset{digits});
    commit(std::move(batch));
  }
  void commit(store::Batch batch) {
    auto done =
        control.call_sync([&batch](store::ControlStore& s) { return s.commit(std::move(batch)); });
    if (!done.ok()) throw std::runtime_error(done.status().ToString());
  }
  model::Run run(const Uuid& id) {
    return *control.call_sync([id](store::ControlStore& s) { return s.run(id); });
  }
  std::vector<model::RunEvent> events(const Uuid& id) {
    return *control.call_sync([id](store::ControlStore& s) { return s.run_events(id); });
  }
  std::vector<model::EpochResult> epochs(const Uuid& id) {
    return *control.call_sync([id](store::ControlStore& s) { return s.epochs(id); });
  }
};

// One life of the daemon.
class Rig {
 public:
  explicit Rig(Library& library, std::function<void(training::OrchestratorOptions&)> adjust = {})
      : library_(library), links_(io_) {
    training::OrchestratorOptions options;
    options.resume_deadline = 60s;
    if (std::getenv("ODT_TEST_LOG") != nullptr)
      options.log = [](int level, const std::string& text) {
        std::fprintf(stderr, "[%d] %s\n", level, text.c_str());
      };
    options.fleet.scan_ports = [this] {
      std::lock_guard lock(ports_mutex_);
      return serial_ports;
    };
    options.fleet.view_interval = 5ms;
    options.fleet.rescan_interval = 20ms;
    options.fleet.probe_time = 100ms;
    for (int i = 1; i <= 4; ++i)
      options.fleet.tcp_dial.push_back({"fake:" + std::to_string(i), {}});
    options.fleet.make_runner = [this](std::string endpoint, session::LinkOptions link,
                                       session::LinkHost& host) {
      return links_.make_runner(std::move(endpoint), std::move(link), host);
    };
    if (adjust) adjust(options);
    fleet_ = std::make_unique<training::Orchestrator>(io_, library.clock, library.control,
                                                      library.telemetry, library.blobs,
                                                      library.jobs, std::move(options));
    start();
  }
  ~Rig() { stop(); }
  // Leaves the boards as they are, as the end of the daemon does.
  void stop() {
    if (!thread_.joinable()) return;
    std::promise<void> stopped;
    fleet_->stop([&stopped] { stopped.set_value(); });
    stopped.get_future().wait_for(5s);
    work_.reset();
    crash();
  }
  // kill -9: nothing is said to anybody.
  void crash() {
    io_.stop();
    thread_.join();
    // Answers on their way to this context must arrive before it is gone.
    library_.control.call_sync([](store::ControlStore&) { return true; });
    library_.telemetry.call_sync([](store::TelemetryStore&) { return true; });
  }

  training::Orchestrator& fleet() { return *fleet_; }
  asio::io_context& io() { return io_; }

  // Runs fn on the links thread and waits.
  template <typename F>
  auto on_links(F fn) {
    std::packaged_task<std::invoke_result_t<F>()> task(std::move(fn));
    auto future = task.get_future();
    asio::post(io_, [&task] { task(); });
    return future.get();
  }
  std::shared_ptr<FakeBoard> make_board(std::uint8_t number) {
    return std::make_shared<FakeBoard>(io_, number);
  }
  bool connect(int endpoint, std::shared_ptr<FakeBoard> board) {
    return on_links([this, endpoint, board] {
      return links_.connect("tcp:fake:" + std::to_string(endpoint), board);
    });
  }
  void drop(std::shared_ptr<FakeBoard> board) {
    on_links([board] { board->drop(); });
  }
  bool opened(const std::string& endpoint) {
    return on_links([this, endpoint] { return links_.running(endpoint); });
  }
  bool connect_to(const std::string& endpoint, std::shared_ptr<FakeBoard> board) {
    return on_links([this, endpoint, board] { return links_.connect(endpoint, board); });
  }

  // Asks and waits for the answer.
  template <typename T>
  Result<T> ask(std::function<void(Done<T>)> question) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    auto future = promise->get_future();
    question([promise](Result<T> answer) { promise->set_value(std::move(answer)); });
    if (future.wait_for(10s) != std::future_status::ready)
      return absl::DeadlineExceededError("no answer in 10 s");
    return future.get();
  }
  CallContext ctx(std::string request_id = {}) {
    CallContext c;
    c.actor = "tester";
    c.command_id = new_uuid();
    c.request_id = std::move(request_id);
    return c;
  }
  Result<model::Run> create(model::RunSpec spec, bool dry_run = false,
                            std::string request_id = {}) {
    return ask<model::Run>([&](Done<model::Run> done) {
      fleet_->create_run(ctx(std::move(request_id)), spec, dry_run, std::move(done));
    });
  }
  Result<model::Run> desire(const Uuid& run, model::Desired desired) {
    return ask<model::Run>(
        [&](Done<model::Run> done) { fleet_->set_desired(ctx(), run, desired, std::move(done)); });
  }
  model::RunSpec spec(const std::shared_ptr<FakeBoard>& board) {
    model::RunSpec s;
    s.board_uid = board->uid;
    s.model_hash = library_.net.hash;
    s.dataset_id = library_.digits.id;
    s.hyper.epochs = 3;
    return s;
  }

  bool wait_until(std::function<bool()> condition, std::chrono::milliseconds limit = 10s) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < deadline) {
      if (condition()) return true;
      std::this_thread::sleep_for(1ms);
    }
    return condition();
  }
  bool wait_state(const Uuid& run, model::RunState state, std::chrono::milliseconds limit = 10s) {
    return wait_until([&] { return library_.run(run).state == state; }, limit);
  }
  // The board is in the view and online.
  bool wait_online(const std::shared_ptr<FakeBoard>& board) {
    return wait_until([&] {
      const auto view = fleet_->view();
      for (const auto& b : view->boards)
        if (b.uid == board->uid)
          return b.status == model::BoardStatus::kOnline && b.boot_id == board->boot_id;
      return false;
    });
  }

  std::vector<model::Port> serial_ports;
  std::mutex ports_mutex_;

 private:
  void start() {
    const Status started = fleet_->start();
    if (!started.ok()) throw std::runtime_error(started.ToString());
    thread_ = std::thread([this] { io_.run(); });
    on_links([] {});
  }

  Library& library_;
  asio::io_context io_;
  FakeLinks links_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  std::unique_ptr<training::Orchestrator> fleet_;
  std::thread thread_;
};

}  // namespace odt::test
