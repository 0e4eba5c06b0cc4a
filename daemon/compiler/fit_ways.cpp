#include "compiler/fit_ways.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "compiler/plan.h"
#include "data/batcher.h"

namespace odt::compiler {
namespace {

using data::align8;

bool guarded(const FitRequest& r) { return r.guard && r.heldout > 0; }

// Targets that stand where a sample's label stands otherwise: an autoencoder's are its inputs,
// which frozen outputs do not have.
std::uint64_t labels_of(const Network& net, FitForm form) {
  const bool targets =
      net.task == Task::kRegress || (net.task == Task::kAutoencode && form != FitForm::kSamples);
  return targets ? net.n_classes() : 1;
}

// An ODTS blob (proto/README.md).
std::uint64_t samples_bytes(const Compiled& c, FitForm form, std::uint64_t count) {
  const Network& net = c.network;
  const std::uint64_t each = storage_of_tensor(net, 0) == Storage::kS16 ? 2 : 1;
  const std::uint64_t length =
      form == FitForm::kSamples ? count_of(net.input_shape) * each : c.tail_sample_bytes;
  return align8(data::samples_bytes(count, length, labels_of(net, form)));
}

const model::RamPlan& table_of(const Compiled& c, FitForm form) {
  return form == FitForm::kTail ? c.tail_ram : c.ram;
}
const std::string& image_of(const Compiled& c, FitForm form) {
  return form == FitForm::kTail ? c.tail : c.image;
}

// Precisions to try, best first.
std::vector<std::uint32_t> precisions(const Network& net, const FitRequest& r) {
  if (net.arithmetic == Arithmetic::kDfp16) return {16};
  if (r.k != 0) return {r.k};
  return {15, 8};
}

std::vector<FitForm> forms_of(const FitRequest& r, bool tail, bool has_frozen) {
  std::vector<FitForm> forms = {FitForm::kTail};
  if (!tail) forms = {FitForm::kSamples, FitForm::kFrozen};
  std::erase_if(forms, [&](FitForm form) {
    const bool frozen = form != FitForm::kSamples;
    return (frozen && !has_frozen) || r.frozen.value_or(frozen) != frozen;
  });
  return forms;
}

struct Tried {
  bool small, tail, host;
  std::uint16_t wanted;
};

// One model image, the best weights at one place.
void add_ways(const Compiled& c, const FitRequest& r, const Tried& at, std::vector<FitWay>& out) {
  const auto forms = forms_of(r, at.tail, !c.tail.empty());
  const auto ks = precisions(c.network, r);
  for (const auto k : ks)
    for (std::uint16_t batch = at.wanted; batch != 0; batch = r.batch != 0 ? 0 : batch / 2) {
      const bool small = batch < 8 && batch != at.wanted;
      if (small != at.small || (small && k != ks.back())) continue;  // rather k 8 than batches < 8
      for (const bool streamed : {false, true})
        for (const FitForm form : forms)
          if (r.streamed.value_or(streamed) == streamed)
            out.push_back({k, batch, streamed, at.host, form, {}, {}});
    }
}

std::string above(const char* what, std::uint32_t got, std::uint32_t limit) {
  return got <= limit ? "" : absl::StrCat(got, " ", what, ", it takes ", limit);
}

}  // namespace

std::vector<FitWay> ways_of(const Compiled& c, const FitRequest& r, std::uint16_t wanted) {
  std::vector<FitWay> out;
  for (const bool small : {false, true})
    for (const bool tail : {false, true})
      for (const bool host : {false, true}) {
        if (host && !guarded(r)) continue;
        if (guarded(r) && r.best_on_host.value_or(host) != host) continue;
        add_ways(c, r, {small, tail, host, wanted}, out);
      }
  return out;
}

Result<FitRam> ram_of(const Compiled& c, const std::string& file, const FitRequest& r,
                      const FitWay& way) {
  const model::RamPlan& table = table_of(c, way.form);
  MemoryPlan plan;
  ODT_ASSIGN(plan,
             plan_memory(image_of(c, way.form), file, static_cast<std::uint8_t>(way.k), way.batch));
  FitRam ram;
  ram.image = align8(image_of(c, way.form).size());
  ram.weights = way.k <= 8 ? c.ram.weights_k8 : c.ram.weights_k16;
  ram.best = guarded(r) && !way.best_on_host ? ram.weights : 0;
  ram.activations = plan.activation_bytes;
  ram.gradients = table.work_bytes(way.batch) - plan.activation_bytes;
  const bool measured = r.evaluate || r.heldout > 0;
  const std::uint64_t classes = c.network.n_classes();
  const std::uint64_t confusion =
      c.network.task == Task::kClassify ? align8(4 * classes * classes) : 0;
  const auto bytes_of = [&](std::uint64_t n) { return samples_bytes(c, way.form, n); };
  const std::uint64_t one_sample = confusion + bytes_of(1);
  if (way.streamed) {
    ram.samples = bytes_of(way.batch) + (measured ? confusion : 0);
  } else {
    const std::uint64_t source = way.form == FitForm::kSamples ? 0 : data::kSourceBytes;
    ram.samples = align8(2ull * r.train) + align8(bytes_of(r.train) + source);
    if (r.heldout > 0) ram.samples += align8(bytes_of(r.heldout) + source);
    if (r.evaluate) ram.samples += one_sample;
  }
  // Before training samples are evaluated, one at a time.
  const std::uint64_t first = ram.image + c.ram.weights_k8 + table.work_bytes(1) + one_sample;
  if (measured && ram.total() < first) ram.samples += first - ram.total();
  return ram;
}

Result<std::string> refusal(const Compiled& c, const std::string& file, const BoardLimits& limits,
                            FitForm form) {
  ImageParts parts;
  ODT_ASSIGN(parts, parts_of(image_of(c, form), file));
  std::vector<std::string> reasons = {above("operators", parts.ops, limits.ops),
                                      above("trainable layers", parts.layers, limits.layers),
                                      above("classes", parts.classes, limits.classes)};
  const auto lacks = [&reasons](bool needed, bool has, const char* what) {
    if (needed && !has) reasons.push_back(absl::StrCat("it has no ", what));
  };
  lacks(parts.conv, limits.conv, "convolutions");
  lacks(parts.graphs, limits.graphs, "pools, sums, concatenations and resizes");
  lacks(parts.dfp16, limits.dfp16, "DFP16");
  std::erase(reasons, std::string());
  return absl::StrJoin(reasons, "; ");
}

}  // namespace odt::compiler
