#include "worker/qat_train.h"

#define EIGEN_DONT_PARALLELIZE
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "data/sampling.h"
#include "worker/qat_net.h"

namespace odt::worker {
namespace {

constexpr std::uint32_t kBatch = 64, kCalibration = 2000, kMaxShift = 8;
constexpr std::uint64_t kCalibrationValues = std::uint64_t{1} << 25;
constexpr float kMomentum = 0.9f;
constexpr double kPi = 3.14159265358979323846;

// Sizes that Eigen cuts products by. Fixed: sums then have one order on every machine.
void fix_caches() { Eigen::setCpuCacheSizes(32 << 10, 1 << 20, 16 << 20); }

std::uint64_t values_of(const Arch& arch) {
  std::uint64_t n = compiler::count_of(arch.input);
  for (const auto& l : arch.layers) n += compiler::count_of(l.out_shape);
  return n;
}

QatNet::Options net_options(const QatOptions& o) {
  QatNet::Options out;
  out.per_channel = o.per_channel;
  out.fixed_output = o.task != compiler::Task::kClassify;
  out.output_exp = kQatInputExp;
  return out;
}

}  // namespace

Result<Augment> parse_augment(const std::string& text) {
  Augment a;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    part = absl::StripAsciiWhitespace(part);
    std::uint32_t n = 0;
    if (part == "flip") {
      a.flip = true;
    } else if (absl::StartsWith(part, "shift") && absl::SimpleAtoi(part.substr(5), &n) && n >= 1 &&
               n <= kMaxShift) {
      a.shift = n;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("augment '", compiler::shown(std::string(part)), "': expected shift1..shift",
                       kMaxShift, " or flip"));
    }
  }
  return a;
}

struct QatTrainer::Impl {
  Impl(const Arch& arch, const QatSamples& samples, const QatOptions& o)
      : train(samples), options(o), net(arch, o.seed, net_options(o)) {}

  const QatSamples train;
  const QatOptions options;
  QatNet net;
  QatMatrix x, wanted, delta;  // wanted: targets of a regression
  std::vector<std::uint8_t> labels;

  // Source position of every value of one sample in the order of the network.
  void load_row(const std::int8_t* v, Eigen::Index row, int dx, int dy, bool flip) {
    const compiler::Shape& shape = net.arch().input;
    const float unit = std::ldexp(1.0f, kQatInputExp);
    float* to = x.row(row).data();
    if (shape.size() == 1) {
      for (std::uint32_t i = 0; i < shape[0]; ++i) to[i] = static_cast<float>(v[i]) * unit;
      return;
    }
    const auto c = static_cast<int>(shape[0]), h = static_cast<int>(shape[1]),
               w = static_cast<int>(shape[2]);
    for (int y = 0; y < h; ++y)
      for (int i = 0; i < w; ++i) {
        const int sy = std::clamp(y + dy, 0, h - 1);
        const int moved = std::clamp(i + dx, 0, w - 1), sx = flip ? w - 1 - moved : moved;
        for (int n = 0; n < c; ++n)
          to[(y * w + i) * c + n] = static_cast<float>(v[(n * h + sy) * w + sx]) * unit;
      }
  }

  // int8 targets as the outputs have them.
  void load_targets(const QatSamples& from, const std::uint32_t* order, std::uint32_t first,
                    std::uint32_t n) {
    const std::uint64_t outputs = compiler::count_of(net.arch().layers.back().out_shape);
    const float unit = std::ldexp(1.0f, kQatInputExp);
    wanted.resize(n, static_cast<Eigen::Index>(outputs));
    for (std::uint32_t r = 0; r < n; ++r) {
      const std::int8_t* t =
          from.targets + (order != nullptr ? order[first + r] : first + r) * outputs;
      for (Eigen::Index c = 0; c < wanted.cols(); ++c)
        wanted(r, c) = static_cast<float>(t[c]) * unit;
    }
  }

  void load(const QatSamples& from, const std::uint32_t* order, std::uint32_t first,
            std::uint32_t n, data::Xorshift32* random) {
    x.resize(n, from.len);
    labels.resize(n);
    if (from.targets != nullptr) load_targets(from, order, first, n);
    const Augment& a = options.augment;
    for (std::uint32_t r = 0; r < n; ++r) {
      const std::size_t row = order != nullptr ? order[first + r] : first + r;
      int dx = 0, dy = 0;
      bool flip = false;
      if (random != nullptr) {
        const auto shift = static_cast<int>(a.shift);
        if (shift > 0) {
          dx = static_cast<int>(random->below(2 * a.shift + 1)) - shift;
          dy = static_cast<int>(random->below(2 * a.shift + 1)) - shift;
        }
        flip = a.flip && random->below(2) == 1;
      }
      load_row(from.values + row * from.len, r, dx, dy, flip);
      labels[r] = from.labels[row];
    }
  }

  float softmax_term(float z) const {
    return options.plain_recipe ? std::exp(z) : static_cast<float>(exp_portable(double{z}));
  }

  // delta = gradient of the mean loss; the summed loss.
  double loss_gradient(const QatMatrix& z) {
    delta = z;
    const auto n = static_cast<float>(z.rows());
    if (options.task != compiler::Task::kClassify) {
      delta -= options.task == compiler::Task::kRegress ? wanted : x;
      const double loss = delta.cast<double>().squaredNorm();
      // A sample pulls no harder than a wrong class would: many outputs far off would tear the
      // layers in front to pieces.
      for (Eigen::Index r = 0; r < z.rows(); ++r)
        delta.row(r) *= 1 / (n * std::max(delta.row(r).norm(), 1.0f));
      return loss / static_cast<double>(z.cols());
    }
    double loss = 0;
    for (Eigen::Index r = 0; r < z.rows(); ++r) {
      const float top = z.row(r).maxCoeff();
      float sum = 0;
      for (Eigen::Index c = 0; c < z.cols(); ++c) sum += delta(r, c) = softmax_term(z(r, c) - top);
      const Eigen::Index label = labels[static_cast<std::size_t>(r)];
      loss -= std::log(std::max(delta(r, label) / sum, 1e-30f));
      for (Eigen::Index c = 0; c < z.cols(); ++c)
        delta(r, c) = (delta(r, c) / sum - (c == label ? 1.0f : 0.0f)) / n;
    }
    return loss;
  }

  void start_grid() {
    const auto n = std::min<std::uint64_t>(
        {kCalibration, train.count, kCalibrationValues / values_of(net.arch()) + 1});
    load(train, nullptr, 0, static_cast<std::uint32_t>(n), nullptr);
    net.start_grid(x);
  }

  // Rate at step t of `all`.
  float rate(std::uint64_t t, std::uint64_t all, std::uint32_t warm) const {
    const double at = static_cast<double>(t) / static_cast<double>(all);
    const float r = options.rate * static_cast<float>(0.5 * (1 + std::cos(kPi * at)));
    return t < warm ? r * static_cast<float>(t + 1) / static_cast<float>(warm) : r;
  }

  double epoch(std::uint32_t e, std::uint32_t steps) {
    double loss = 0;
    const auto order = data::shuffled(train.count, options.seed + 1000003u * (e + 1));
    data::Xorshift32 random(options.seed * 747796405u + e * 2891336453u + 1);
    const std::uint32_t warm = options.plain_recipe ? 0 : std::min<std::uint32_t>(200, steps);
    for (std::uint32_t s = 0; s < steps; ++s) {
      const std::uint32_t first = s * kBatch;
      load(train, order.data(), first, std::min(kBatch, train.count - first),
           options.augment.any() ? &random : nullptr);
      loss += loss_gradient(net.forward(x, true));
      net.backward(x, delta);
      net.update(rate(std::uint64_t{e} * steps + s, std::uint64_t{options.epochs} * steps, warm),
                 kMomentum, options.decay);
    }
    return loss / train.count;
  }

  std::uint32_t correct(const QatSamples& samples) {
    std::uint32_t right = 0;
    for (std::uint32_t s = 0; s < samples.count; s += kBatch) {
      const std::uint32_t n = std::min(kBatch, samples.count - s);
      load(samples, nullptr, s, n, nullptr);
      const QatMatrix& z = net.forward(x, false);
      for (std::uint32_t r = 0; r < n; ++r) {
        Eigen::Index top = 0;
        z.row(r).maxCoeff(&top);
        if (top == labels[r]) ++right;
      }
    }
    return right;
  }
};

QatTrainer::QatTrainer(const Arch& arch, const QatSamples& train, const QatOptions& options)
    : impl_(std::make_unique<Impl>(arch, train, options)) {
  fix_caches();
}
QatTrainer::~QatTrainer() = default;

Status QatTrainer::run(const QatSamples& validation,
                       const std::function<void(const QatEpoch&)>& on_epoch) {
  Impl& s = *impl_;
  const std::uint32_t steps = (s.train.count + kBatch - 1) / kBatch;
  for (std::uint32_t e = 0; e < s.options.epochs; ++e) {
    if (e == s.options.epochs / 2 && !s.options.float_only) s.start_grid();
    QatEpoch report;
    report.epoch = e;
    report.loss = s.epoch(e, steps);
    if (!std::isfinite(report.loss))
      return absl::AbortedError(absl::StrCat("epoch ", e + 1,
                                             ": the loss is no number any more; "
                                             "use a smaller rate than ",
                                             s.options.rate, ", or bn behind the layers"));
    report.total = validation.count;
    if (validation.count > 0) report.correct = s.correct(validation);
    on_epoch(report);
  }
  if (!s.net.on_grid() && !s.options.float_only) s.start_grid();
  return absl::OkStatus();
}

std::uint32_t QatTrainer::correct(const QatSamples& samples) { return impl_->correct(samples); }

QatResult QatTrainer::exported() {
  QatResult result;
  result.layers = impl_->net.exported();
  result.input_exponent = kQatInputExp;
  if (impl_->options.task == compiler::Task::kClassify) {
    const double scale = std::ldexp(1.4426950408889634 * 256, impl_->net.nodes().back().out_exp);
    result.ce_scale = static_cast<std::uint16_t>(std::clamp(std::nearbyint(scale), 1.0, 65535.0));
  }
  return result;
}

}  // namespace odt::worker
