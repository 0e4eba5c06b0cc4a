#include "campaign/sweep.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <set>

#include "model/hyper_values.h"

namespace odt::campaign {
namespace {

using model::HyperParams;

Status bad(const std::string& text, const std::string& field = "spec.sweep.axes") {
  return with_reason(absl::InvalidArgumentError("sweep: " + text), "BAD_FIELD", "", field);
}

constexpr char kLayers[] = "trainable_layers";  // an axis that is not of HyperParams

// SplitMix64: the same draws everywhere.
std::uint64_t next(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// `count` of 0..all-1, none twice, ascending (Floyd's way).
std::set<std::uint64_t> draw(std::uint64_t all, std::uint64_t count, std::uint64_t seed) {
  std::set<std::uint64_t> out;
  std::uint64_t state = seed;
  for (std::uint64_t j = all - count; j < all; ++j) {
    const std::uint64_t t = next(state) % (j + 1);
    if (!out.insert(t).second) out.insert(j);
  }
  return out;
}

bool scored(const model::CampaignUnit& u) {
  return u.state == model::UnitState::kSucceeded &&
         (u.heldout_best.total != 0 || u.heldout_best_loss.count != 0);
}

}  // namespace

Status apply_value(const std::string& axis, const std::string& value, Trial& trial) {
  if (axis == kLayers) {
    std::uint32_t layers = 0;
    if (!absl::SimpleAtoi(value, &layers))
      return bad(absl::StrCat("'", value, "' for ", axis, "; allowed: a whole number"));
    trial.trainable_layers = layers;
    return absl::OkStatus();
  }
  std::vector<std::string> names{kLayers};
  for (const auto& key : model::hyper_keys()) {
    if (!key.sweeps) continue;
    if (key.name == axis) {
      const Status status = model::set_hyper(axis, value, trial.hyper);
      return status.ok() ? status : bad(std::string(status.message()));
    }
    names.push_back(key.name);
  }
  return bad(absl::StrCat("no axis '", axis, "'; axes: ", absl::StrJoin(names, ", ")),
             "spec.sweep.axes.name");
}

Result<std::vector<std::string>> expand_values(const model::SweepAxis& axis) {
  std::vector<std::string> out;
  for (const auto& value : axis.values) {
    const auto dots = value.find("..");
    if (dots == std::string::npos) {
      out.push_back(value);
      continue;
    }
    std::int64_t low = 0, high = 0;
    if (!absl::SimpleAtoi(value.substr(0, dots), &low) ||
        !absl::SimpleAtoi(value.substr(dots + 2), &high) || low > high ||
        static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) >= 64)
      return bad(
          absl::StrCat("'", value, "' for ", axis.name, "; allowed: LOW..HIGH, at most 64 values"));
    for (std::int64_t i = 0, n = high - low; i <= n; ++i) out.push_back(std::to_string(low + i));
  }
  return out;
}

Result<std::vector<Trial>> trials_of(const model::SweepSpec& sweep, const HyperParams& base) {
  if (sweep.strategy == model::SweepStrategy::kUnspecified || sweep.axes.empty())
    return with_reason(absl::InvalidArgumentError("sweep: no strategy, or no axis"), "BAD_FIELD",
                       "Give at least one axis: --sweep mu_weight=0,1,2.", "spec.sweep");
  std::vector<std::vector<std::string>> values;
  std::set<std::string> names;
  const auto too_many = [](const std::string& combinations) {
    return with_reason(
        absl::InvalidArgumentError(absl::StrCat("sweep: ", combinations, " combinations; at most ",
                                                kMaxTrials, " trials")),
        "OUT_OF_RANGE", "Use --strategy random with --trials, or fewer values.", "spec.sweep");
  };
  std::uint64_t all = 1;
  for (const auto& axis : sweep.axes) {
    if (!names.insert(axis.name).second)
      return absl::InvalidArgumentError("sweep: axis '" + axis.name + "' is there twice");
    ODT_ASSIGN(values.emplace_back(), expand_values(axis));
    all *= values.back().size();
    if (all > (std::uint64_t{1} << 40)) return too_many("over 2^40");
  }
  const bool grid = sweep.strategy == model::SweepStrategy::kGrid;
  std::uint64_t count = sweep.trials == 0 ? all : std::min<std::uint64_t>(sweep.trials, all);
  if (grid) count = all;
  if (count > kMaxTrials) return too_many(std::to_string(all));
  std::vector<Trial> out;
  for (const std::uint64_t pick : draw(all, count, sweep.seed)) {
    Trial& trial = out.emplace_back();
    trial.hyper = base;
    std::uint64_t rest = pick;
    for (std::size_t i = values.size(); i-- > 0;) {
      ODT_TRY(apply_value(sweep.axes[i].name, values[i][rest % values[i].size()], trial));
      rest /= values[i].size();
    }
  }
  return out;
}

std::uint32_t eta_of(const model::SweepSpec& sweep) { return sweep.eta == 0 ? 3 : sweep.eta; }

std::vector<std::uint32_t> rung_epochs(const model::SweepSpec& sweep, std::uint32_t epochs) {
  if (sweep.strategy != model::SweepStrategy::kHalving) return {epochs};
  std::vector<std::uint32_t> out;
  for (std::uint64_t e = std::max(sweep.min_epochs, 1u); e < epochs; e *= eta_of(sweep))
    out.push_back(static_cast<std::uint32_t>(e));
  out.push_back(epochs);
  return out;
}

bool better(const model::CampaignUnit& a, const model::CampaignUnit& b) {
  if (scored(a) != scored(b)) return scored(a);
  const auto x = std::uint64_t{a.heldout_best.correct} * b.heldout_best.total;
  const auto y = std::uint64_t{b.heldout_best.correct} * a.heldout_best.total;
  if (x != y) return x > y;
  // Losses of one model: their exp2 is the same.
  const auto &la = a.heldout_best_loss, &lb = b.heldout_best_loss;
  if (la.count != 0 && lb.count != 0) {
    const auto p = static_cast<__int128>(la.sum) * lb.count,
               q = static_cast<__int128>(lb.sum) * la.count;
    if (p != q) return p < q;
  }
  return a.trial < b.trial;
}

std::vector<std::size_t> survivors(const std::vector<model::CampaignUnit>& units,
                                   std::uint32_t rung, std::uint32_t eta) {
  std::vector<std::size_t> in;
  std::size_t all = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (units[i].round != rung) continue;
    ++all;
    if (scored(units[i])) in.push_back(i);
  }
  std::sort(in.begin(), in.end(),
            [&](std::size_t a, std::size_t b) { return better(units[a], units[b]); });
  in.resize(std::min(in.size(), (all + eta - 1) / eta));
  std::sort(in.begin(), in.end(),
            [&](std::size_t a, std::size_t b) { return units[a].trial < units[b].trial; });
  return in;
}

std::optional<std::uint32_t> best_unit(const std::vector<model::CampaignUnit>& units) {
  const model::CampaignUnit* best = nullptr;
  for (const auto& u : units) {
    if (!scored(u)) continue;
    if (best == nullptr || u.round > best->round || (u.round == best->round && better(u, *best)))
      best = &u;
  }
  return best == nullptr ? std::nullopt : std::optional(best->index);
}

std::vector<std::string> differing(const HyperParams& a, const HyperParams& b) {
  std::vector<std::string> out;
  const auto look = [&](const char* name, const auto& x, const auto& y) {
    if (!(x == y)) out.emplace_back(name);
  };
  look("policy", a.policy, b.policy);
  look("rule_set", a.rule_set, b.rule_set);
  look("rounding", a.rounding, b.rounding);
  look("loss", a.loss, b.loss);
  look("shift_source", a.shift_source, b.shift_source);
  look("mu_weight", a.mu_weight, b.mu_weight);
  look("mu_offset", a.mu_offset, b.mu_offset);
  look("dead_zone", a.dead_zone, b.dead_zone);
  look("k", a.k, b.k);
  look("batch", a.batch, b.batch);
  look("epochs", a.epochs, b.epochs);
  look("order_seed", a.order_seed, b.order_seed);
  look("sr_seed", a.sr_seed, b.sr_seed);
  look("guard", a.guard, b.guard);
  look("layer_k", a.layer_k, b.layer_k);
  look("apt", a.apt, b.apt);
  look("apt_k_max", a.apt_k_max, b.apt_k_max);
  look("apt_t_min_q8", a.apt_t_min_q8, b.apt_t_min_q8);
  look("apt_t_max_q8", a.apt_t_max_q8, b.apt_t_max_q8);
  look("apt_offsets", a.apt_offsets, b.apt_offsets);
  look("lr_m", a.lr_m, b.lr_m);
  look("lr_s", a.lr_s, b.lr_s);
  look("blocked", a.blocked, b.blocked);
  return out;
}

}  // namespace odt::campaign
