#include "worker/train_pc.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_replace.h>

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

// Samples behind PREQUANT with their labels.
struct Set {
  std::vector<std::uint8_t> values, labels;
  std::vector<std::int8_t> targets;  // [count][outputs], regressions
  std::size_t len = 0, outputs = 0;

  std::size_t count() const { return labels.size(); }
  const std::uint8_t* sample(std::size_t n) const { return values.data() + n * len; }
  QatSamples view() const {
    return {static_cast<std::uint32_t>(count()), static_cast<std::uint32_t>(len),
            reinterpret_cast<const std::int8_t*>(values.data()), labels.data(),
            targets.empty() ? nullptr : targets.data()};
  }
};

Result<std::unique_ptr<HostTrainer>> open_host(const compiler::Network& net) {
  std::string image;
  ODT_ASSIGN(image, compiler::write_image(net));
  return HostTrainer::create(image, HostTrainer::inference_spec());
}

// Targets from the training samples, then the accuracy, both by firmware/odt.
Status calibrate(const Set& train, const Set& test, compiler::Network& net) {
  const std::size_t n_classes = net.n_classes();
  std::unique_ptr<HostTrainer> host;
  ODT_ASSIGN(host, open_host(net));
  std::vector<std::int64_t> own(n_classes, 0), other(n_classes, 0), n_own(n_classes, 0);
  std::vector<std::int8_t> logits(n_classes);
  const std::size_t n = std::min<std::size_t>(train.count(), 20000);
  for (std::size_t s = 0; s < n; ++s) {
    odt_trainer_infer(host->get(), train.sample(s), logits.data());
    ++n_own[train.labels[s]];
    for (std::size_t c = 0; c < n_classes; ++c)
      (c == train.labels[s] ? own : other)[c] += logits[c];
  }
  compiler::Calibration& cal = net.calibration;
  for (std::size_t c = 0; c < n_classes; ++c) {
    const auto all = static_cast<std::int64_t>(n);
    cal.target_correct[c] = mean_logit(own[c], n_own[c], 64);
    cal.target_wrong[c] = mean_logit(other[c], all - n_own[c], -64);
    if (n_own[c] == 0)
      net.warnings.push_back(absl::StrCat("class ", c, " has no training samples: target +64"));
  }
  cal.src_total = static_cast<std::uint32_t>(test.count());
  cal.src_correct = 0;
  for (std::size_t s = 0; s < test.count(); ++s) {
    odt_trainer_infer(host->get(), test.sample(s), logits.data());
    const auto top = std::max_element(logits.begin(), logits.end()) - logits.begin();
    if (top == test.labels[s]) ++cal.src_correct;
  }
  return absl::OkStatus();
}

// Mean squared error of an output, in steps of int8: against the targets, else the values.
Result<double> squared_error(const Set& test, const compiler::Network& net) {
  std::unique_ptr<HostTrainer> host;
  ODT_ASSIGN(host, open_host(net));
  std::vector<std::int8_t> out(net.n_classes());
  const bool regression = net.task == compiler::Task::kRegress;
  double sum = 0;
  for (std::size_t s = 0; s < test.count(); ++s) {
    odt_trainer_infer(host->get(), test.sample(s), out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const int error = out[i] - (regression ? test.targets[s * test.outputs + i]
                                             : static_cast<std::int8_t>(test.sample(s)[i]));
      sum += error * error;
    }
  }
  return sum / static_cast<double>(std::max<std::size_t>(test.count() * out.size(), 1));
}

double in_units(double mse, const std::vector<float>& scales) {
  for (const float s : scales)
    if (s != scales[0]) return -1;
  return mse / (double{scales[0]} * scales[0]);
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

// Small sets want more passes: 12 of them, or about a thousand steps.
std::uint32_t default_epochs(std::uint32_t samples) {
  constexpr std::uint32_t kSteps = 1000, kBatch = 64, kMost = 100;
  const std::uint32_t steps = (samples + kBatch - 1) / kBatch;
  return std::clamp((kSteps + steps - 1) / steps, kDefaultEpochs, kMost);
}

Result<Prepared> prepare(const data::Dataset& d, const TrainPcOptions& o) {
  ODT_TRY(check(d, o));
  const auto n_classes = static_cast<std::uint32_t>(d.class_names.size());
  const bool plain = o.arch.empty(), regress = !o.autoencode && d.outputs > 0,
             autoencode = !regress && (o.autoencode || n_classes == 0);
  Prepared p;
  if (autoencode) p.qat.task = compiler::Task::kAutoencode;
  if (regress) p.qat.task = compiler::Task::kRegress;
  const ArchOutput output =
      autoencode ? ArchOutput{d.shape, "an autoencoder gives what it reads"}
      : regress  ? ArchOutput{{d.outputs}, absl::StrCat("the dataset has ", d.outputs, " targets")}
                 : ArchOutput{{n_classes}, absl::StrCat("the dataset has ", n_classes, " classes")};
  std::string arch = plain ? arch_of_hidden(o.hidden) : o.arch;
  // Squared errors pull hard at first: without batch norm units die of it.
  if (plain && (autoencode || regress)) arch = absl::StrReplaceAll(arch, {{"relu", "bn,relu"}});
  ODT_ASSIGN(p.arch, parse_arch(arch, d.shape, output));
  ODT_ASSIGN(p.qat.augment, parse_augment(o.augment));
  if (p.qat.augment.any() && p.arch.input.size() != 3)
    return absl::InvalidArgumentError("augment: needs a network that begins with planes [C,H,W]");
  p.qat.epochs = o.epochs != 0 ? o.epochs
                 : plain       ? kDefaultEpochs
                               : default_epochs(d.count(data::Split::kTrain));
  p.qat.seed = o.seed;
  if (o.rate > 0) p.qat.rate = o.rate;
  if (o.decay >= 0) p.qat.decay = o.decay;
  // The recipe of release 0.1 is one of classifiers.
  p.qat.plain_recipe = plain && !autoencode && !regress;
  p.qat.per_channel = !p.qat.plain_recipe;
  p.qat.float_only = o.float_only;
  return p;
}

// Training samples and what they are validated with.
struct Sets {
  Set train, validation;
};

// Moves n training samples over to validation.
void keep_back(std::uint32_t n, std::uint32_t seed, Sets& s) {
  const auto all = static_cast<std::uint32_t>(s.train.count());
  const auto order = data::shuffled(all, seed ^ 0x5bd1e995u);
  std::vector<bool> kept(all, false);
  for (std::uint32_t i = 0; i < n; ++i) kept[order[i]] = true;
  Sets out;
  out.train.len = out.validation.len = s.train.len;
  out.train.outputs = out.validation.outputs = s.train.outputs;
  for (std::uint32_t i = 0; i < all; ++i) {
    Set& to = kept[i] ? out.validation : out.train;
    to.values.insert(to.values.end(), s.train.sample(i), s.train.sample(i) + s.train.len);
    to.labels.push_back(s.train.labels[i]);
    const auto t = s.train.targets.begin() + static_cast<std::ptrdiff_t>(i * s.train.outputs);
    if (!s.train.targets.empty())
      to.targets.insert(to.targets.end(), t, t + static_cast<std::ptrdiff_t>(s.train.outputs));
  }
  s = std::move(out);
}

// outputs: scales of a regression, else empty.
Result<Set> set_of(const data::Dataset& d, const data::InputStage& stage,
                   const data::OutputStage& outputs, data::Split split) {
  Set s;
  s.len = d.sample_len();
  ODT_ASSIGN(s.values, data::quantize_samples(stage, d, d.first(split), d.count(split)));
  s.labels.assign(d.labels.begin() + d.first(split),
                  d.labels.begin() + d.first(split) + d.count(split));
  if (outputs.scale.empty()) return s;
  s.outputs = d.outputs;
  for (std::size_t at = std::size_t{d.first(split)} * d.outputs;
       s.targets.size() < std::size_t{d.count(split)} * d.outputs; ++at)
    s.targets.push_back(
        data::quantize_target(outputs, static_cast<std::uint32_t>(at % d.outputs), d.targets[at]));
  return s;
}

Result<Sets> sets_of(const data::Dataset& d, const data::InputStage& stage,
                     const data::OutputStage& outputs, const TrainPcOptions& o, bool validate) {
  Sets s;
  ODT_ASSIGN(s.train, set_of(d, stage, outputs, data::Split::kTrain));
  if (!validate) return s;
  const std::uint64_t n = s.train.count(), kept = n * o.validation / 1000;
  if (d.count(data::Split::kHeldout) > 0) {
    ODT_ASSIGN(s.validation, set_of(d, stage, outputs, data::Split::kHeldout));
  } else if (kept > 0 && kept < n) {
    keep_back(static_cast<std::uint32_t>(kept), o.seed, s);
  }
  return s;
}

std::string epoch_text(const QatEpoch& e, std::uint32_t epochs, bool classes) {
  std::string text = absl::StrFormat("epoch %d of %d, loss %.4f", e.epoch + 1, epochs, e.loss);
  if (e.total > 0 && classes)
    absl::StrAppendFormat(&text, ", validation %.4f", static_cast<double>(e.correct) / e.total);
  return text;
}

// What accuracy is measured on: the test split, else held-out, else train.
data::Split judged(const data::Dataset& d, compiler::Network& net) {
  data::Split split = data::Split::kTest;
  if (d.count(split) == 0) split = data::Split::kHeldout;
  if (d.count(split) == 0) split = data::Split::kTrain;
  if (split != data::Split::kTest)
    net.warnings.push_back(absl::StrCat("no test split: accuracy is measured on the ",
                                        split == data::Split::kTrain ? "training" : "held-out",
                                        " samples"));
  return split;
}

}  // namespace

Result<compiler::Network> train_pc(const data::Dataset& d, const TrainPcOptions& options,
                                   const data::Progress& progress, TrainPcFigures* figures) {
  Prepared p;
  ODT_ASSIGN(p, prepare(d, options));
  const bool classes = p.qat.task == compiler::Task::kClassify;
  compiler::Network net;
  net.name = options.name.empty() ? "dense" : options.name;
  net.input_shape = d.shape;
  net.task = p.qat.task;
  net.prequant = make_prequant(d);
  const data::InputStage stage = stage_of(net);
  data::OutputStage outputs;
  if (net.task == compiler::Task::kRegress) {
    ODT_ASSIGN(outputs,
               data::output_stage(d, {data::OutputStage::Task::kTargets, d.outputs, {}, {}}));
    net.calibration.target_offset = outputs.offset;
    net.calibration.target_scale = outputs.scale;
  }
  Sets sets;
  ODT_ASSIGN(sets, sets_of(d, stage, outputs, options, classes));
  QatTrainer trainer(p.arch, sets.train.view(), p.qat);
  ODT_TRY(trainer.run(classes ? sets.validation.view() : QatSamples{}, [&](const QatEpoch& e) {
    progress(950 * (e.epoch + 1) / p.qat.epochs, epoch_text(e, p.qat.epochs, classes));
  }));
  Set test;
  ODT_ASSIGN(test, set_of(d, stage, outputs, judged(d, net)));
  if (options.float_only) {
    net.calibration.src_total = static_cast<std::uint32_t>(test.count());
    net.calibration.src_correct = classes ? trainer.correct(test.view()) : 0;
    return net;
  }
  QatResult trained = trainer.exported();
  net.layers = std::move(trained.layers);
  net.input_exponent = trained.input_exponent;
  for (auto& layer : net.layers) layer.trainable = layer.is_compute();
  progress(970, "measuring with the firmware's arithmetic");
  if (!classes) {
    TrainPcFigures f;
    ODT_ASSIGN(f.mse, squared_error(test, net));
    if (net.task == compiler::Task::kAutoencode) data::output_scales(stage, d.dtype, outputs);
    f.mse_in_units = in_units(f.mse, outputs.scale);
    if (figures != nullptr) *figures = f;
    return net;
  }
  net.calibration.ce_scale = trained.ce_scale;
  net.calibration.target_correct.assign(d.class_names.size(), 64);
  net.calibration.target_wrong.assign(d.class_names.size(), -64);
  ODT_TRY(calibrate(sets.train, test, net));
  return net;
}

Result<TrainedFiles> package(const compiler::Network& net, bool dfp16) {
  TrainedFiles files;
  files.onnx = compiler::write_onnx(net);
  const std::string file = net.name + ".onnx";
  compiler::CompileOptions options;
  options.name = net.name;
  options.task = net.task;
  compiler::Compiled compiled;
  ODT_ASSIGN(compiled, compiler::compile(files.onnx, file, options));
  if (dfp16) {
    compiler::Network dfp;
    ODT_ASSIGN(dfp, compiler::to_dfp16(compiled.network));
    ODT_ASSIGN(compiled, compiler::compile_network(std::move(dfp), files.onnx, file, options));
  }
  files.image = std::move(compiled.image);
  files.manifest = std::move(compiled.manifest);
  files.tail = std::move(compiled.tail);
  files.warnings = net.warnings;
  return files;
}

}  // namespace odt::worker
