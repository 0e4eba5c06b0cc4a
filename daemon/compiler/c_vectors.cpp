// test_vector.h and .c: what the compiled files must give, computed by the trainer itself.
#include <algorithm>
#include <memory>

#include "base/ids.h"
#include "compiler/c_text.h"
#include "data/quantize.h"
#include "data/sampling.h"
#include "odt/odt.h"
#include "odt/trainer.h"

namespace odt::compiler {
namespace {

constexpr std::uint32_t kVectors = 4;

// The trainer of a checked image, with memory from the heap.
class Host {
 public:
  explicit Host(const std::string& image) : words_((image.size() + 3) / 4) {
    std::copy(image.begin(), image.end(), reinterpret_cast<char*>(words_.data()));
    status_ =
        odt_model_open(&model, words_.data(), static_cast<std::uint32_t>(image.size()), &error_);
  }
  Status start(std::uint32_t samples) {
    odt_run_spec_t spec{};
    spec.rule_set = ODT_RULE_NITI;
    spec.loss = ODT_LOSS_MSE;
    spec.shift_source = ODT_SHIFT_EXACT;
    for (auto& mu : spec.mu_weight) mu = 1;
    spec.mu_offset = 1;
    spec.k = 8;
    spec.batch = kCBatch;
    spec.epochs = 1;
    spec.train_samples = samples;
    std::fill(std::begin(spec.class_weights), std::end(spec.class_weights), 64);
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
  Status failed() const {
    return absl::InternalError(
        absl::StrCat("golden vectors: ", error_.what != nullptr ? error_.what : "failed"));
  }

  odt_model_t model{};
  std::unique_ptr<odt_trainer_t> trainer;

 private:
  std::vector<std::uint32_t> words_;
  std::vector<std::uint64_t> arena_;
  odt_error_t error_{};
  odt_status_t status_;
};

// Floats whose quantised values spread over the whole range.
std::vector<float> made_up(const data::InputStage& in) {
  data::Xorshift32 random(1);
  std::vector<float> out;
  const bool u8 = in.dtype == data::Dtype::kU8;
  const int lo = in.has_prequant() ? in.clip_lo : u8 ? 0 : -128;
  const int hi = in.has_prequant() ? in.clip_hi : u8 ? 255 : 127;
  const std::uint32_t n = in.count();
  for (std::uint32_t i = 0; i < kVectors * n; ++i) {
    const float y = static_cast<float>(
        lo + static_cast<int>(random.below(static_cast<std::uint32_t>(hi - lo + 1))));
    if (!in.has_prequant()) {
      out.push_back(y);
      continue;
    }
    const std::size_t c = i % n / (n / in.offset.size());
    const float scale =
        static_cast<float>(in.mult[c]) / static_cast<float>(std::uint32_t{1} << in.k[c]);
    out.push_back(scale == 0 ? 0 : (y + 0.5f) / scale - in.offset[c]);
  }
  return out;
}

std::vector<std::uint8_t> quantised(const data::InputStage& in, const std::vector<float>& x) {
  std::vector<std::uint8_t> out;
  const std::size_t n = in.count();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = in.has_prequant() ? i % n / (n / in.offset.size()) : 0;
    const std::int32_t v = in.has_prequant()
                               ? data::quantize_float(in, static_cast<std::uint32_t>(c), x[i])
                               : static_cast<std::int32_t>(x[i]);
    out.push_back(static_cast<std::uint8_t>(v));
  }
  return out;
}

// Values of the tensor in front of the first trainable layer.
Result<std::vector<std::int16_t>> frozen(Host& host, const std::vector<std::uint8_t>& x,
                                         const Network& net) {
  const odt_model_t& m = host.model;
  const std::size_t n = cut_count(net), len = m.tensors[m.input].count;
  const Storage storage = cut_storage(net);
  const bool computes = std::any_of(m.ops, m.ops + m.first_trainable_op,
                                    [](const odt_op_t& op) { return op.kind != ODT_OP_FLATTEN; });
  std::vector<std::int16_t> words(n), out;
  for (std::size_t s = 0; s < x.size() / len; ++s) {
    const std::uint8_t* y = x.data() + s * len;
    if (computes) {
      auto* bytes = reinterpret_cast<std::uint8_t*>(words.data());
      if (odt_trainer_freeze(host.trainer.get(), y, bytes) != ODT_OK) return host.failed();
      y = bytes;
    }
    for (std::size_t i = 0; i < n; ++i)
      out.push_back(storage == Storage::kS16  ? words[i]
                    : storage == Storage::kU8 ? std::int16_t{y[i]}
                                              : std::int16_t{static_cast<std::int8_t>(y[i])});
  }
  return out;
}

struct Trained {
  std::vector<std::uint8_t> hash;
  std::uint64_t loss = 0;
};

// One pass over the training samples as they are written, batch by batch.
Result<Trained> trained(Host& host, const data::InputStage& in, const CSamples& samples) {
  ODT_TRY(host.start(samples.n));
  const auto x = quantised(in, samples.inputs);
  const std::uint32_t len = in.count();
  Trained out;
  for (std::uint32_t at = 0; at < samples.n; at += kCBatch) {
    odt_samples_t batch{};
    batch.dtype = in.dtype == data::Dtype::kU8 ? ODT_U8 : ODT_S8;
    batch.count = std::min(kCBatch, samples.n - at);
    batch.sample_len = len;
    batch.label_len = 1;
    batch.labels = samples.labels.data() + at;
    batch.data = x.data() + std::size_t{at} * len;
    odt_step_record_t record{};
    if (odt_trainer_step(host.trainer.get(), &batch, &record, nullptr) != ODT_OK)
      return host.failed();
    out.loss += record.loss;
  }
  out.hash.resize(32);
  odt_weights_hash(host.trainer.get(), false, out.hash.data());
  return out;
}

std::string declarations(const Network& net, bool with_data, std::uint64_t loss) {
  std::string out = absl::StrCat(
      "/* What the files beside this one give, computed by the trainer of the host. Written by "
      "odtc. "
      "*/\n#ifndef TEST_VECTOR_H\n#define TEST_VECTOR_H\n\n#include \"integer_model_config.h\"\n\n"
      "#define N_TEST_VECTORS ",
      kVectors,
      "\n\n/* Input, output of tvmgen_default_run(), and logits before any training. */\n",
      "extern const float TEST_VECTOR_INPUTS[N_TEST_VECTORS][INPUT_SIZE];\nextern const ",
      c_type(cut_storage(net)),
      " TEST_VECTOR_FROZEN[N_TEST_VECTORS][FROZEN_OUTPUT_SIZE];\n"
      "extern const int8_t TEST_VECTOR_LOGITS[N_TEST_VECTORS][N_CLASSES];\n");
  if (with_data)
    absl::StrAppend(
        &out, "\n/* After one pass over TRAIN_INPUTS in their order, batches of ", kCBatch,
        ", mu as the defaults, loss\n * (logit - target)^2 summed: odt_ti_weights_hash() and the "
        "loss. */\n#define TEST_VECTOR_BATCH_SIZE ",
        kCBatch, "\n#define TEST_VECTOR_TRAINED_LOSS ", loss,
        "u\nextern const uint8_t TEST_VECTOR_TRAINED_HASH[32];\n");
  return out + "\n#endif\n";
}

}  // namespace

Result<std::vector<CFile>> write_c_vectors(const Compiled& compiled, const CData* data) {
  const Network& net = compiled.network;
  data::InputStage in;
  ODT_ASSIGN(in, data::parse_input_stage(compiled.manifest));
  std::vector<float> inputs = made_up(in);
  if (data != nullptr)
    std::copy_n(data->train.inputs.begin(), std::min(data->train.inputs.size(), inputs.size()),
                inputs.begin());
  Host host(compiled.image);
  ODT_TRY(host.start(1));
  const auto x = quantised(in, inputs);
  std::vector<std::int8_t> logits(std::size_t{kVectors} * net.n_classes());
  for (std::uint32_t s = 0; s < kVectors; ++s)
    if (odt_trainer_infer(host.trainer.get(), x.data() + std::size_t{s} * in.count(),
                          logits.data() + std::size_t{s} * net.n_classes()) != ODT_OK)
      return host.failed();
  std::vector<std::int16_t> cut;
  ODT_ASSIGN(cut, frozen(host, x, net));
  std::string c = "/* Written by odtc. */\n#include \"test_vector.h\"\n\n";
  absl::StrAppend(
      &c, c_rows("const float TEST_VECTOR_INPUTS[N_TEST_VECTORS][INPUT_SIZE]", inputs, in.count()),
      c_rows(absl::StrCat("const ", c_type(cut_storage(net)),
                          " TEST_VECTOR_FROZEN[N_TEST_VECTORS][FROZEN_OUTPUT_SIZE]"),
             cut, cut_count(net)),
      c_rows("const int8_t TEST_VECTOR_LOGITS[N_TEST_VECTORS][N_CLASSES]", logits,
             net.n_classes()));
  Trained end;
  if (data != nullptr) {
    ODT_ASSIGN(end, trained(host, in, data->train));
    c += c_array("const uint8_t TEST_VECTOR_TRAINED_HASH", end.hash);
  }
  return std::vector<CFile>{{"test_vector.h", declarations(net, data != nullptr, end.loss)},
                            {"test_vector.c", c}};
}

}  // namespace odt::compiler
