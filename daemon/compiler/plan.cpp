#include "compiler/plan.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <vector>

#include "odt/odt.h"

namespace odt::compiler {

namespace {

Status failed(const std::string& file, const odt_error_t& e) {
  const std::string text =
      absl::StrCat(file, ": model image: ", e.what != nullptr ? e.what : "malformed",
                   e.index >= 0 ? absl::StrCat(" (number ", e.index, ")") : std::string(), ": got ",
                   e.got, "; expected ", e.limit_lo, "..", e.limit_hi);
  return Status(static_cast<absl::StatusCode>(e.status), text);
}

struct Opened {
  std::vector<std::uint32_t> words;  // 4-byte aligned copy: the model is read in place
  odt_model_t model{};
};

Status open_model(const std::string& image, const std::string& file, Opened& out) {
  out.words.resize((image.size() + 3) / 4);
  std::copy(image.begin(), image.end(), reinterpret_cast<char*>(out.words.data()));
  odt_error_t error{};
  if (odt_model_open(&out.model, out.words.data(), static_cast<std::uint32_t>(image.size()),
                     &error) != ODT_OK)
    return failed(file, error);
  return absl::OkStatus();
}

}  // namespace

Result<MemoryPlan> plan_memory(const std::string& image, const std::string& file, std::uint8_t k,
                               std::uint16_t batch) {
  Opened opened;
  ODT_TRY(open_model(image, file, opened));
  const odt_model_t& model = opened.model;
  odt_error_t error{};
  odt_run_spec_t spec{};
  const bool dfp16 = model.arith == ODT_ARITH_DFP16;  // has no k
  spec.rule_set = dfp16 ? ODT_RULE_DFP16 : ODT_RULE_NITI;
  spec.loss = dfp16 && model.task == ODT_TASK_CLASSIFY ? ODT_LOSS_CE : ODT_LOSS_MSE;
  spec.shift_source = ODT_SHIFT_EXACT;
  spec.k = dfp16 ? 0 : k;
  for (auto& m : spec.lr_m) m = dfp16 ? 1 : 0;
  spec.batch = batch;
  spec.epochs = 1;
  spec.train_samples = batch;
  spec.heldout_samples = 1;
  spec.guard = true;
  std::fill(std::begin(spec.class_weights), std::end(spec.class_weights), 64);
  if (odt_run_spec_check(&spec, &model, &error) != ODT_OK) return failed(file, error);
  odt_memory_plan_t plan{};
  odt_trainer_plan(&model, &spec, false, &plan);
  return MemoryPlan{plan.weights_bytes, plan.best_bytes, plan.activation_bytes, plan.gradient_bytes,
                    plan.total_bytes};
}

Result<model::RamPlan> plan_table(const std::string& image, const std::string& file) {
  model::RamPlan table;
  MemoryPlan plan;
  const std::pair<std::uint16_t, std::uint32_t*> batches[] = {
      {1, &table.work_1}, {2, &table.work_2}, {4, &table.work_4}, {8, &table.work_8}};
  for (const auto& [batch, work] : batches) {
    ODT_ASSIGN(plan, plan_memory(image, file, 8, batch));
    *work = plan.activation_bytes + plan.gradient_bytes;
  }
  table.weights_k8 = plan.weights_bytes;
  // Buffers of one sample find room between those of large batches, or not: the steepest counts.
  for (std::uint16_t eights : {2, 4, 8, 16, 32}) {
    ODT_ASSIGN(plan, plan_memory(image, file, 8, static_cast<std::uint16_t>(8 * eights)));
    const std::uint32_t work = plan.activation_bytes + plan.gradient_bytes;
    const std::uint32_t more = work > table.work_8 ? work - table.work_8 : 0;
    table.work_per_8 = std::max(table.work_per_8, (more + eights - 2u) / (eights - 1u));
  }
  ODT_ASSIGN(plan, plan_memory(image, file, 15));
  table.weights_k16 = plan.weights_bytes;
  return table;
}

Result<ImageParts> parts_of(const std::string& image, const std::string& file) {
  Opened opened;
  ODT_TRY(open_model(image, file, opened));
  const odt_model_t& model = opened.model;
  ImageParts parts;
  parts.ops = model.n_ops;
  parts.layers = model.n_layers;
  if (model.task == ODT_TASK_CLASSIFY) parts.classes = model.n_classes;
  parts.dfp16 = model.arith == ODT_ARITH_DFP16;
  for (std::size_t i = 0; i < model.n_ops; ++i) {
    const int kind = model.ops[i].kind;
    parts.conv = parts.conv || kind == ODT_OP_CONV2D;
    parts.graphs = parts.graphs || (kind >= ODT_OP_MAXPOOL && kind <= ODT_OP_RESIZE);
  }
  return parts;
}

}  // namespace odt::compiler
