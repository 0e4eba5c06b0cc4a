#include "model_check.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

#include "compare.h"
#include "data/quantize.h"
#include "image_reader.h"
#include "odt/trainer.h"
#include "worker/host_model.h"

namespace odt::testing {
namespace {

constexpr std::uint32_t kBatch = 3;

// Samples behind the input stage, as bytes of the image's input.
Result<std::vector<std::uint8_t>> input_bytes(const CompiledModel& model) {
  data::InputStage stage;
  ODT_ASSIGN(stage, data::parse_input_stage(model.manifest));
  data::Dataset d;
  d.shape = stage.shape;
  d.counts[0] = model.count;
  if (stage.has_prequant()) {
    d.dtype = data::Dtype::kF32;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(model.samples.data());
    d.values.assign(bytes, bytes + model.samples.size() * sizeof(float));
  } else {
    d.dtype = stage.dtype;
    for (float x : model.samples) {
      const auto v = static_cast<std::uint16_t>(static_cast<int>(x));
      d.values.push_back(static_cast<std::uint8_t>(v));
      if (stage.dtype == data::Dtype::kS16) d.values.push_back(static_cast<std::uint8_t>(v >> 8));
    }
  }
  return data::quantize_samples(stage, d, 0, model.count);
}

Values values_of(DType dtype, const std::uint8_t* bytes, std::size_t n) {
  Values out;
  for (std::size_t i = 0; i < n; i++) {
    if (dtype == DType::kU8) out.push_back(bytes[i]);
    if (dtype == DType::kS8) out.push_back(static_cast<std::int8_t>(bytes[i]));
    if (dtype == DType::kS16)
      out.push_back(static_cast<std::int16_t>(bytes[2 * i] | bytes[2 * i + 1] << 8));
  }
  return out;
}

GraphSamples samples_of(const NetSpec& net, const std::vector<std::uint8_t>& bytes,
                        std::uint32_t n) {
  GraphSamples set;
  set.dtype = net.input_dtype;
  set.flags = net.task == 1 ? 1 : 0;
  const std::size_t len = count(net.input_dims), size = len * (set.dtype == DType::kS16 ? 2 : 1);
  for (std::uint32_t i = 0; i < n; i++) {
    set.values.push_back(values_of(set.dtype, bytes.data() + i * size, len));
    set.labels.push_back(net.task == 0 ? static_cast<int>((7 * i + 1) % net.n_classes) : 0);
    Values target;
    for (std::uint32_t c = 0; c < net.n_classes; c++)
      target.push_back(static_cast<int>((c * 37 + i * 101 + 11) % 255) - 127);
    set.targets.push_back(target);
  }
  return set;
}

std::vector<odt_run_spec_t> settings(const NetSpec& net, std::uint32_t batch) {
  std::vector<odt_run_spec_t> out;
  for (int i = 0; i < 2; i++) {
    odt_run_spec_t s = worker::HostTrainer::inference_spec(net.arith == 1);
    s.batch = static_cast<std::uint16_t>(batch);
    s.train_samples = batch;
    const bool entropy = net.task == 0 && (net.arith == 1 || (i == 1 && net.ce_scale > 0));
    s.loss = entropy ? ODT_LOSS_CE : ODT_LOSS_MSE;
    if (net.arith == 1) {
      std::fill(std::begin(s.lr_m), std::end(s.lr_m), std::uint16_t{5});
      s.lr_s = 9;
      s.blocked = i == 1;
    } else {
      s.k = i == 0 ? 8 : 15;
      std::fill(std::begin(s.mu_weight), std::end(s.mu_weight), std::int8_t{1});
      s.mu_offset = 1;
    }
    out.push_back(s);
  }
  return out;
}

std::vector<std::uint8_t> state_of(odt_trainer_t* t) {
  std::vector<std::uint8_t> out(odt_state_size(t));
  odt_state_read(t, 0, out.data(), static_cast<std::uint32_t>(out.size()));
  return out;
}

std::string differ(const std::string& what, const Values& got, const Values& want) {
  if (got.size() != want.size())
    return absl::StrCat(what, ": ", got.size(), " values, expected ", want.size());
  for (std::size_t i = 0; i < got.size(); i++)
    if (got[i] != want[i])
      return absl::StrCat(what, " ", i, " is ", got[i], ", expected ", want[i]);
  return "";
}

std::string differ(const StateView& got, const std::vector<LayerView>& want) {
  if (!got.whole || got.layers.size() != want.size()) return "the state's length";
  std::string d;
  for (std::size_t i = 0; i < want.size() && d.empty(); i++) {
    const std::string at = absl::StrCat("layer ", i, ": ");
    d = differ(at + "weight", got.layers[i].m, want[i].m);
    if (d.empty()) d = differ(at + "offset", got.layers[i].off, want[i].off);
    if (d.empty()) d = differ(at + "k", {got.layers[i].k}, {want[i].k});
    if (d.empty()) d = differ(at + "exponent", got.layers[i].exponents, want[i].exponents);
  }
  return d;
}

Values outputs_of(odt_trainer_t* t, const NetSpec& net, const std::uint8_t* sample,
                  std::int32_t* exponent) {
  std::vector<std::int16_t> wide(net.n_classes);
  std::vector<std::int8_t> narrow(net.n_classes);
  *exponent = 0;
  if (net.arith == 1) {
    odt_trainer_infer16(t, sample, wide.data(), exponent);
    return Values(wide.begin(), wide.end());
  }
  odt_trainer_infer(t, sample, narrow.data());
  return Values(narrow.begin(), narrow.end());
}

// Whether anything moved: a step that changes nothing proves nothing.
bool moved(const StateView& before, const StateView& after) {
  for (std::size_t i = 0; i < before.layers.size(); i++)
    if (before.layers[i].m != after.layers[i].m || before.layers[i].off != after.layers[i].off)
      return true;
  return false;
}

Result<std::string> one_step(const CompiledModel& model, const ComparedRun& run,
                             const std::vector<std::uint8_t>& bytes, bool* some_moved) {
  std::unique_ptr<worker::HostTrainer> host;
  ODT_ASSIGN(host, worker::HostTrainer::create(model.image, run.spec));
  const StateView before = read_state(state_of(host->get()));
  std::vector<int> all;
  for (int i = 0; i < run.spec.batch; i++) all.push_back(i);
  const std::vector<std::uint8_t> blob = samples_blob(run.samples, all);
  odt_samples_t samples{};
  odt_error_t error{};
  odt_step_record_t record{};
  if (odt_samples_open(&samples, blob.data(), static_cast<std::uint32_t>(blob.size()), &error) ||
      odt_trainer_step(host->get(), &samples, &record, &error))
    return worker::host_status(error);
  auto reference = reference_of(run);
  reference->step(run.samples.values, run.samples.labels, run.samples.targets);
  const StateView after = read_state(state_of(host->get()));
  std::string d = differ(after, reference->layers());
  if (d.empty() && record.loss != reference->loss())
    d = absl::StrCat("loss ", record.loss, ", expected ", reference->loss());
  if (d.empty() && record.correct != static_cast<std::uint32_t>(reference->correct()))
    d = absl::StrCat("correct ", record.correct, ", expected ", reference->correct());
  *some_moved |= moved(before, after);
  const std::size_t size = bytes.size() / model.count;
  for (std::size_t i = 0; i < 2 && i < run.samples.values.size() && d.empty(); i++) {
    std::int32_t e = 0;
    int want_e = 0;
    const Values z = outputs_of(host->get(), run.net, bytes.data() + i * size, &e);
    d = differ("output behind the step", z, reference->infer(run.samples.values[i], &want_e));
    if (d.empty() && e != want_e) d = absl::StrCat("exponent ", e, ", expected ", want_e);
  }
  return d;
}

}  // namespace

Result<std::vector<float>> infer_all(const CompiledModel& model) {
  const NetSpec net = read_image(model.image);
  std::vector<std::uint8_t> bytes;
  ODT_ASSIGN(bytes, input_bytes(model));
  std::unique_ptr<worker::HostTrainer> host;
  ODT_ASSIGN(host, worker::HostTrainer::create(model.image, settings(net, 1)[0]));
  std::vector<float> out;
  for (std::uint32_t i = 0; i < model.count; i++) {
    std::int32_t e = 0;
    for (auto z : outputs_of(host->get(), net, bytes.data() + i * (bytes.size() / model.count), &e))
      out.push_back(std::ldexp(static_cast<float>(z), e));
  }
  return out;
}

Result<std::string> check_step(const CompiledModel& model) {
  ComparedRun run;
  run.net = read_image(model.image);
  std::vector<std::uint8_t> bytes;
  ODT_ASSIGN(bytes, input_bytes(model));
  const std::uint32_t batch = std::min(kBatch, model.count);
  run.samples = samples_of(run.net, bytes, batch);
  bool some_moved = false;
  for (const auto& spec : settings(run.net, batch)) {
    run.spec = spec;
    std::string d;
    ODT_ASSIGN(d, one_step(model, run, bytes, &some_moved));
    if (!d.empty()) return absl::StrCat(run.net.arith ? "DFP16: " : "k ", spec.k, ": ", d);
  }
  return std::string(some_moved ? "" : "no step changed anything");
}

}  // namespace odt::testing
