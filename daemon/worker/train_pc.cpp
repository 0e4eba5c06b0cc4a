#include "worker/train_pc.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>

#include "compiler/image_writer.h"
#include "data/derive.h"
#include "worker/dense_qat.h"
#include "worker/host_model.h"

namespace odt::worker {
namespace {

constexpr std::uint32_t kDefaultEpochs = 12, kMaxEpochs = 1000, kMaxUnits = 4096, kMaxHidden = 15;

data::InputStage stage_of(const compiler::Network& net) {
  data::InputStage in;
  in.shape = net.input_shape;
  in.dtype = data::Dtype::kS8;
  in.offset = net.prequant->offset;
  in.mult = net.prequant->mult;
  in.k = net.prequant->k;
  in.clip_lo = net.prequant->clip_lo;
  in.clip_hi = net.prequant->clip_hi;
  return in;
}

Status check(const data::Dataset& d, const TrainPcOptions& o) {
  if (d.count(data::Split::kTrain) < 2)
    return absl::InvalidArgumentError("the dataset has fewer than 2 training samples");
  if (o.epochs > kMaxEpochs)
    return absl::InvalidArgumentError(
        absl::StrCat("epochs ", o.epochs, "; expected 1..", kMaxEpochs));
  if (o.hidden.size() > kMaxHidden)
    return absl::InvalidArgumentError(
        absl::StrCat(o.hidden.size(), " hidden layers; at most ", kMaxHidden));
  for (auto h : o.hidden)
    if (h < 1 || h > kMaxUnits)
      return absl::InvalidArgumentError(
          absl::StrCat("hidden layer of ", h, " units; expected 1..", kMaxUnits));
  return absl::OkStatus();
}

std::int8_t mean_logit(std::int64_t sum, std::int64_t n, std::int8_t absent) {
  if (n == 0) return absent;
  const double mean = static_cast<double>(sum) / static_cast<double>(n);
  return static_cast<std::int8_t>(std::clamp(std::floor(mean + 0.5), -128.0, 127.0));
}

// Targets from the training samples, then the accuracy, both by firmware/odt.
Status calibrate(const std::vector<std::uint8_t>& train, const std::uint8_t* labels,
                 const std::vector<std::uint8_t>& test, const std::uint8_t* test_labels,
                 compiler::Network& net) {
  const std::size_t n_classes = net.n_classes(), len = net.layers[0].in_shape[0];
  std::string image;
  ODT_ASSIGN(image, compiler::write_image(net));
  std::unique_ptr<HostTrainer> host;
  ODT_ASSIGN(host, HostTrainer::create(image, HostTrainer::inference_spec()));
  std::vector<std::int64_t> own(n_classes, 0), other(n_classes, 0), n_own(n_classes, 0);
  std::vector<std::int8_t> logits(n_classes);
  const std::size_t n = std::min<std::size_t>(train.size() / len, 20000);
  for (std::size_t s = 0; s < n; ++s) {
    odt_trainer_infer(host->get(), train.data() + s * len, logits.data());
    ++n_own[labels[s]];
    for (std::size_t c = 0; c < n_classes; ++c) (c == labels[s] ? own : other)[c] += logits[c];
  }
  compiler::Calibration& cal = net.calibration;
  for (std::size_t c = 0; c < n_classes; ++c) {
    const auto all = static_cast<std::int64_t>(n);
    cal.target_correct[c] = mean_logit(own[c], n_own[c], 64);
    cal.target_wrong[c] = mean_logit(other[c], all - n_own[c], -64);
    if (n_own[c] == 0)
      net.warnings.push_back(absl::StrCat("class ", c, " has no training samples: target +64"));
  }
  cal.src_total = static_cast<std::uint32_t>(test.size() / len);
  cal.src_correct = 0;
  for (std::size_t s = 0; s < cal.src_total; ++s) {
    odt_trainer_infer(host->get(), test.data() + s * len, logits.data());
    const auto top = std::max_element(logits.begin(), logits.end()) - logits.begin();
    if (top == test_labels[s]) ++cal.src_correct;
  }
  return absl::OkStatus();
}

}  // namespace

compiler::Prequant make_prequant(const data::Dataset& d) {
  compiler::Prequant p;
  p.name = "prequant";
  if (d.dtype == data::Dtype::kU8 && d.shape.size() == 3) {
    p.offset = {-128};
    p.mult = {1};
    p.k = {0};
    return p;
  }
  const std::uint32_t channels = d.shape.size() == 3 ? d.shape[0] : d.sample_len();
  const std::uint32_t per_channel = d.sample_len() / channels;
  for (std::uint32_t c = 0; c < channels; ++c) {
    const auto from = c * per_channel, to = from + per_channel;
    const double lo = *std::min_element(d.feature_min.begin() + from, d.feature_min.begin() + to);
    const double hi = *std::max_element(d.feature_max.begin() + from, d.feature_max.begin() + to);
    const double scale = hi > lo ? 254.0 / (hi - lo) : 1.0;
    // mult of 8 bits where the shift allows it.
    const int k = std::clamp(7 - static_cast<int>(std::floor(std::log2(scale))), 0, 31);
    const double mult = std::clamp(std::floor(std::ldexp(scale, k)), 1.0, 32767.0);
    const double half_step = std::ldexp(0.5, k) / mult;
    p.mult.push_back(static_cast<std::int16_t>(mult));
    p.k.push_back(static_cast<std::uint8_t>(k));
    p.offset.push_back(static_cast<float>(std::clamp(half_step - (lo + hi) / 2, -1e6, 1e6)));
  }
  return p;
}

Result<compiler::Network> train_pc(const data::Dataset& d, const TrainPcOptions& options,
                                   const data::Progress& progress) {
  ODT_TRY(check(d, options));
  compiler::Network net;
  net.name = options.name.empty() ? "dense" : options.name;
  net.input_shape = d.shape;
  net.prequant = make_prequant(d);
  const data::InputStage stage = stage_of(net);
  const std::uint32_t n_train = d.count(data::Split::kTrain);
  std::vector<std::uint8_t> train;
  ODT_ASSIGN(train, data::quantize_samples(stage, d, 0, n_train));
  QatOptions qat;
  qat.hidden = options.hidden;
  qat.epochs = options.epochs == 0 ? kDefaultEpochs : options.epochs;
  qat.seed = options.seed;
  qat.n_classes = static_cast<std::uint32_t>(d.class_names.size());
  const QatSamples samples{n_train, d.sample_len(),
                           reinterpret_cast<const std::int8_t*>(train.data()), d.labels.data()};
  QatResult trained = train_dense_qat(samples, qat, [&](std::uint32_t epoch, double loss) {
    progress(950 * (epoch + 1) / qat.epochs,
             absl::StrFormat("epoch %d of %d, loss %.4f", epoch + 1, qat.epochs, loss));
  });
  net.layers = std::move(trained.layers);
  compiler::connect_chain(net);
  for (auto& layer : net.layers) layer.trainable = true;
  net.calibration.ce_scale = trained.ce_scale;
  net.calibration.target_correct.assign(qat.n_classes, 64);
  net.calibration.target_wrong.assign(qat.n_classes, -64);
  data::Split split = data::Split::kTest;
  if (d.count(split) == 0) split = data::Split::kHeldout;
  if (d.count(split) == 0) split = data::Split::kTrain;
  if (split != data::Split::kTest)
    net.warnings.push_back(absl::StrCat("no test split: accuracy is measured on the ",
                                        split == data::Split::kTrain ? "training" : "held-out",
                                        " samples"));
  std::vector<std::uint8_t> test;
  ODT_ASSIGN(test, data::quantize_samples(stage, d, d.first(split), d.count(split)));
  progress(970, "measuring with the firmware's arithmetic");
  ODT_TRY(calibrate(train, d.labels.data(), test, d.labels.data() + d.first(split), net));
  return net;
}

}  // namespace odt::worker
