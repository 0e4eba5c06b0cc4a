// Model images, samples and training states are hostile bytes. What odt_model_open accepts must
// also train: the kernels check nothing.
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "image_builder.h"
#include "odt/odt.h"
#include "odt/trainer.h"

namespace {

constexpr uint32_t kArenaLimit = 1 << 20;

odt_run_spec_t settings(const odt_model_t& m, uint8_t choice) {
  odt_run_spec_t s{};
  s.rule_set = ODT_RULE_NITI;
  bool classes = m.task == ODT_TASK_CLASSIFY;
  s.loss = classes && m.ce_scale ? ODT_LOSS_CE : ODT_LOSS_MSE;
  if (m.arith == ODT_ARITH_DFP16) {
    s.rule_set = ODT_RULE_DFP16;
    s.loss = classes ? ODT_LOSS_CE : ODT_LOSS_MSE;
    for (uint16_t& rate : s.lr_m) rate = 3;
    s.lr_s = 12;
    s.blocked = (choice & 4) != 0;
  }
  bool stale = (choice & 1) && m.arith == ODT_ARITH_INT8;
  s.shift_source = stale ? ODT_SHIFT_STALE : ODT_SHIFT_EXACT;
  s.k = choice & 2 ? 15 : 8;
  s.batch = 2;
  s.epochs = 1;
  s.train_samples = 2;
  for (uint8_t& w : s.class_weights) w = 64;
  return s;
}

void train(odt_model_t& m, const uint8_t* tail, uint32_t n) {
  odt_run_spec_t spec = settings(m, n > 0 ? tail[0] : 0);
  if (odt_run_spec_check(&spec, &m, nullptr)) return;
  odt_memory_plan_t plan;
  odt_trainer_plan(&m, &spec, true, &plan);
  if (plan.total_bytes > kArenaLimit) return;
  std::vector<uint64_t> arena(plan.total_bytes / 8 + 1);
  auto t = std::make_unique<odt_trainer_t>();
  if (odt_trainer_init(t.get(), &m, &spec, true, arena.data(), plan.total_bytes, nullptr)) return;
  uint32_t len = m.tensors[m.input].count;
  auto dtype = static_cast<odt::testing::DType>(m.tensors[m.input].dtype);
  bool targets = m.task == ODT_TASK_REGRESS;
  std::vector<int8_t> labels(targets ? size_t{2} * m.n_classes : 2, 0);
  labels[1] = 1;
  size_t bytes = size_t{2} * len * (m.tensors[m.input].dtype == ODT_S16 ? 2 : 1);
  std::vector<uint8_t> blob = odt::testing::build_samples(dtype, len, 2, targets ? 1 : 0, labels,
                                                          std::vector<uint8_t>(bytes, 0x9C));
  odt_samples_t samples;
  if (odt_samples_open(&samples, blob.data(), static_cast<uint32_t>(blob.size()), nullptr)) return;
  odt_step_record_t step;
  odt_epoch_record_t epoch;
  if (odt_trainer_step_resident(t.get(), &samples, &step, nullptr)) return;
  odt_trainer_end_epoch(t.get(), 0, 0, &epoch, nullptr);
  // The input's own tail as a state, over a good one.
  std::vector<uint8_t> state(odt_state_size(t.get()));
  odt_state_read(t.get(), 0, state.data(), static_cast<uint32_t>(state.size()));
  for (uint32_t i = 0; i + 2 < n && i < 64; i += 3) {
    state[(tail[i] * 256u + tail[i + 1]) % state.size()] = tail[i + 2];
  }
  if (odt_state_write(t.get(), 0, state.data(), static_cast<uint32_t>(state.size()), nullptr)) {
    return;
  }
  if (odt_state_write_end(t.get(), nullptr)) return;
  odt_trainer_step_resident(t.get(), &samples, &step, nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto n = static_cast<uint32_t>(size);
  odt_samples_t samples;
  odt_samples_open(&samples, data, n, nullptr);
  // The image is as long as it says, so that a tail is left over.
  uint32_t image_bytes = n;
  if (n >= 12) std::memcpy(&image_bytes, data + 8, 4);
  if (image_bytes > n) image_bytes = n;
  std::vector<uint8_t> image(data, data + image_bytes);
  auto model = std::make_unique<odt_model_t>();
  if (odt_model_open(model.get(), image.data(), image_bytes, nullptr)) return 0;
  train(*model, data + image_bytes, n - image_bytes);
  return 0;
}
