// test_vector.h and .c: what the compiled files must give, computed by the trainer itself.
#include <algorithm>

#include "compiler/c_text.h"
#include "compiler/vectors.h"
#include "odt/ti.h"

namespace odt::compiler {
namespace {

constexpr std::uint32_t kVectors = 4;

// The library itself on the frozen part, where the model has no cut in its sense: layers without
// weights went to the trained part.
std::vector<std::uint8_t> run_frozen(const GoldenTrainer& host, const CModel& model,
                                     const std::vector<std::uint8_t>& sample,
                                     std::size_t out_bytes) {
  const odt_model_t& m = host.model;
  std::vector<std::vector<std::uint32_t>> memory;
  std::vector<void*> values;
  for (std::size_t t = 0; t < m.n_tensors; ++t)
    memory.emplace_back(std::size_t{m.tensors[t].count} / 2 + 1);
  for (auto& v : memory) values.push_back(v.data());
  const odt_ti_frozen_t f = {m.ops,   m.tensors, static_cast<std::uint16_t>(model.first),
                             m.input, model.cut, values.data()};
  std::vector<std::uint16_t> out(out_bytes / 2 + 1);
  odt_ti_frozen_run(&f, sample.data(), out.data());
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(out.data());
  return {bytes, bytes + out_bytes};
}

// Values of the cut tensor.
Result<std::vector<std::int16_t>> frozen(GoldenTrainer& host, const data::InputStage& in,
                                         const std::vector<std::int16_t>& x, const CModel& model) {
  if (model.cut == 0) return x;
  const odt_model_t& m = host.model;
  const Storage storage = model.cut_storage();
  const std::size_t n = model.cut_count(), bytes = n * (storage == Storage::kS16 ? 2 : 1);
  const bool same = m.cut != ODT_NO_TENSOR && root_of(*model.net, m.cut) == model.cut;
  std::vector<std::int16_t> out;
  for (auto at = x.begin(); at != x.end(); at += in.count()) {
    const auto sample = sample_bytes(in, {at, at + in.count()});
    std::vector<std::uint16_t> words(n);
    auto* y = reinterpret_cast<std::uint8_t*>(words.data());
    if (!same) {
      const auto own = run_frozen(host, model, sample, bytes);
      std::copy(own.begin(), own.end(), y);
    } else if (odt_trainer_freeze(host.trainer.get(), sample.data(), y) != ODT_OK) {
      return host.failed();
    }
    for (std::size_t i = 0; i < n; ++i)
      out.push_back(storage == Storage::kS16  ? static_cast<std::int16_t>(words[i])
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
Result<Trained> trained(GoldenTrainer& host, const data::InputStage& in, const CSamples& samples) {
  ODT_TRY(host.start(samples.n, kCBatch));
  const auto x = sample_bytes(in, quantised(in, samples.inputs));
  const std::uint32_t len = in.count();
  const bool targets = !samples.targets.empty();
  std::vector<std::uint8_t> memory;  // a batch with targets, as it lies in ODTS
  Trained out;
  for (std::uint32_t at = 0; at < samples.n; at += kCBatch) {
    odt_samples_t batch{};
    batch.dtype = in.dtype == data::Dtype::kU8 ? ODT_U8 : ODT_S8;
    batch.count = std::min(kCBatch, samples.n - at);
    batch.sample_len = len;
    batch.label_len = targets ? static_cast<std::uint32_t>(samples.targets.size() / samples.n) : 1;
    batch.labels = targets ? samples.targets.data() + std::size_t{at} * batch.label_len
                           : samples.labels.data() + at;
    batch.data = x.data() + std::size_t{at} * len;
    if (targets) {
      const std::size_t n = std::size_t{batch.count} * batch.label_len;
      memory.assign(batch.labels, batch.labels + n);
      memory.resize((n + 3) / 4 * 4);
      memory.insert(memory.end(), batch.data, batch.data + std::size_t{batch.count} * len);
      batch.flags = ODT_SAMPLES_TARGETS;
      batch.labels = reinterpret_cast<const std::int8_t*>(memory.data());
      batch.data = memory.data() + (n + 3) / 4 * 4;
    }
    odt_step_record_t record{};
    if (!host.step(batch, record)) return host.failed();
    out.loss += record.loss;
  }
  out.hash.resize(32);
  odt_weights_hash(host.trainer.get(), false, out.hash.data());
  return out;
}

std::string declarations(const CModel& model, bool with_data, std::uint64_t loss) {
  std::string out = absl::StrCat(
      "/* What the files beside this one give, computed by the trainer of the host. Written by "
      "odtc. "
      "*/\n#ifndef TEST_VECTOR_H\n#define TEST_VECTOR_H\n\n#include \"integer_model_config.h\"\n\n"
      "#define N_TEST_VECTORS ",
      kVectors,
      "\n\n/* Input, output of tvmgen_default_run(), and logits before any training. */\n",
      "extern const float TEST_VECTOR_INPUTS[N_TEST_VECTORS][INPUT_SIZE];\nextern const ",
      c_type(model.cut_storage()),
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

Result<std::vector<CFile>> write_c_vectors(const Compiled& compiled, const CModel& model,
                                           const CData* data) {
  const Network& net = compiled.network;
  data::InputStage in;
  ODT_ASSIGN(in, data::parse_input_stage(compiled.manifest));
  std::vector<float> inputs = spread_inputs(in, kVectors);
  if (data != nullptr)
    std::copy_n(data->train.inputs.begin(), std::min(data->train.inputs.size(), inputs.size()),
                inputs.begin());
  GoldenTrainer host(compiled.image);
  ODT_TRY(host.start(1, kCBatch));
  const auto x = quantised(in, inputs);
  Logits logits;
  ODT_ASSIGN(logits, golden_logits(host, in, x, kVectors));
  std::vector<std::int16_t> cut;
  ODT_ASSIGN(cut, frozen(host, in, x, model));
  std::string c = "/* Written by odtc. */\n#include \"test_vector.h\"\n\n";
  absl::StrAppend(
      &c, c_rows("const float TEST_VECTOR_INPUTS[N_TEST_VECTORS][INPUT_SIZE]", inputs, in.count()),
      c_rows(absl::StrCat("const ", c_type(model.cut_storage()),
                          " TEST_VECTOR_FROZEN[N_TEST_VECTORS][FROZEN_OUTPUT_SIZE]"),
             cut, model.cut_count()),
      c_rows("const int8_t TEST_VECTOR_LOGITS[N_TEST_VECTORS][N_CLASSES]", logits.values,
             net.n_classes()));
  Trained end;
  if (data != nullptr) {
    ODT_ASSIGN(end, trained(host, in, data->train));
    c += c_array("const uint8_t TEST_VECTOR_TRAINED_HASH", end.hash);
  }
  return std::vector<CFile>{{"test_vector.h", declarations(model, data != nullptr, end.loss)},
                            {"test_vector.c", c}};
}

}  // namespace odt::compiler
