#include "compiler/vectors.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/ids.h"
#include "data/sampling.h"

namespace odt::compiler {
namespace {

constexpr std::uint32_t kJsonVectors = 8;

odt_run_spec_t spec_of(const odt_model_t& m, std::uint32_t samples, std::uint16_t batch) {
  const bool dfp16 = m.arith == ODT_ARITH_DFP16, classes = m.task == ODT_TASK_CLASSIFY;
  odt_run_spec_t spec{};
  spec.rule_set = dfp16 ? ODT_RULE_DFP16 : ODT_RULE_NITI;
  spec.loss = dfp16 && classes ? ODT_LOSS_CE : ODT_LOSS_MSE;
  spec.shift_source = ODT_SHIFT_EXACT;
  for (auto& mu : spec.mu_weight) mu = dfp16 ? 0 : 1;
  spec.mu_offset = dfp16 ? 0 : 1;
  spec.k = dfp16 ? 0 : 8;
  for (auto& rate : spec.lr_m) rate = dfp16 ? 1 : 0;
  spec.batch = batch;
  spec.epochs = 1;
  spec.train_samples = samples;
  std::fill(std::begin(spec.class_weights), std::end(spec.class_weights), 64);
  return spec;
}

// Rows of n values each.
template <typename T>
nlohmann::json rows(const std::vector<T>& v, std::size_t n) {
  nlohmann::json out = nlohmann::json::array();
  for (std::size_t at = 0; at + n <= v.size(); at += n)
    out.push_back(std::vector<T>(v.begin() + static_cast<std::ptrdiff_t>(at),
                                 v.begin() + static_cast<std::ptrdiff_t>(at + n)));
  return out;
}

}  // namespace

GoldenTrainer::GoldenTrainer(const std::string& image) : words_((image.size() + 3) / 4) {
  std::copy(image.begin(), image.end(), reinterpret_cast<char*>(words_.data()));
  status_ =
      odt_model_open(&model, words_.data(), static_cast<std::uint32_t>(image.size()), &error_);
}

Status GoldenTrainer::start(std::uint32_t samples, std::uint16_t batch) {
  const odt_run_spec_t spec = spec_of(model, samples, batch);
  odt_memory_plan_t plan{};
  if (status_ == ODT_OK) status_ = odt_run_spec_check(&spec, &model, &error_);
  if (status_ != ODT_OK) return failed();
  odt_trainer_plan(&model, &spec, false, &plan);
  arena_.resize(plan.total_bytes / 8 + 1);
  trainer = std::make_unique<odt_trainer_t>();
  status_ = odt_trainer_init(trainer.get(), &model, &spec, false, arena_.data(), plan.total_bytes,
                             &error_);
  return status_ == ODT_OK ? absl::OkStatus() : failed();
}

bool GoldenTrainer::step(const odt_samples_t& batch, odt_step_record_t& record) {
  status_ = odt_trainer_step(trainer.get(), &batch, &record, &error_);
  return status_ == ODT_OK;
}

Status GoldenTrainer::failed() const {
  return absl::InternalError(
      absl::StrCat("golden vectors: ", error_.what != nullptr ? error_.what : "failed"));
}

std::vector<float> spread_inputs(const data::InputStage& in, std::uint32_t n) {
  data::Xorshift32 random(1);
  std::vector<float> out;
  const bool u8 = in.dtype == data::Dtype::kU8;
  const int lo = in.has_prequant() ? in.clip_lo : u8 ? 0 : -128;
  const int hi = in.has_prequant() ? in.clip_hi : u8 ? 255 : 127;
  const std::uint32_t len = in.count();
  for (std::uint32_t i = 0; i < n * len; ++i) {
    const float y = static_cast<float>(
        lo + static_cast<int>(random.below(static_cast<std::uint32_t>(hi - lo + 1))));
    if (!in.has_prequant()) {
      out.push_back(y);
      continue;
    }
    const std::size_t c = i % len / (len / in.offset.size());
    const float scale = std::ldexp(static_cast<float>(in.mult[c]), -static_cast<int>(in.k[c]));
    out.push_back(scale == 0 ? 0 : (y + 0.5f) / scale - in.offset[c]);
  }
  return out;
}

std::vector<std::int16_t> quantised(const data::InputStage& in, const std::vector<float>& x) {
  std::vector<std::int16_t> out;
  const std::size_t n = in.count();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = in.has_prequant() ? i % n / (n / in.offset.size()) : 0;
    const std::int32_t v = in.has_prequant()
                               ? data::quantize_float(in, static_cast<std::uint32_t>(c), x[i])
                               : static_cast<std::int32_t>(x[i]);
    out.push_back(static_cast<std::int16_t>(v));
  }
  return out;
}

std::vector<std::uint8_t> sample_bytes(const data::InputStage& in,
                                       const std::vector<std::int16_t>& values) {
  std::vector<std::uint8_t> out;
  for (const std::int16_t v : values) {
    out.push_back(static_cast<std::uint8_t>(v));
    if (in.dtype == data::Dtype::kS16) out.push_back(static_cast<std::uint8_t>(v >> 8));
  }
  return out;
}

Result<Logits> golden_logits(GoldenTrainer& host, const data::InputStage& in,
                             const std::vector<std::int16_t>& x, std::uint32_t n) {
  const std::size_t classes = host.model.n_classes;
  const bool dfp16 = host.model.arith == ODT_ARITH_DFP16;
  Logits out;
  out.values.resize(n * classes);
  out.exponents.resize(n);
  std::vector<std::int8_t> narrow(classes);
  for (std::size_t s = 0; s < n; ++s) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(s * in.count());
    const auto bytes = sample_bytes(in, {begin, begin + in.count()});
    std::int16_t* z = out.values.data() + s * classes;
    const odt_status_t st =
        dfp16 ? odt_trainer_infer16(host.trainer.get(), bytes.data(), z, &out.exponents[s])
              : odt_trainer_infer(host.trainer.get(), bytes.data(), narrow.data());
    if (st != ODT_OK) return host.failed();
    if (!dfp16) std::copy(narrow.begin(), narrow.end(), z);
  }
  return out;
}

Result<std::string> write_vectors(const Compiled& compiled) {
  data::InputStage in;
  ODT_ASSIGN(in, data::parse_input_stage(compiled.manifest));
  GoldenTrainer host(compiled.image);
  ODT_TRY(host.start(1, 1));
  const auto inputs = spread_inputs(in, kJsonVectors);
  const auto x = quantised(in, inputs);
  Logits logits;
  ODT_ASSIGN(logits, golden_logits(host, in, x, kJsonVectors));
  const nlohmann::json out = {
      {"format", "odt-vectors-1"},
      {"model_hash", sha256(compiled.image).hex()},
      {"n", kJsonVectors},
      {"inputs", rows(inputs, in.count())},
      {"quantised", rows(x, in.count())},
      {"logits", rows(logits.values, compiled.network.n_classes())},
      {"exponents", logits.exponents},
  };
  return out.dump() + "\n";
}

}  // namespace odt::compiler
