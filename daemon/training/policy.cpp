#include "training/policy.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace odt::training {
namespace {

using model::HyperParams;
using model::Rounding;

constexpr std::uint32_t kTooFew = 20;

const char* rounding_name(Rounding rounding) {
  switch (rounding) {
    case Rounding::kHalfUp:
      return "HALF_UP";
    case Rounding::kHalfAway:
      return "HALF_AWAY";
    case Rounding::kPsto:
      return "PSTO";
    case Rounding::kSr:
      return "SR";
    default:
      return "default";
  }
}

// Rule 1.9, within the limits of 1.5 (a k below 8 has fewer values).
std::vector<std::int32_t> policy_mu(bool automatic, Drift drift, std::uint32_t k, MuRange range) {
  if (!automatic) return {1, 1, 1};
  std::vector<std::int32_t> mu;
  if (k > 8)
    mu = drift == Drift::kStrong ? std::vector<std::int32_t>{1, -1, -3}
                                 : std::vector<std::int32_t>{-5, -6, -7};
  else
    mu = drift == Drift::kStrong ? std::vector<std::int32_t>{1, 0, -2}
                                 : std::vector<std::int32_t>{-4, -4, -4};
  for (auto& value : mu) value = std::min(std::max(value, range.low), range.high);
  return mu;
}

// Int8 weights move by less than a step most of the time: unbiased rounding keeps what the others
// lose.
Rounding policy_rounding(bool automatic, model::RuleSet rules, std::uint32_t k) {
  if (k > 8 || rules == model::RuleSet::kNitiLiteral) return Rounding::kHalfUp;
  return automatic ? Rounding::kSr : Rounding::kPsto;
}

Status out_of_range(const char* field, std::int64_t got, std::int64_t low, std::int64_t high,
                    const std::string& why) {
  std::string text = absl::StrCat(field, " is ", got, "; ", low, " to ", high, " are allowed");
  if (!why.empty()) absl::StrAppend(&text, " (", why, ")");
  return with_reason(absl::InvalidArgumentError(text), "OUT_OF_RANGE",
                     absl::StrCat("Choose ", field, " between ", low, " and ", high, "."));
}

}  // namespace

Drift judge_drift(const model::Accuracy& start, const model::Accuracy& source) {
  if (start.total < kTooFew) return Drift::kStrong;
  const std::uint64_t src_correct = source.total == 0 ? 1 : source.correct;
  const std::uint64_t src_total = source.total == 0 ? 1 : source.total;
  const bool below = 6ull * start.correct * src_total < 5ull * src_correct * start.total;
  return below ? Drift::kStrong : Drift::kMild;
}

std::uint32_t policy_batch(const HyperParams& asked, Drift drift) {
  if (asked.batch) return *asked.batch;
  return asked.policy != model::Policy::kFixed && drift == Drift::kMild ? 32 : 8;
}

HyperParams resolve(const HyperParams& asked, Drift drift, const Placement& place,
                    bool has_ce_scale, bool has_heldout) {
  const bool automatic = asked.policy != model::Policy::kFixed;
  HyperParams out = asked;
  out.policy = automatic ? model::Policy::kAuto : model::Policy::kFixed;
  if (out.rule_set == model::RuleSet::kUnspecified) out.rule_set = model::RuleSet::kNiti;
  out.k = place.k;
  out.batch = place.batch;
  out.streamed = place.streamed;
  if (out.rounding == Rounding::kUnspecified)
    out.rounding = policy_rounding(automatic, out.rule_set, place.k);
  if (out.loss == model::LossKind::kUnspecified)
    out.loss = has_ce_scale ? model::LossKind::kCe : model::LossKind::kMse;
  if (out.shift_source == model::ShiftSource::kUnspecified)
    out.shift_source = model::ShiftSource::kExact;
  if (out.mu_weight.empty())
    out.mu_weight =
        policy_mu(automatic, drift, place.k, mu_weight_range(place.k, out.rounding, place.batch));
  if (out.mu_weight.size() == 1) out.mu_weight.assign(3, out.mu_weight[0]);
  if (!out.mu_offset) out.mu_offset = automatic ? -3 : 1;
  if (!out.dead_zone)
    out.dead_zone = automatic && place.k <= 8 && out.loss == model::LossKind::kMse ? 4 : 0;
  if (!out.epochs) out.epochs = 10;
  if (!out.order_seed) out.order_seed = 1;
  if (!out.sr_seed) out.sr_seed = 1;
  out.guard = out.guard.value_or(true) && has_heldout;
  if (!out.telemetry_every) out.telemetry_every = 1;
  if (!out.checkpoint_epochs) out.checkpoint_epochs = 1;
  return out;
}

MuRange mu_weight_range(std::uint32_t k, Rounding rounding, std::uint32_t batch) {
  const bool stochastic = rounding == Rounding::kPsto || rounding == Rounding::kSr;
  const auto f = static_cast<std::int32_t>(k) - 8;
  return {-f - (stochastic ? 4 : 0), batch == 1 ? 2 : 4};
}

Status check_asked(const HyperParams& asked) {
  if (asked.mu_weight.size() != 0 && asked.mu_weight.size() != 1 && asked.mu_weight.size() != 3)
    return with_reason(
        absl::InvalidArgumentError(absl::StrCat("mu_weight has ", asked.mu_weight.size(),
                                                " values; one (constant) or three (by thirds)")),
        "OUT_OF_RANGE", "Give one value, or three for a schedule.");
  if (asked.rule_set == model::RuleSet::kNitiLiteral) {
    if (asked.k.value_or(8) != 8) return out_of_range("k", *asked.k, 8, 8, "NITI_LITERAL");
    if (asked.shift_source == model::ShiftSource::kStale)
      return with_reason(absl::InvalidArgumentError("shift_source is STALE; NITI_LITERAL needs "
                                                    "EXACT"),
                         "OUT_OF_RANGE", "Leave shift_source out.");
  }
  return absl::OkStatus();
}

Status check_ranges(const HyperParams& e, const model::Model& model, const model::Board& board) {
  const std::uint32_t max_batch = board.max_batch == 0 ? 256 : board.max_batch;
  if (*e.k < 2 || *e.k > 16) return out_of_range("k", *e.k, 2, 16, "");
  if (*e.batch < 1 || *e.batch > max_batch)
    return out_of_range("batch", *e.batch, 1, max_batch, "board " + board.name);
  if (*e.epochs < 1 || *e.epochs > 65535) return out_of_range("epochs", *e.epochs, 1, 65535, "");
  if (*e.dead_zone > 127) return out_of_range("dead_zone", *e.dead_zone, 0, 127, "");
  if (*e.mu_offset < -8 || *e.mu_offset > 7)
    return out_of_range("mu_offset", *e.mu_offset, -8, 7, "");
  const MuRange mu = mu_weight_range(*e.k, e.rounding, *e.batch);
  for (const auto value : e.mu_weight)
    if (value < mu.low || value > mu.high)
      return out_of_range(
          "mu_weight", value, mu.low, mu.high,
          absl::StrCat("k ", *e.k, ", rounding ", rounding_name(e.rounding), ", batch ", *e.batch));
  if (e.loss == model::LossKind::kCe && !model.has_ce_scale)
    return with_reason(absl::InvalidArgumentError("loss is CE, but model '" + model.name +
                                                  "' has no scale for cross-entropy in its image"),
                       "NO_CE_SCALE",
                       "Train with loss MSE, or export the model with a logit scale.");
  if (*e.telemetry_every > 65535)
    return out_of_range("telemetry_every", *e.telemetry_every, 0, 65535, "");
  return absl::OkStatus();
}

}  // namespace odt::training
