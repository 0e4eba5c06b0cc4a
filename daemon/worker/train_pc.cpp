#include "worker/train_pc.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>

#include "compiler/compile.h"
#include "compiler/dfp.h"
#include "compiler/image_writer.h"
#include "compiler/onnx_writer.h"
#include "data/derive.h"
#include "data/sampling.h"
#include "worker/host_model.h"
#include "worker/qat_train.h"

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
  if (!(o.rate >= 0 && o.rate <= 10) || !(o.decay <= 1))
    return absl::InvalidArgumentError(
        absl::StrCat("rate ", o.rate, ", decay ", o.decay, "; expected 0..10 and at most 1"));
  if (o.validation > 500)
    return absl::InvalidArgumentError(
        absl::StrCat("validation ", o.validation, " per mille; expected 0..500"));
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
  const std::size_t n_classes = net.n_classes(), len = compiler::count_of(net.input_shape);
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

namespace {

struct Prepared {
  Arch arch;
  QatOptions qat;
};

Result<Prepared> prepare(const data::Dataset& d, const TrainPcOptions& o) {
  ODT_TRY(check(d, o));
  const auto n_classes = static_cast<std::uint32_t>(d.class_names.size());
  const bool plain = o.arch.empty();
  Prepared p;
  ODT_ASSIGN(p.arch,
             parse_arch(plain ? arch_of_hidden(o.hidden) : o.arch, d.shape,
                        {{n_classes}, absl::StrCat("the dataset has ", n_classes, " classes")}));
  ODT_ASSIGN(p.qat.augment, parse_augment(o.augment));
  if (p.qat.augment.any() && p.arch.input.size() != 3)
    return absl::InvalidArgumentError("augment: needs a network that begins with planes [C,H,W]");
  p.qat.epochs = o.epochs == 0 ? kDefaultEpochs : o.epochs;
  p.qat.seed = o.seed;
  if (o.rate > 0) p.qat.rate = o.rate;
  if (o.decay >= 0) p.qat.decay = o.decay;
  p.qat.per_channel = !plain;
  p.qat.plain_recipe = plain;
  p.qat.float_only = o.float_only;
  return p;
}

// Training samples and what they are validated with.
struct Sets {
  std::vector<std::uint8_t> train, validation;
  std::vector<std::uint8_t> train_labels, validation_labels;

  static QatSamples view(const std::vector<std::uint8_t>& values,
                         const std::vector<std::uint8_t>& labels, std::uint32_t len) {
    return {static_cast<std::uint32_t>(labels.size()), len,
            reinterpret_cast<const std::int8_t*>(values.data()), labels.data()};
  }
};

void keep_back(std::uint32_t n, std::uint32_t seed, std::uint32_t len, Sets& s) {
  const auto all = static_cast<std::uint32_t>(s.train_labels.size());
  const auto order = data::shuffled(all, seed ^ 0x5bd1e995u);
  std::vector<bool> kept(all, false);
  for (std::uint32_t i = 0; i < n; ++i) kept[order[i]] = true;
  Sets out;
  for (std::uint32_t i = 0; i < all; ++i) {
    auto& values = kept[i] ? out.validation : out.train;
    const auto from = s.train.begin() + static_cast<std::ptrdiff_t>(std::size_t{i} * len);
    values.insert(values.end(), from, from + static_cast<std::ptrdiff_t>(len));
    (kept[i] ? out.validation_labels : out.train_labels).push_back(s.train_labels[i]);
  }
  s = std::move(out);
}

Result<Sets> sets_of(const data::Dataset& d, const data::InputStage& stage,
                     const TrainPcOptions& o) {
  Sets s;
  const auto part = [&](data::Split split, std::vector<std::uint8_t>& values,
                        std::vector<std::uint8_t>& labels) -> Status {
    const std::uint32_t first = d.first(split), n = d.count(split);
    ODT_ASSIGN(values, data::quantize_samples(stage, d, first, n));
    labels.assign(d.labels.begin() + first, d.labels.begin() + first + n);
    return absl::OkStatus();
  };
  ODT_TRY(part(data::Split::kTrain, s.train, s.train_labels));
  const std::uint32_t n = d.count(data::Split::kTrain);
  if (d.count(data::Split::kHeldout) > 0) {
    ODT_TRY(part(data::Split::kHeldout, s.validation, s.validation_labels));
  } else if (const auto kept = static_cast<std::uint32_t>(std::uint64_t{n} * o.validation / 1000);
             kept > 0 && kept < n) {
    keep_back(kept, o.seed, d.sample_len(), s);
  }
  return s;
}

std::string epoch_text(const QatEpoch& e, std::uint32_t epochs) {
  std::string text = absl::StrFormat("epoch %d of %d, loss %.4f", e.epoch + 1, epochs, e.loss);
  if (e.total > 0)
    absl::StrAppendFormat(&text, ", validation %.4f", static_cast<double>(e.correct) / e.total);
  return text;
}

}  // namespace

Result<compiler::Network> train_pc(const data::Dataset& d, const TrainPcOptions& options,
                                   const data::Progress& progress) {
  Prepared p;
  ODT_ASSIGN(p, prepare(d, options));
  compiler::Network net;
  net.name = options.name.empty() ? "dense" : options.name;
  net.input_shape = d.shape;
  net.prequant = make_prequant(d);
  const data::InputStage stage = stage_of(net);
  Sets sets;
  ODT_ASSIGN(sets, sets_of(d, stage, options));
  const std::uint32_t len = d.sample_len();
  QatTrainer trainer(p.arch, Sets::view(sets.train, sets.train_labels, len), p.qat);
  ODT_TRY(
      trainer.run(Sets::view(sets.validation, sets.validation_labels, len), [&](const QatEpoch& e) {
        progress(950 * (e.epoch + 1) / p.qat.epochs, epoch_text(e, p.qat.epochs));
      }));
  data::Split split = data::Split::kTest;
  if (d.count(split) == 0) split = data::Split::kHeldout;
  if (d.count(split) == 0) split = data::Split::kTrain;
  if (split != data::Split::kTest)
    net.warnings.push_back(absl::StrCat("no test split: accuracy is measured on the ",
                                        split == data::Split::kTrain ? "training" : "held-out",
                                        " samples"));
  std::vector<std::uint8_t> test;
  ODT_ASSIGN(test, data::quantize_samples(stage, d, d.first(split), d.count(split)));
  const std::uint8_t* test_labels = d.labels.data() + d.first(split);
  if (options.float_only) {
    net.calibration.src_total = d.count(split);
    net.calibration.src_correct = trainer.correct(
        {d.count(split), len, reinterpret_cast<const std::int8_t*>(test.data()), test_labels});
    return net;
  }
  QatResult trained = trainer.exported();
  net.layers = std::move(trained.layers);
  for (auto& layer : net.layers) layer.trainable = layer.is_compute();
  net.calibration.ce_scale = trained.ce_scale;
  net.calibration.target_correct.assign(d.class_names.size(), 64);
  net.calibration.target_wrong.assign(d.class_names.size(), -64);
  progress(970, "measuring with the firmware's arithmetic");
  ODT_TRY(calibrate(sets.train, sets.train_labels.data(), test, test_labels, net));
  return net;
}

Result<TrainedFiles> package(const compiler::Network& net, bool dfp16) {
  TrainedFiles files;
  files.onnx = compiler::write_onnx(net);
  const std::string file = net.name + ".onnx";
  compiler::Compiled compiled;
  ODT_ASSIGN(compiled, compiler::compile(files.onnx, file, {net.name, 0}));
  if (dfp16) {
    compiler::Network dfp;
    ODT_ASSIGN(dfp, compiler::to_dfp16(compiled.network));
    ODT_ASSIGN(compiled,
               compiler::compile_network(std::move(dfp), files.onnx, file, {net.name, 0}));
  }
  files.image = std::move(compiled.image);
  files.manifest = std::move(compiled.manifest);
  files.warnings = net.warnings;
  return files;
}

}  // namespace odt::worker
