#include "training/ram_fit.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "data/batcher.h"

namespace odt::training {
namespace {

// Capability bits (proto/README.md, Session).
constexpr std::uint32_t kCapResident = 1u << 2, kCapStreamed = 1u << 3;

std::uint64_t product(const std::vector<std::uint32_t>& shape) {
  std::uint64_t n = 1;
  for (const auto d : shape) n *= d;
  return shape.empty() ? 0 : n;
}

// What one more sample in a batch costs: kept activations with their masks, and two deltas.
std::uint64_t bytes_per_sample(const model::Model& model) {
  std::uint64_t kept = sample_len(model), widest = 0;
  for (const auto& layer : model.layers) {
    if (!layer.trainable) continue;
    const std::uint64_t n = product(layer.output_shape);
    kept += n + n / 8;
    widest = std::max(widest, n);
  }
  return kept + 2 * widest;
}

std::string describe(const Placement& p) {
  return absl::StrCat("k ", p.k, ", batch ", p.batch, p.streamed ? ", streamed" : ", resident");
}

std::vector<std::uint32_t> batches_from(std::uint32_t wanted, bool pinned) {
  std::vector<std::uint32_t> out = {wanted};
  while (!pinned && out.back() > 1) out.push_back(out.back() / 2);
  return out;
}

std::vector<Placement> all_placements(const model::HyperParams& asked, std::uint32_t batch) {
  std::vector<std::uint32_t> ks = {15, 8};
  if (asked.k)
    ks = {*asked.k};
  else if (asked.rule_set == model::RuleSet::kNitiLiteral)
    ks = {8};
  std::vector<Placement> out;
  for (const auto k : ks)
    for (const auto b : batches_from(batch, asked.batch.has_value())) {
      if (b < 8 && b != batch && k != ks.back()) continue;  // rather k 8 than batches below 8
      for (const bool streamed : {false, true})
        if (!asked.streamed || *asked.streamed == streamed) out.push_back({k, b, streamed});
    }
  return out;
}

}  // namespace

std::uint32_t sample_len(const model::Model& model) {
  return static_cast<std::uint32_t>(product(model.input_shape));
}

RamNeed ram_need(const model::Model& model, const SampleCounts& counts, const Placement& place) {
  RamNeed need;
  need.image = model.image_bytes;
  std::int64_t trainer = place.k <= 8 ? model.ram_k8_bytes : model.ram_k16_bytes;
  trainer += (static_cast<std::int64_t>(place.batch) - 8) *
             static_cast<std::int64_t>(bytes_per_sample(model));
  need.trainer = static_cast<std::uint64_t>(std::max<std::int64_t>(trainer, 0));
  const std::uint64_t len = sample_len(model);
  if (place.streamed) {
    need.samples = 2 * data::samples_bytes(place.batch, len);
  } else {
    need.trainer += 2ull * counts.train;  // the order
    need.samples = data::samples_bytes(counts.train, len);
    if (counts.heldout != 0) need.samples += data::samples_bytes(counts.heldout, len);
  }
  return need;
}

Result<std::vector<Placement>> placements(const model::Model& model, const model::Board& board,
                                          const SampleCounts& counts,
                                          const model::HyperParams& asked, std::uint32_t batch) {
  if (board.max_batch != 0 && !asked.batch) batch = std::min(batch, board.max_batch);
  auto all = all_placements(asked, batch);
  if (board.caps != 0) {
    const auto can = [&board](const Placement& p) {
      return (board.caps & (p.streamed ? kCapStreamed : kCapResident)) != 0;
    };
    std::erase_if(all, [&can](const Placement& p) { return !can(p); });
    if (all.empty())
      return with_reason(
          absl::FailedPreconditionError(absl::StrCat(
              "board ", board.name, " cannot train with ",
              asked.streamed.value_or(false) ? "streamed batches" : "resident samples")),
          "NO_CAPABILITY", "Leave streamed out, or use firmware that can.");
  }
  const bool known =
      board.ram_bytes != 0 && (all.front().k <= 8 ? model.ram_k8_bytes : model.ram_k16_bytes) != 0;
  if (!known) return all;
  std::vector<Placement> fit;
  for (const auto& p : all)
    if (ram_need(model, counts, p).total() <= board.ram_bytes) fit.push_back(p);
  if (!fit.empty()) return fit;

  const RamNeed need = ram_need(model, counts, all.front());
  std::string remedy = "Use a smaller model, fewer trainable layers or a board with more RAM.";
  const model::HyperParams free_choice;
  for (const auto& p : all_placements(free_choice, batch))
    if (ram_need(model, counts, p).total() <= board.ram_bytes) {
      remedy = absl::StrCat("These settings would fit: ", describe(p), ".");
      break;
    }
  return with_reason(
      absl::ResourceExhaustedError(absl::StrCat(
          "model '", model.name, "' with ", describe(all.front()), " needs ", need.total(),
          " bytes (image ", need.image, ", trainer ", need.trainer, ", samples ", need.samples,
          "); board ", board.name, " has ", board.ram_bytes, ". ", remedy)),
      "BOARD_RAM", remedy);
}

}  // namespace odt::training
