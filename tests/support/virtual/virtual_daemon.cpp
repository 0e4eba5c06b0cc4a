#include "support/virtual/virtual_daemon.h"

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "data/batcher.h"

namespace odt::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kTrain = 96, kHeldout = 32, kTest = 32;

std::string new_folder() {
  // Kept in memory where that is possible: thousands of lives of a daemon are begun and ended.
  std::string path =
      (fs::exists("/dev/shm") ? "/dev/shm" : "/tmp") + std::string("/odt-life-XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("no folder " + path);
  return path;
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  if (content.str().empty()) throw std::runtime_error(path + " is missing");
  return content.str();
}

void require(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

}  // namespace

VirtualData::VirtualData(const std::string& golden_dir) : path_(new_folder()) {
  SystemClock clock;
  auto stores = store::open_stores(path_, clock);
  require(stores.status());
  const std::string image = content_of(golden_dir + "/image.odtm");
  model::Model net;
  net.hash = model_hash = *stores->blobs->put(image);
  net.name = "dense-196-32-10";
  net.image_bytes = image.size();
  net.n_classes = 10;
  net.input_shape = {196};
  net.has_ce_scale = true;
  net.source_accuracy = {851, 1000};
  net.trainable_layers = 2;
  const auto all = data::SampleSet::parse(
      std::make_shared<const std::string>(content_of(golden_dir + "/samples.odts")));
  require(all.status());
  model::Dataset set;
  set.id = dataset = new_uuid();
  set.name = "golden";
  set.shape = {14, 14};
  set.n_classes = 10;
  set.train = kTrain;
  set.heldout = kHeldout;
  set.test = kTest;
  samples.model_hash = net.hash;
  samples.train = *stores->blobs->put(all->slice(0, kTrain));
  samples.heldout = *stores->blobs->put(all->slice(kTrain, kHeldout));
  samples.test = *stores->blobs->put(all->slice(kTrain + kHeldout, kTest));
  samples.sample_set_hash = sha256(samples.train.str() + samples.heldout.str());
  store::Batch batch;
  batch.changes.push_back(store::PutModel{net});
  batch.changes.push_back(store::PutDataset{set});
  require(stores->control->commit(std::move(batch)).status());
}

VirtualData::VirtualData(const VirtualData& other)
    : model_hash(other.model_hash),
      dataset(other.dataset),
      samples(other.samples),
      path_(new_folder()) {
  fs::copy(other.path_, path_, fs::copy_options::recursive);
}

VirtualData::~VirtualData() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

// What odt-worker would do; the samples are there already.
class VirtualDaemon::Jobs final : public jobs::JobControl {
 public:
  explicit Jobs(model::DerivedSamples samples) : samples_(std::move(samples)) {}
  void derive(CallContext, Uuid, Hash, Done<model::DerivedSamples> done) override {
    done(samples_);
  }
  void add_model(CallContext, Hash, std::string, std::uint32_t, jobs::CompileChoice,
                 Done<model::Job> done) override {
    done(refused());
  }
  void import_dataset(CallContext, jobs::ImportOptions, jobs::ImportBlobs,
                      Done<model::Job> done) override {
    done(refused());
  }
  void train_on_pc(CallContext, jobs::TrainOnPcOptions, Done<model::Job> done) override {
    done(refused());
  }
  void replay(CallContext, Uuid, Done<model::Job> done) override { done(refused()); }
  void export_onnx(CallContext, Hash, bool, Done<model::Job> done) override { done(refused()); }
  void freeze(CallContext, Uuid, Hash, Done<model::DerivedSamples> done) override {
    done(refused());
  }
  void cancel(CallContext, Uuid, Done<model::Job> done) override { done(refused()); }

 private:
  static Status refused() { return absl::UnimplementedError("no worker here"); }
  model::DerivedSamples samples_;
};

VirtualDaemon::VirtualDaemon(VirtualTime& time, VirtualWorld& world, const VirtualData& data)
    : time_(time), world_(world), jobs_(std::make_unique<Jobs>(data.samples)) {
  auto stores = store::open_stores(data.path(), time_);
  require(stores.status());
  stores_ = std::move(*stores);
  control_ = std::make_unique<store::ControlThread>(std::move(stores_.control));
  telemetry_ = std::make_unique<store::TelemetryThread>(std::move(stores_.telemetry));
  time_.settle = [this] {
    control_->call_sync([](store::ControlStore&) { return true; });
    telemetry_->call_sync([](store::TelemetryStore&) { return true; });
  };
  world_.attach(&io_);
  training::OrchestratorOptions options;
  options.fleet.scan_ports = [] { return std::vector<model::Port>{}; };
  options.fleet.link.open = [&world](const std::string& endpoint) { return world.open(endpoint); };
  for (std::size_t i = 0; i < world.boards(); ++i)
    options.fleet.tcp_dial.push_back(
        {.address = world.address(i), .expect_uid = {}, .serial_line = true});
  if (std::getenv("ODT_TEST_LOG") != nullptr)
    options.log = [&time](int level, const std::string& text) {
      std::fprintf(stderr, "%10.3f [%d] %s\n", static_cast<double>(time.elapsed_us()) / 1e6, level,
                   text.c_str());
    };
  fleet_ = std::make_unique<training::Orchestrator>(io_, time_, *control_, *telemetry_,
                                                    *stores_.blobs, *jobs_, std::move(options));
  require(fleet_->start());
}

VirtualDaemon::~VirtualDaemon() {
  world_.attach(nullptr);
  time_.settle();  // what the store threads have begun they end
  time_.settle = {};
}

bool VirtualDaemon::run(const std::function<bool()>& done, std::int64_t until) {
  while (!done()) {
    if (time_.elapsed_us() >= until) return false;
    io_.run_one();
  }
  return true;
}

bool VirtualDaemon::online(const BoardUid& uid) const {
  for (const auto& board : fleet_->view()->boards)
    if (board.uid == uid) return board.status == model::BoardStatus::kOnline;
  return false;
}

}  // namespace odt::test
