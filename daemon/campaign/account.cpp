#include "campaign/account.h"

#include <algorithm>

#include "campaign/epochs.h"

namespace odt::campaign {

Accounting account(const model::Run& run, const model::Model& model,
                   const std::vector<model::EpochResult>& epochs) {
  std::vector<const model::LayerInfo*> trained;
  for (const auto& layer : model.layers)
    if (layer.trainable) trained.push_back(&layer);
  Accounting out;
  for (const auto& [number, e] : newest_epochs(epochs)) {
    AccountedEpoch& a = out.epochs.emplace_back();
    a.epoch = e->epoch;
    a.attempt = e->attempt;
    a.heldout = e->heldout;
    std::uint64_t macs = 0;
    for (std::size_t n = 0; n < std::min(trained.size(), e->layers.size()); ++n) {
      const model::LayerEpoch& layer = e->layers[n];
      const std::uint64_t work = trained[n]->macs * run.train_samples;
      macs += work;
      a.energy += work * layer.k;
      a.memory_bits += std::uint64_t{trained[n]->weights} * layer.k;
      a.memory_fp32_bits += std::uint64_t{trained[n]->weights} * 32;
      a.resident_bytes += layer.resident_bytes;
      a.layer_k.push_back(layer.k);
      a.layer_gavg_q8.push_back(layer.gavg_q8);
      a.layer_u_q8.push_back(layer.u_q8);
    }
    a.energy_fp32 = macs * 32;
    a.energy_fixed16 = macs * 16;
    a.energy_fixed8 = macs * 8;
    out.energy += a.energy;
    out.energy_fp32 += a.energy_fp32;
    out.energy_fixed16 += a.energy_fixed16;
    out.energy_fixed8 += a.energy_fixed8;
    out.peak_memory_bits = std::max(out.peak_memory_bits, a.memory_bits);
    out.memory_fp32_bits = std::max(out.memory_fp32_bits, a.memory_fp32_bits);
  }
  return out;
}

}  // namespace odt::campaign
