// ONNX files are hostile bytes: reader, matcher, image and manifest writers. What compiles must
// also run on the host library, and be read again by the manifest's reader.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "data/quantize.h"
#include "odt/trainer.h"

namespace {

constexpr std::uint32_t kArenaLimit = 1 << 22, kValuesLimit = 1 << 14, kWeightsLimit = 1 << 16;

void require(bool good) {
  if (!good) std::abort();
}

// Large models are valid, but a slow way to find nothing more.
bool is_small(const odt_model_t& m) {
  std::uint64_t work = 0;
  for (std::uint16_t i = 0; i < m.n_ops; i++) {
    const odt_op_t& op = m.ops[i];
    work += std::uint64_t{op.n_weights} + m.tensors[op.out].count;
    if (m.tensors[op.out].count > kValuesLimit || op.n_weights > kWeightsLimit) return false;
  }
  return work < 4 * kWeightsLimit;
}

void run(const odt::compiler::Compiled& compiled) {
  std::vector<std::uint32_t> words((compiled.image.size() + 3) / 4);
  std::copy(compiled.image.begin(), compiled.image.end(), reinterpret_cast<char*>(words.data()));
  auto model = std::make_unique<odt_model_t>();
  require(odt_model_open(model.get(), words.data(),
                         static_cast<std::uint32_t>(compiled.image.size()), nullptr) == ODT_OK);
  if (!is_small(*model)) return;
  odt_run_spec_t spec{};
  const bool dfp16 = model->arith == ODT_ARITH_DFP16;
  spec.rule_set = dfp16 ? ODT_RULE_DFP16 : ODT_RULE_NITI;
  spec.loss = dfp16 && model->task == ODT_TASK_CLASSIFY ? ODT_LOSS_CE : ODT_LOSS_MSE;
  spec.shift_source = ODT_SHIFT_EXACT;
  spec.k = dfp16 ? 0 : 8;
  std::fill(std::begin(spec.lr_m), std::end(spec.lr_m), static_cast<std::uint16_t>(dfp16));
  spec.batch = spec.epochs = 1;
  spec.train_samples = 1;
  std::fill(std::begin(spec.class_weights), std::end(spec.class_weights), std::uint8_t{64});
  odt_memory_plan_t plan{};
  odt_trainer_plan(model.get(), &spec, true, &plan);
  if (plan.total_bytes > kArenaLimit) return;
  std::vector<std::uint64_t> arena(plan.total_bytes / 8 + 1);
  auto trainer = std::make_unique<odt_trainer_t>();
  require(odt_trainer_init(trainer.get(), model.get(), &spec, true, arena.data(), plan.total_bytes,
                           nullptr) == ODT_OK);
  std::vector<std::uint8_t> sample(model->tensors[model->input].count * std::size_t{2}, 0x5A);
  std::vector<std::int8_t> logits(model->n_classes);
  require(odt_trainer_infer(trainer.get(), sample.data(), logits.data()) == ODT_OK);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The first byte chooses the trainable layers.
  if (size == 0) return 0;
  odt::compiler::CompileOptions options;
  options.trainable_layers = data[0] % 4;
  const std::string onnx(reinterpret_cast<const char*>(data + 1), size - 1);
  auto compiled = odt::compiler::compile(onnx, "fuzz.onnx", options);
  if (!compiled.ok()) {
    const std::string text(compiled.status().message());
    require(!text.empty() && text.find('\n') == std::string::npos);
    return 0;
  }
  require(odt::data::parse_input_stage(compiled->manifest).ok());
  require(!odt::compiler::inspect_manifest(compiled->manifest).empty());
  require(odt::compiler::inspect_image(compiled->image, "fuzz.odtm").ok());
  run(*compiled);
  return 0;
}
