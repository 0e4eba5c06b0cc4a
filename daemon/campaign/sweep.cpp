#include "campaign/sweep.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace odt::campaign {
namespace {

using model::HyperParams;

Status bad(const std::string& axis, const std::string& value, const std::string& allowed) {
  return with_reason(absl::InvalidArgumentError(
                         absl::StrCat("sweep: '", value, "' for ", axis, "; allowed: ", allowed)),
                     "BAD_FIELD", "", "spec.sweep.axes");
}

// "1" or "1/-1/-3".
template <typename T>
Status numbers(const std::string& axis, const std::string& value, std::size_t most,
               std::vector<T>& out) {
  out.clear();
  for (const auto part : absl::StrSplit(value, '/')) {
    T n{};
    if (!absl::SimpleAtoi(part, &n)) return bad(axis, value, "whole numbers, a/b/c for several");
    out.push_back(n);
  }
  return out.size() > most ? bad(axis, value, absl::StrCat("at most ", most, " numbers"))
                           : absl::OkStatus();
}
template <typename T>
Status number(const std::string& axis, const std::string& value, std::optional<T>& out) {
  T n{};
  if (!absl::SimpleAtoi(value, &n)) return bad(axis, value, "a whole number");
  out = n;
  return absl::OkStatus();
}

using Setter = std::function<Status(const std::string&, const std::string&, Trial&)>;

template <typename T>
Setter of_number(std::optional<T> HyperParams::*field) {
  return [field](const std::string& axis, const std::string& value, Trial& t) {
    return number(axis, value, t.hyper.*field);
  };
}
template <typename T>
Setter of_list(std::vector<T> HyperParams::*field, std::size_t most) {
  return [field, most](const std::string& axis, const std::string& value, Trial& t) {
    return numbers(axis, value, most, t.hyper.*field);
  };
}
template <typename E>
Setter of_word(E HyperParams::*field, std::initializer_list<std::pair<const char*, E>> words) {
  const std::vector<std::pair<const char*, E>> kept(words);
  return [field, kept](const std::string& axis, const std::string& value, Trial& t) {
    std::vector<std::string> known;
    for (const auto& [name, e] : kept) {
      if (value == name) {
        t.hyper.*field = e;
        return absl::OkStatus();
      }
      known.emplace_back(name);
    }
    return bad(axis, value, absl::StrJoin(known, ", "));
  };
}

const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> kSetters = {
      {"mu_weight", of_list(&HyperParams::mu_weight, 3)},
      {"mu_offset", of_number(&HyperParams::mu_offset)},
      {"batch", of_number(&HyperParams::batch)},
      {"epochs", of_number(&HyperParams::epochs)},
      {"dead_zone", of_number(&HyperParams::dead_zone)},
      {"k", of_number(&HyperParams::k)},
      {"layer_k", of_list(&HyperParams::layer_k, 16)},
      {"order_seed", of_number(&HyperParams::order_seed)},
      {"sr_seed", of_number(&HyperParams::sr_seed)},
      {"apt_k_max", of_number(&HyperParams::apt_k_max)},
      {"apt_t_min_q8", of_number(&HyperParams::apt_t_min_q8)},
      {"apt_t_max_q8", of_number(&HyperParams::apt_t_max_q8)},
      {"lr_m", of_list(&HyperParams::lr_m, 3)},
      {"lr_s", of_number(&HyperParams::lr_s)},
      {"policy", of_word<model::Policy>(&HyperParams::policy, {{"auto", model::Policy::kAuto},
                                                               {"fixed", model::Policy::kFixed}})},
      {"rule", of_word<model::RuleSet>(&HyperParams::rule_set,
                                       {{"niti", model::RuleSet::kNiti},
                                        {"niti-literal", model::RuleSet::kNitiLiteral},
                                        {"dfp16", model::RuleSet::kDfp16}})},
      {"rounding",
       of_word<model::Rounding>(&HyperParams::rounding, {{"half-up", model::Rounding::kHalfUp},
                                                         {"half-away", model::Rounding::kHalfAway},
                                                         {"psto", model::Rounding::kPsto},
                                                         {"sr", model::Rounding::kSr}})},
      {"loss", of_word<model::LossKind>(&HyperParams::loss, {{"mse", model::LossKind::kMse},
                                                             {"ce", model::LossKind::kCe}})},
      {"shift_source", of_word<model::ShiftSource>(&HyperParams::shift_source,
                                                   {{"exact", model::ShiftSource::kExact},
                                                    {"stale", model::ShiftSource::kStale}})},
      {"apt", of_word<model::AptMode>(&HyperParams::apt, {{"off", model::AptMode::kUnspecified},
                                                          {"quarters", model::AptMode::kQuarters},
                                                          {"epochs", model::AptMode::kEpochs}})},
      {"trainable_layers", [](const std::string& axis, const std::string& value,
                              Trial& t) { return number(axis, value, t.trainable_layers); }},
  };
  return kSetters;
}

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
  const auto it = setters().find(axis);
  if (it != setters().end()) return it->second(axis, value, trial);
  std::vector<std::string> names;
  for (const auto& [name, setter] : setters()) names.push_back(name);
  return with_reason(absl::InvalidArgumentError(absl::StrCat(
                         "sweep: no axis '", axis, "'; axes: ", absl::StrJoin(names, ", "))),
                     "BAD_FIELD", "", "spec.sweep.axes.name");
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
      return bad(axis.name, value, "LOW..HIGH, at most 64 values");
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
