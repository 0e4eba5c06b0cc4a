#include "model/hyper_values.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <functional>
#include <map>

namespace odt::model {
namespace {

Status bad(const std::string& key, const std::string& value, const std::string& allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", value, "' for ", key, "; allowed: ", allowed));
}

struct Access {
  std::function<Status(const std::string& key, const std::string& value, HyperParams&)> set;
  std::function<std::string(const HyperParams&)> text;
  bool sweeps = true;
};

template <typename T>
Access of_number(std::optional<T> HyperParams::*field, bool sweeps = true) {
  return {[field](const std::string& key, const std::string& value, HyperParams& h) {
            T n{};
            if (!absl::SimpleAtoi(value, &n)) return bad(key, value, "a whole number");
            h.*field = n;
            return absl::OkStatus();
          },
          [field](const HyperParams& h) {
            return h.*field ? absl::StrCat(*(h.*field)) : std::string();
          },
          sweeps};
}
Access of_flag(std::optional<bool> HyperParams::*field, bool sweeps) {
  return {[field](const std::string& key, const std::string& value, HyperParams& h) {
            if (value != "on" && value != "off") return bad(key, value, "on, off");
            h.*field = value == "on";
            return absl::OkStatus();
          },
          [field](const HyperParams& h) -> std::string {
            return !(h.*field) ? "" : *(h.*field) ? "on" : "off";
          },
          sweeps};
}
template <typename T>
Access of_list(std::vector<T> HyperParams::*field, std::size_t most) {
  return {[field, most](const std::string& key, const std::string& value, HyperParams& h) {
            std::vector<T> out;
            for (const auto part : absl::StrSplit(value, '/')) {
              T n{};
              if (!absl::SimpleAtoi(part, &n))
                return bad(key, value, "whole numbers, a/b/c for several");
              out.push_back(n);
            }
            if (out.size() > most)
              return bad(key, value, absl::StrCat("at most ", most, " numbers"));
            h.*field = std::move(out);
            return absl::OkStatus();
          },
          [field](const HyperParams& h) { return absl::StrJoin(h.*field, "/"); }};
}
template <typename E>
Access of_word(E HyperParams::*field, std::vector<std::pair<const char*, E>> words) {
  return {[field, words](const std::string& key, const std::string& value, HyperParams& h) {
            std::vector<std::string> known;
            for (const auto& [name, e] : words) {
              if (value == name) {
                h.*field = e;
                return absl::OkStatus();
              }
              known.emplace_back(name);
            }
            return bad(key, value, absl::StrJoin(known, ", "));
          },
          [field, words](const HyperParams& h) -> std::string {
            for (const auto& [name, e] : words)
              if (h.*field == e && e != E::kUnspecified) return name;
            return {};
          }};
}

const std::map<std::string, Access>& accesses() {
  using H = HyperParams;
  static const std::map<std::string, Access> kAccesses = {
      {"mu_weight", of_list(&H::mu_weight, 3)},
      {"mu_offset", of_number(&H::mu_offset)},
      {"batch", of_number(&H::batch)},
      {"epochs", of_number(&H::epochs)},
      {"dead_zone", of_number(&H::dead_zone)},
      {"k", of_number(&H::k)},
      {"layer_k", of_list(&H::layer_k, 16)},
      {"order_seed", of_number(&H::order_seed)},
      {"sr_seed", of_number(&H::sr_seed)},
      {"apt_k_max", of_number(&H::apt_k_max)},
      {"apt_t_min_q8", of_number(&H::apt_t_min_q8)},
      {"apt_t_max_q8", of_number(&H::apt_t_max_q8)},
      {"lr_m", of_list(&H::lr_m, 3)},
      {"lr_s", of_number(&H::lr_s)},
      {"policy", of_word<Policy>(&H::policy, {{"auto", Policy::kAuto}, {"fixed", Policy::kFixed}})},
      {"rule", of_word<RuleSet>(&H::rule_set, {{"niti", RuleSet::kNiti},
                                               {"niti-literal", RuleSet::kNitiLiteral},
                                               {"dfp16", RuleSet::kDfp16}})},
      {"rounding", of_word<Rounding>(&H::rounding, {{"half-up", Rounding::kHalfUp},
                                                    {"half-away", Rounding::kHalfAway},
                                                    {"psto", Rounding::kPsto},
                                                    {"sr", Rounding::kSr}})},
      {"loss", of_word<LossKind>(&H::loss, {{"mse", LossKind::kMse}, {"ce", LossKind::kCe}})},
      {"shift_source", of_word<ShiftSource>(&H::shift_source, {{"exact", ShiftSource::kExact},
                                                               {"stale", ShiftSource::kStale}})},
      {"apt", of_word<AptMode>(&H::apt, {{"off", AptMode::kUnspecified},
                                         {"quarters", AptMode::kQuarters},
                                         {"epochs", AptMode::kEpochs}})},
      {"apt_offsets", of_flag(&H::apt_offsets, false)},
      {"best_on_host", of_flag(&H::best_on_host, false)},
      {"blocked", of_flag(&H::blocked, false)},
      {"checkpoint_epochs", of_number(&H::checkpoint_epochs, false)},
      {"commit_every", of_number(&H::commit_every, false)},
      {"frozen", of_flag(&H::frozen, false)},
      {"guard", of_flag(&H::guard, false)},
      {"streamed", of_flag(&H::streamed, false)},
      {"telemetry_every", of_number(&H::telemetry_every, false)},
  };
  return kAccesses;
}

}  // namespace

const std::vector<HyperKey>& hyper_keys() {
  static const std::vector<HyperKey> kKeys = [] {
    std::vector<HyperKey> keys;
    for (const auto& [name, access] : accesses()) keys.push_back({name, access.sweeps});
    return keys;
  }();
  return kKeys;
}

Status set_hyper(const std::string& key, const std::string& value, HyperParams& hyper) {
  const auto it = accesses().find(key);
  if (it != accesses().end()) return it->second.set(key, value, hyper);
  std::vector<std::string> names;
  for (const auto& [name, access] : accesses()) names.push_back(name);
  return absl::InvalidArgumentError(
      absl::StrCat("no '", key, "'; there are ", absl::StrJoin(names, ", ")));
}

std::string hyper_text(const std::string& key, const HyperParams& hyper) {
  const auto it = accesses().find(key);
  return it == accesses().end() ? std::string() : it->second.text(hyper);
}

}  // namespace odt::model
