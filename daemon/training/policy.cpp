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
  // Where k moves, the schedule of 8 bits: boards clamp it to the k of the step.
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

namespace {

// Rates of fp32 SGD: 0.05 on the mean of 8 samples.
constexpr std::uint32_t kLrM = 26214, kLrS = 22;

void resolve_dfp16(HyperParams& out, bool classes) {
  out.rounding = Rounding::kHalfUp;
  out.shift_source = model::ShiftSource::kExact;
  if (out.loss == model::LossKind::kUnspecified)
    out.loss = classes ? model::LossKind::kCe : model::LossKind::kMse;
  out.mu_weight = {0, 0, 0};
  out.mu_offset = 0;
  out.dead_zone = 0;
  if (out.lr_m.empty()) {
    out.lr_m = {kLrM};
    if (!out.lr_s) out.lr_s = kLrS;
  }
  if (out.lr_m.size() == 1) out.lr_m.assign(3, out.lr_m[0]);
  if (!out.lr_s) out.lr_s = 0;
  if (!out.blocked) out.blocked = false;
}

void resolve_precision(HyperParams& out, const Placement& place) {
  if (place.k_max == 0) return;
  out.apt_k_max = place.k_max;
  if (out.apt == model::AptMode::kUnspecified) return;
  if (!out.apt_t_min_q8) out.apt_t_min_q8 = 77;
  if (!out.apt_t_max_q8) out.apt_t_max_q8 = 0;
  if (!out.apt_offsets) out.apt_offsets = false;
}

}  // namespace

HyperParams resolve(const HyperParams& asked, Drift drift, const Placement& place,
                    bool has_ce_scale, bool has_heldout, bool classes) {
  const bool automatic = asked.policy != model::Policy::kFixed;
  HyperParams out = asked;
  out.policy = automatic ? model::Policy::kAuto : model::Policy::kFixed;
  if (out.rule_set == model::RuleSet::kUnspecified) out.rule_set = model::RuleSet::kNiti;
  out.k = place.k;
  out.batch = place.batch;
  out.streamed = place.streamed;
  out.best_on_host = place.best_on_host;
  out.frozen = place.form != Form::kRaw;
  out.tail = place.form == Form::kTail;
  resolve_precision(out, place);
  if (out.rule_set == model::RuleSet::kDfp16) resolve_dfp16(out, classes);
  if (out.rounding == Rounding::kUnspecified && !out.k_varies())
    out.rounding = policy_rounding(automatic, out.rule_set, place.k);
  if (out.loss == model::LossKind::kUnspecified)
    out.loss = has_ce_scale && classes ? model::LossKind::kCe : model::LossKind::kMse;
  if (out.shift_source == model::ShiftSource::kUnspecified)
    out.shift_source = model::ShiftSource::kExact;
  if (out.mu_weight.empty())
    out.mu_weight = policy_mu(automatic, drift, place.k, mu_weight_range(out));
  if (out.mu_weight.size() == 1) out.mu_weight.assign(3, out.mu_weight[0]);
  if (!out.mu_offset) out.mu_offset = automatic ? -3 : 1;
  if (!out.dead_zone)
    // Where there are no classes, a small error counts.
    out.dead_zone =
        automatic && classes && place.k <= 8 && out.loss == model::LossKind::kMse ? 4 : 0;
  if (!out.epochs) out.epochs = 10;
  if (!out.order_seed) out.order_seed = 1;
  if (!out.sr_seed) out.sr_seed = 1;
  out.guard = out.guard.value_or(true) && has_heldout;
  if (!*out.guard) out.best_on_host = false;
  if (!out.telemetry_every) out.telemetry_every = 1;
  if (!out.checkpoint_epochs) out.checkpoint_epochs = 1;
  return out;
}

MuRange mu_weight_range(std::uint32_t k, Rounding rounding, std::uint32_t batch) {
  const bool stochastic = rounding == Rounding::kPsto || rounding == Rounding::kSr;
  const auto f = static_cast<std::int32_t>(k) - 8;
  return {-f - (stochastic ? 4 : 0), batch == 1 ? 2 : 4};
}

MuRange mu_weight_range(const HyperParams& e) {
  if (!e.k_varies()) return mu_weight_range(*e.k, e.rounding, *e.batch);
  const auto of = [&e](std::uint32_t k) {
    const auto by_k = k <= 8 ? Rounding::kPsto : Rounding::kHalfUp;
    return mu_weight_range(k, e.rounding == Rounding::kUnspecified ? by_k : e.rounding, *e.batch);
  };
  MuRange out = of(*e.k);
  const auto add = [&](std::uint32_t k) { out.low = std::min(out.low, of(k).low); };
  for (const auto k : e.layer_k)
    if (k != 0) add(k);
  for (std::uint32_t k = 2; k <= e.apt_k_max.value_or(0); ++k) add(k);
  return out;
}

std::uint32_t caps_needed(const HyperParams& asked) {
  const std::uint32_t extra = (asked.best_on_host.value_or(false) ? kCapBestOnHost : 0) |
                              (asked.frozen.value_or(false) ? kCapFrozen : 0) |
                              (asked.commit_every.value_or(0) != 0 ? model::kCapNvm : 0);
  if (asked.rule_set == model::RuleSet::kDfp16) return extra | kCapDfp16;
  return extra | (asked.k_varies() ? 1u << 9 : 0);
}

namespace {

Status not_with(const char* field, const char* other) {
  return with_reason(
      absl::InvalidArgumentError(absl::StrCat(field, " is given; it does not go with ", other)),
      "OUT_OF_RANGE", absl::StrCat("Leave ", field, " out."));
}

Status check_asked_apt(const HyperParams& asked) {
  const bool on = asked.apt != model::AptMode::kUnspecified;
  if (!on && asked.apt_t_min_q8) return not_with("apt_t_min_q8", "apt off");
  if (!on && asked.apt_t_max_q8) return not_with("apt_t_max_q8", "apt off");
  if (!on && asked.apt_offsets.value_or(false)) return not_with("apt_offsets", "apt off");
  if (asked.apt_k_max && (*asked.apt_k_max < 2 || *asked.apt_k_max > 16))
    return out_of_range("apt_k_max", *asked.apt_k_max, 2, 16, "");
  if (asked.apt_t_min_q8 && (*asked.apt_t_min_q8 < 1 || *asked.apt_t_min_q8 > 65535))
    return out_of_range("apt_t_min_q8", *asked.apt_t_min_q8, 1, 65535, "");
  const std::uint32_t t_min = asked.apt_t_min_q8.value_or(77);
  const std::uint32_t t_max = asked.apt_t_max_q8.value_or(0);
  if (t_max != 0 && (t_max < 4 * t_min || t_max > 65535))
    return out_of_range("apt_t_max_q8", t_max, 4 * t_min, 65535,
                        absl::StrCat("or 0; at least 4 times apt_t_min_q8, ", t_min));
  for (const auto k : asked.layer_k)
    if (k != 0 && (k < 2 || k > 16)) return out_of_range("layer_k", k, 2, 16, "or 0: k");
  return absl::OkStatus();
}

// What belongs to one family of rules only.
Status check_asked_family(const HyperParams& asked, bool classes) {
  if (asked.rule_set != model::RuleSet::kDfp16) {
    if (!asked.lr_m.empty()) return not_with("lr_m", "rules other than DFP16");
    if (asked.lr_s) return not_with("lr_s", "rules other than DFP16");
    if (asked.blocked.value_or(false)) return not_with("blocked", "rules other than DFP16");
    if (asked.rule_set == model::RuleSet::kNitiLiteral && asked.k_varies())
      return not_with("layer_k or apt", "NITI_LITERAL");
    return absl::OkStatus();
  }
  if (asked.k_varies()) return not_with("layer_k or apt", "DFP16");
  if (!asked.mu_weight.empty()) return not_with("mu_weight", "DFP16");
  if (asked.k.value_or(16) != 16) return out_of_range("k", *asked.k, 16, 16, "DFP16");
  if (asked.dead_zone.value_or(0) != 0) return not_with("dead_zone", "DFP16");
  if (asked.rounding != Rounding::kUnspecified && asked.rounding != Rounding::kHalfUp)
    return not_with("rounding", "DFP16, which rounds HALF_UP");
  if (asked.shift_source == model::ShiftSource::kStale)
    return not_with("shift_source STALE", "DFP16");
  if (classes && asked.loss == model::LossKind::kMse) return not_with("loss MSE", "DFP16");
  if (!asked.lr_m.empty() && asked.lr_m.size() != 1 && asked.lr_m.size() != 3)
    return with_reason(
        absl::InvalidArgumentError(absl::StrCat("lr_m has ", asked.lr_m.size(),
                                                " values; one (constant) or three (by thirds)")),
        "OUT_OF_RANGE", "Give one value, or three for a schedule.");
  for (const auto m : asked.lr_m)
    if (m < 1 || m > 32767) return out_of_range("lr_m", m, 1, 32767, "");
  if (asked.lr_s.value_or(0) > 40) return out_of_range("lr_s", *asked.lr_s, 0, 40, "");
  return absl::OkStatus();
}

}  // namespace

Status check_asked(const HyperParams& asked, bool classes) {
  if (!classes && asked.loss == model::LossKind::kCe)
    return not_with("loss CE", "a model without classes");
  if (asked.best_on_host.value_or(false) && !asked.guard.value_or(true))
    return not_with("best_on_host", "guard off");
  ODT_TRY(check_asked_apt(asked));
  ODT_TRY(check_asked_family(asked, classes));
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

namespace {

Status check_rest(const HyperParams& e) {
  if (*e.telemetry_every > 65535)
    return out_of_range("telemetry_every", *e.telemetry_every, 0, 65535, "");
  return absl::OkStatus();
}

Status check_precision(const HyperParams& e, const model::Model& model) {
  if (model.trainable_layers != 0 && e.layer_k.size() > model.trainable_layers)
    return with_reason(absl::InvalidArgumentError(absl::StrCat(
                           "layer_k has ", e.layer_k.size(), " values; model '", model.name,
                           "' has ", model.trainable_layers, " trainable layers")),
                       "OUT_OF_RANGE", "Give one value per trainable layer, first to last.");
  const std::uint32_t k_max = e.apt_k_max.value_or(0);
  if (k_max == 0) return absl::OkStatus();
  if (*e.k > k_max) return out_of_range("k", *e.k, 2, k_max, "apt_k_max");
  for (const auto k : e.layer_k)
    if (k > k_max) return out_of_range("layer_k", k, 2, k_max, "apt_k_max");
  return absl::OkStatus();
}

Status check_arithmetic(const HyperParams& e, const model::Model& model) {
  const bool dfp = e.rule_set == model::RuleSet::kDfp16;
  if (dfp == (model.arithmetic == 1)) return absl::OkStatus();
  return with_reason(
      absl::InvalidArgumentError(absl::StrCat("rule_set is ", dfp ? "DFP16" : "NITI",
                                              ", but model '", model.name, "' is an image for ",
                                              dfp ? "8-bit integers" : "DFP16")),
      "OTHER_ARITHMETIC",
      dfp ? "Leave the rule set out, or add the model as DFP16 (odtctl model add "
            "--arith dfp16, pc-train --dfp16)."
          : "Leave the rule set out, or add a model in 8-bit integers (a QAT file).");
}

}  // namespace

Status check_ranges(const HyperParams& e, const model::Model& model, const model::Board& board) {
  const std::uint32_t max_batch = board.max_batch == 0 ? 256 : board.max_batch;
  if (*e.k < 2 || *e.k > 16) return out_of_range("k", *e.k, 2, 16, "");
  if (*e.batch < 1 || *e.batch > max_batch)
    return out_of_range("batch", *e.batch, 1, max_batch, "board " + board.name);
  if (*e.epochs < 1 || *e.epochs > 65535) return out_of_range("epochs", *e.epochs, 1, 65535, "");
  if (*e.dead_zone > 127) return out_of_range("dead_zone", *e.dead_zone, 0, 127, "");
  if (*e.mu_offset < -8 || *e.mu_offset > 7)
    return out_of_range("mu_offset", *e.mu_offset, -8, 7, "");
  ODT_TRY(check_arithmetic(e, model));
  ODT_TRY(check_precision(e, model));
  if (e.rule_set == model::RuleSet::kDfp16) return check_rest(e);
  const MuRange mu = mu_weight_range(e);
  for (const auto value : e.mu_weight)
    if (value < mu.low || value > mu.high)
      return out_of_range(
          "mu_weight", value, mu.low, mu.high,
          absl::StrCat(e.k_varies() ? "any k in reach, k " : "k ", *e.k, ", rounding ",
                       rounding_name(e.rounding), ", batch ", *e.batch));
  if (e.loss == model::LossKind::kCe && !model.has_ce_scale)
    return with_reason(absl::InvalidArgumentError("loss is CE, but model '" + model.name +
                                                  "' has no scale for cross-entropy in its image"),
                       "NO_CE_SCALE",
                       "Train with loss MSE, or export the model with a logit scale.");
  return check_rest(e);
}

}  // namespace odt::training
