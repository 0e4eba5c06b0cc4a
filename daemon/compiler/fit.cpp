#include "compiler/fit.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "compiler/fit_ways.h"

namespace odt::compiler {
namespace {

// Batches of training::policy_batch().
constexpr std::uint16_t kStrong = 8, kMild = 32;

Status check(const Compiled& c, const std::string& file, const FitRequest& r) {
  if (r.frozen.value_or(false) && c.tail.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        file,
        ": frozen is on, but the model has no frozen outputs: they need layers that are computed "
        "in "
        "front of the first trainable one, one tensor between, and 8-bit integers; give "
        "--trainable N, or leave --frozen out"));
  if (r.best_on_host.value_or(false) && (!r.guard || r.heldout == 0))
    return absl::InvalidArgumentError(
        "best_on_host is given, but no best weights are kept: they need the guard and held-out "
        "samples");
  return absl::OkStatus();
}

// The same model with other trainable layers.
Result<Compiled> with_trainable(const Compiled& c, const std::string& file, std::uint32_t n) {
  return compile_network(c.network, std::string(), file, {c.network.name, n});
}

Result<FitReport> find_way(const Compiled& c, const std::string& file, const BoardFigures& board,
                           const FitRequest& r, std::uint16_t wanted) {
  FitReport out;
  std::string refused[3];
  for (const FitForm form : {FitForm::kSamples, FitForm::kFrozen, FitForm::kTail})
    if (form == FitForm::kSamples || !c.tail.empty()) {
      ODT_ASSIGN(refused[static_cast<int>(form)], refusal(c, file, board.limits, form));
    }
  bool told[3] = {};
  for (FitWay& way : ways_of(c, r, r.batch != 0 ? r.batch : wanted)) {
    const auto& first = out.ways.empty() ? way : out.ways.front();
    const bool others = way.k != first.k || way.batch != first.batch ||
                        way.best_on_host != first.best_on_host || way.form == FitForm::kTail;
    if (out.chosen && others) break;
    const auto form = static_cast<int>(way.form);
    way.refused = refused[form];
    if (!way.refused.empty() && std::exchange(told[form], true)) continue;
    ODT_ASSIGN(way.ram, ram_of(c, file, r, way));
    out.ways.push_back(way);
    if (!out.chosen && way.fits(board.arena_bytes)) out.chosen = way;
  }
  return out;
}

Result<std::vector<FitChoice>> choices(const Compiled& c, const std::string& file,
                                       const BoardFigures& board, const FitRequest& r) {
  FitRequest any = r;
  any.k = 0;
  any.batch = 0;
  any.frozen = any.streamed = any.best_on_host = std::nullopt;
  std::vector<FitChoice> out;
  for (std::uint32_t n = trainable_layers(c.network); n >= 1; --n) {
    Compiled other;
    ODT_ASSIGN(other, with_trainable(c, file, n));
    FitReport found;
    for (const FitRequest& request : {r, any}) {
      if (!check(other, file, request).ok()) continue;
      ODT_ASSIGN(found, find_way(other, file, board, request, kStrong));
      if (found.chosen) break;
    }
    if (!found.chosen) continue;
    out.push_back({n, *found.chosen});
    const auto ways = ways_of(other, r, r.batch != 0 ? r.batch : kStrong);
    if (!ways.empty() && found.chosen->batch == ways[0].batch && found.chosen->k == ways[0].k)
      return out;  // all that was asked for, but for layers
  }
  return out;
}

FitTime time_of(const Compiled& c, const BoardFigures& board, const FitRequest& r,
                const FitWay& way) {
  FitTime out;
  out.cost = step_cost(c.network, board.kernels, way.k, way.batch, way.form != FitForm::kSamples);
  if (board.clock_hz == 0) return out;
  const double each = board.cycles_per_instruction / static_cast<double>(board.clock_hz);
  const double steps = (r.train + way.batch - 1u) / way.batch;
  out.step_s = out.cost.training_step * each;
  out.epoch_s = steps * out.step_s + r.heldout * out.cost.inference * each;
  return out;
}

}  // namespace

std::uint32_t trainable_layers(const Network& net) {
  return static_cast<std::uint32_t>(std::count_if(net.layers.begin(), net.layers.end(),
                                                  [](const Layer& l) { return l.trainable; }));
}

const FitWay& shown_way(const FitReport& report) {
  return report.chosen ? *report.chosen : report.ways.front();
}

Result<FitReport> fit(const Compiled& compiled, const std::string& file, const BoardFigures& board,
                      const FitRequest& request) {
  ODT_TRY(check(compiled, file, request));
  FitReport out;
  ODT_ASSIGN(out, find_way(compiled, file, board, request, kStrong));
  out.time = time_of(compiled, board, request, shown_way(out));
  if (!out.chosen) {
    ODT_ASSIGN(out.would_fit, choices(compiled, file, board, request));
    return out;
  }
  if (compiled.network.task != Task::kClassify || request.batch != 0) return out;
  FitReport mild;
  ODT_ASSIGN(mild, find_way(compiled, file, board, request, kMild));
  out.mild = mild.chosen;
  if (out.mild) out.mild_time = time_of(compiled, board, request, *out.mild);
  return out;
}

}  // namespace odt::compiler
