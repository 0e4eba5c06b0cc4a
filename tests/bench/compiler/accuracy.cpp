// What the PC's trainer reaches on Fashion-MNIST, measured with firmware/odt (README.md of
// tests/bench).
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "data/import.h"
#include "worker/train_pc.h"

namespace {

using odt::worker::TrainPcOptions;

constexpr const char* kUsage =
    "usage: bench_accuracy [--fashion DIR] [--only cnn|mlp] [--quick] [--seed N] [--json FILE]\n";

struct Options {
  std::string folder = "/usr/share/datasets/fashion-mnist", only, json;
  std::uint32_t seed = 1;
  bool quick = false;  // 6,000 images and 2 epochs: does it run?
};

odt::data::Dataset load(const Options& o) {
  odt::data::ImportRequest r;
  r.format = "idx";
  r.data_path = o.folder + "/train-images-idx3-ubyte.gz";
  r.labels_path = o.folder + "/train-labels-idx1-ubyte.gz";
  r.test_data_path = o.folder + "/t10k-images-idx3-ubyte.gz";
  r.test_labels_path = o.folder + "/t10k-labels-idx1-ubyte.gz";
  r.train = o.quick ? 6000 : 60000;
  r.test = 10000;
  r.seed = 1;
  auto d = odt::data::import_dataset(r, [](std::uint32_t, const std::string&) {});
  if (!d.ok()) throw std::runtime_error(std::string(d.status().message()));
  return *std::move(d);
}

double percent(const odt::data::Dataset& d, const TrainPcOptions& o, std::size_t* weights) {
  const auto net = odt::worker::train_pc(d, o, [](std::uint32_t, const std::string& message) {
    std::fprintf(stderr, "\r\x1b[K%s", message.c_str());
  });
  std::fprintf(stderr, "\r\x1b[K");
  if (!net.ok()) throw std::runtime_error(std::string(net.status().message()));
  if (weights != nullptr) *weights = 0;
  for (const auto& l : net->layers)
    if (weights != nullptr) *weights += l.weights.size();
  return 100.0 * net->calibration.src_correct / net->calibration.src_total;
}

class Report {
 public:
  void add(const std::string& name, double value, const char* unit) {
    std::printf("%s %.2f %s\n", name.c_str(), value, unit);
    std::fflush(stdout);
    json_[name] = value;
  }
  void write(const std::string& path) const {
    std::ofstream out(path);
    out << json_.dump(1) << "\n";
    out.close();
    if (!out) throw std::runtime_error(path + ": cannot write");
  }

 private:
  nlohmann::ordered_json json_;
};

void cnn(const odt::data::Dataset& d, const Options& o, Report& report) {
  TrainPcOptions t;
  t.arch = "conv16x5x5s2p2,bn,relu,conv32x3x3s2p1,bn,relu,dense32,relu,dense";
  t.augment = "shift1,flip";
  t.decay = 5e-4f;
  t.epochs = o.quick ? 2 : 12;
  t.seed = o.seed;
  std::size_t weights = 0;
  report.add("fmnist_cnn_int8_pct", percent(d, t, &weights), "%");
  report.add("fmnist_cnn_weights", static_cast<double>(weights), "weights");
}

void mlp(const odt::data::Dataset& d, const Options& o, Report& report) {
  TrainPcOptions t;
  t.arch = "dense64,relu,dense";
  t.epochs = o.quick ? 2 : 12;
  t.seed = o.seed;
  const double int8 = percent(d, t, nullptr);
  t.float_only = true;
  const double fp32 = percent(d, t, nullptr);
  report.add("fmnist_mlp_int8_pct", int8, "%");
  report.add("fmnist_mlp_fp32_pct", fp32, "%");
  report.add("fmnist_mlp_int8_minus_fp32_pt", int8 - fp32, "points");
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto next = [&]() -> std::string {
      if (i + 1 >= argc) throw std::runtime_error(arg + " needs a value\n" + kUsage);
      return argv[++i];
    };
    if (arg == "--quick")
      o.quick = true;
    else if (arg == "--fashion")
      o.folder = next();
    else if (arg == "--only")
      o.only = next();
    else if (arg == "--json")
      o.json = next();
    else if (arg == "--seed")
      o.seed = static_cast<std::uint32_t>(std::strtoul(next().c_str(), nullptr, 10));
    else
      throw std::runtime_error("unknown argument " + arg + "\n" + kUsage);
  }
  if (!o.only.empty() && o.only != "cnn" && o.only != "mlp")
    throw std::runtime_error("--only '" + o.only + "': no such task\n" + kUsage);
  return o;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  const odt::data::Dataset d = load(options);
  Report report;
  if (options.only != "mlp") cnn(d, options, report);
  if (options.only != "cnn") mlp(d, options, report);
  if (!options.json.empty()) report.write(options.json);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "bench_accuracy: %s\n", e.what());
  return 1;
}
