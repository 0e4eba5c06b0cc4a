#include "training/ram_fit.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "data/batcher.h"

namespace odt::training {
namespace {

using data::align8;

// Capability bits (proto/README.md, Session).
constexpr std::uint32_t kCapResident = 1u << 2, kCapStreamed = 1u << 3;

std::uint64_t product(const std::vector<std::uint32_t>& shape) {
  std::uint64_t n = 1;
  for (const auto d : shape) n *= d;
  return shape.empty() ? 0 : n;
}

bool known(const model::RamPlan& ram) { return ram.work_8 != 0 && ram.weights_k8 != 0; }

std::uint64_t image_bytes(const model::Model& model, Form form) {
  return form == Form::kTail ? model.tail.image_bytes : model.image_bytes;
}

// What one more sample in a batch costs: kept activations with their masks, and two deltas.
std::uint64_t bytes_per_sample(const model::Model& model) {
  std::uint64_t kept = sample_bytes(model), widest = 0;
  for (const auto& layer : model.layers) {
    if (!layer.trainable) continue;
    const std::uint64_t n = product(layer.output_shape);
    kept += n + n / 8;
    widest = std::max(widest, n);
  }
  return kept + 2 * widest;
}

std::uint64_t weights_bytes(const model::Model& model, std::uint32_t k) {
  return k <= 8 ? model.ram.weights_k8 : model.ram.weights_k16;
}

std::uint64_t trainer_bytes(const model::Model& model, const Placement& place, bool guard) {
  if (known(model.ram))
    return weights_bytes(model, place.stored_k()) * (guard && !place.best_on_host ? 2 : 1) +
           (place.form == Form::kTail ? model.tail.ram : model.ram).work_bytes(place.batch);
  // Figures at batch 8 only, of a model compiled by an older version.
  std::int64_t trainer = place.stored_k() <= 8 ? model.ram_k8_bytes : model.ram_k16_bytes;
  trainer += (static_cast<std::int64_t>(place.batch) - 8) *
             static_cast<std::int64_t>(bytes_per_sample(model));
  return static_cast<std::uint64_t>(std::max<std::int64_t>(trainer, 0));
}

// A file of weights (ODTW): its values are laid out no tighter in the trainer.
std::uint64_t snapshot_bytes(const model::Model& model, std::uint32_t k) {
  return align8(44 + 20ull * model.trainable_layers + weights_bytes(model, k));
}

std::string describe(const Placement& p) {
  return absl::StrCat("k ", p.k, p.k_max != 0 ? absl::StrCat(" up to ", p.k_max) : "", ", batch ",
                      p.batch, p.streamed ? ", streamed" : ", resident",
                      p.best_on_host ? ", best weights on the host" : "",
                      p.form == Form::kTail     ? ", the trainable part on frozen outputs"
                      : p.form == Form::kFrozen ? ", frozen outputs"
                                                : "");
}

std::vector<std::uint32_t> batches_from(std::uint32_t wanted, bool pinned) {
  std::vector<std::uint32_t> out = {wanted};
  while (!pinned && out.back() > 1) out.push_back(out.back() / 2);
  return out;
}

struct Bits {
  std::uint32_t k, k_max;
};

std::uint32_t highest(const std::vector<std::uint32_t>& ks) {
  return ks.empty() ? 0 : *std::max_element(ks.begin(), ks.end());
}

// Precisions to try, best first.
std::vector<Bits> all_bits(const model::HyperParams& asked) {
  if (asked.rule_set == model::RuleSet::kDfp16) return {{16, 0}};
  if (asked.rule_set == model::RuleSet::kNitiLiteral) return {{asked.k.value_or(8), 0}};
  const bool apt = asked.apt != model::AptMode::kUnspecified;
  if (!apt && !asked.apt_k_max) {
    if (asked.k) return {{*asked.k, 0}};
    return {{15, 0}, {8, 0}};
  }
  // Rule 1.12 starts at 6 and takes what memory there is.
  const std::uint32_t limit = asked.apt_k_max.value_or(16);
  const std::uint32_t k = asked.k.value_or(std::min(apt ? 6u : 8u, limit));
  std::vector<Bits> out = {{k, limit}};
  if (!asked.apt_k_max && std::max(k, highest(asked.layer_k)) <= 8) out.push_back({k, 8});
  return out;
}

// One model image, best first: resident before streamed, samples before frozen outputs.
std::vector<Placement> one_copy_or_two(const model::HyperParams& asked, std::uint32_t batch,
                                       bool tail, bool has_frozen) {
  std::vector<Form> forms = {Form::kTail};
  if (!tail) forms = {Form::kRaw, Form::kFrozen};
  std::erase_if(forms, [&](Form form) {
    const bool frozen = form != Form::kRaw;
    return (frozen && !has_frozen) || asked.frozen.value_or(frozen) != frozen;
  });
  const auto bits = all_bits(asked);
  const std::uint32_t top = highest(asked.layer_k);
  std::vector<Placement> out;
  for (const auto& [k, k_max] : bits)
    for (const auto b : batches_from(batch, asked.batch.has_value())) {
      const bool last = k == bits.back().k && k_max == bits.back().k_max;
      if (b < 8 && b != batch && !last) continue;  // rather k 8 than batches below 8
      for (const bool streamed : {false, true})
        for (const Form form : forms)
          if (!asked.streamed || *asked.streamed == streamed)
            out.push_back({k, b, streamed, k_max, top, false, form});
    }
  return out;
}

// Rather the best on the host than the trainable part alone, and rather that than batches below 8.
std::vector<Placement> all_placements(const model::HyperParams& asked, std::uint32_t batch,
                                      bool guard, bool has_frozen) {
  std::vector<Placement> out;
  for (const bool small : {false, true})
    for (const bool tail : {false, true})
      for (const bool host : {false, true}) {
        if (host && !guard) continue;
        if (guard && asked.best_on_host.value_or(host) != host) continue;
        for (Placement p : one_copy_or_two(asked, batch, tail, has_frozen)) {
          p.best_on_host = host;
          if ((p.batch < 8 && p.batch != batch) == small) out.push_back(p);
        }
      }
  return out;
}

Status no_capability(const model::Board& board, const model::HyperParams& asked, bool guard) {
  const bool host =
      asked.best_on_host.value_or(false) && guard && (board.caps & kCapBestOnHost) == 0;
  const char* what = host                             ? "the best weights on the host"
                     : asked.streamed.value_or(false) ? "streamed batches"
                                                      : "resident samples";
  return with_reason(absl::FailedPreconditionError(
                         absl::StrCat("board ", board.name, " cannot train with ", what)),
                     "NO_CAPABILITY",
                     host ? "Leave best_on_host out, or use firmware that can."
                          : "Leave streamed out, or use firmware that can.");
}

}  // namespace

Placement asked_placement(const model::HyperParams& asked) {
  const Bits bits = all_bits(asked).front();
  Placement place;
  place.k = bits.k;
  place.k_max = bits.k_max;
  place.top = highest(asked.layer_k);
  return place;
}

std::uint32_t sample_bytes(const model::Model& model, Form form) {
  if (form != Form::kRaw) return model.tail.sample_bytes;
  return static_cast<std::uint32_t>(product(model.input_shape)) *
         std::max(model.input_value_bytes, 1u);
}

RamNeed ram_need(const model::Model& model, const SampleCounts& counts, const Placement& place) {
  RamNeed need;
  need.image = align8(image_bytes(model, place.form));
  const bool guard = counts.guard && counts.heldout != 0;
  const std::uint64_t len = sample_bytes(model, place.form);
  const bool measured = counts.evaluate || counts.heldout != 0;
  const bool classes = model.outputs.has_classes();
  const std::uint64_t confusion = classes ? align8(4ull * model.n_classes * model.n_classes) : 0;
  const std::uint64_t label = std::max(target_count(model.outputs, place.form != Form::kRaw), 1u);
  const auto bytes_of = [&](std::uint64_t n) { return align8(data::samples_bytes(n, len, label)); };
  const std::uint64_t one_sample = confusion + bytes_of(1);
  need.trainer = trainer_bytes(model, place, guard);
  if (place.streamed) {
    need.samples = bytes_of(place.batch) + (measured ? confusion : 0);
  } else {
    need.trainer += align8(2ull * counts.train);  // the order
    const std::uint64_t source = place.form == Form::kRaw ? 0 : data::kSourceBytes;
    need.samples = align8(bytes_of(counts.train) + source);
    if (counts.heldout != 0) need.samples += align8(bytes_of(counts.heldout) + source);
    if (counts.evaluate) need.samples += one_sample;
    // Streamed runs get their weights after the start where there is no room for two copies.
    if (counts.start_snapshot) need.trainer += snapshot_bytes(model, place.stored_k());
  }
  // Before training, samples are evaluated with the image's weights, or the snapshot's.
  Placement alone{counts.start_snapshot ? place.stored_k() : 8, 1, true};
  alone.form = place.form;
  const std::uint64_t first = trainer_bytes(model, alone, false);
  if (measured && need.trainer + need.samples < first + one_sample) {
    need.trainer = first;
    need.samples = one_sample;
  }
  return need;
}

Result<std::vector<Placement>> placements(const model::Model& model, const model::Board& board,
                                          const SampleCounts& counts,
                                          const model::HyperParams& asked, std::uint32_t batch) {
  if (board.max_batch != 0 && !asked.batch) batch = std::min(batch, board.max_batch);
  const bool guard = counts.guard && counts.heldout != 0;
  const bool has_frozen = !model.tail.image.is_zero() && known(model.ram);
  auto all = all_placements(asked, batch, guard, has_frozen);
  const auto can = [&board](const Placement& p) {
    if (p.best_on_host && (board.caps & kCapBestOnHost) == 0) return false;
    if (p.form != Form::kRaw && (board.caps & kCapFrozen) == 0) return false;
    return board.caps == 0 || (board.caps & (p.streamed ? kCapStreamed : kCapResident)) != 0;
  };
  std::erase_if(all, [&can](const Placement& p) { return !can(p); });
  if (all.empty()) return no_capability(board, asked, guard);
  const bool planned = known(model.ram) || (all.front().stored_k() <= 8 ? model.ram_k8_bytes
                                                                        : model.ram_k16_bytes) != 0;
  if (board.ram_bytes == 0 || !planned) return all;
  const std::uint64_t room = board.ram_bytes & ~7u;
  std::vector<Placement> fit;
  for (const auto& p : all)
    if (ram_need(model, counts, p).total() <= room) fit.push_back(p);
  if (!fit.empty()) return fit;

  const RamNeed need = ram_need(model, counts, all.front());
  auto free_choice = all_placements(model::HyperParams{}, batch, guard, has_frozen);
  std::erase_if(free_choice, [&can](const Placement& p) {
    return (p.best_on_host || p.form != Form::kRaw) && !can(p);
  });
  const auto needs = [&](const Placement& p) { return ram_need(model, counts, p).total(); };
  const auto fits = std::find_if(free_choice.begin(), free_choice.end(),
                                 [&](const Placement& p) { return needs(p) <= room; });
  std::string remedy;
  if (fits != free_choice.end()) {
    remedy = absl::StrCat("These settings would fit: ", describe(*fits), ".");
  } else {
    const auto least =
        std::min_element(free_choice.begin(), free_choice.end(),
                         [&](const auto& x, const auto& y) { return needs(x) < needs(y); });
    remedy = absl::StrCat("Use a smaller model, fewer trainable layers or a board with more RAM: ",
                          describe(*least), " still needs ", needs(*least), " bytes.");
  }
  return with_reason(
      absl::ResourceExhaustedError(absl::StrCat(
          "model '", model.name, "' with ", describe(all.front()), " needs ", need.total(),
          " bytes (image ", need.image, ", trainer ", need.trainer, ", samples ", need.samples,
          "); board ", board.name, " has ", board.ram_bytes)),
      "BOARD_RAM", remedy);
}

std::string placement_text(const model::Model& model, const model::Board& board,
                           const SampleCounts& counts, const model::HyperParams& asked,
                           const Placement& place) {
  static const char* const kForms[] = {"samples", "frozen outputs", "frozen outputs"};
  const std::string form = kForms[static_cast<int>(place.form)];
  std::string text =
      absl::StrCat(place.form == Form::kTail ? "the trainable part alone" : "the whole model", ", ",
                   form, place.streamed ? " streamed" : " on the board");
  const bool pinned = asked.frozen.has_value() && place.form != Form::kTail;
  if (pinned) absl::StrAppend(&text, " (as asked)");
  const bool plain = place.form == Form::kRaw && !place.streamed;
  if (plain || board.ram_bytes == 0 || !known(model.ram)) return text;
  // What would have come before it.
  Placement rather = place;
  rather.streamed = asked.streamed.value_or(false);
  rather.form = place.form == Form::kTail && asked.frozen.value_or(false) ? Form::kFrozen
                : pinned                                                  ? place.form
                                                                          : Form::kRaw;
  if (rather == place) return text;
  if (ram_need(model, counts, rather).total() <= board.ram_bytes) return text;  // no want of room
  absl::StrAppend(&text, ": the whole model with its ", kForms[static_cast<int>(rather.form)],
                  rather.streamed ? " streamed" : " on the board", " needs ",
                  ram_need(model, counts, rather).total(), " bytes, ", board.name, " has ",
                  board.ram_bytes, "; this takes ", ram_need(model, counts, place).total());
  return text;
}

}  // namespace odt::training
