#include "cli/hyper_options.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "cli/text.h"
#include "odt/api/v1/types.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

template <typename Enum>
using Words = std::map<std::string, Enum>;
const Words<v1::Policy> kPolicies = {{"auto", v1::POLICY_AUTO}, {"fixed", v1::POLICY_FIXED}};
const Words<v1::Rounding> kRoundings = {{"half-up", v1::ROUNDING_HALF_UP},
                                        {"half-away", v1::ROUNDING_HALF_AWAY},
                                        {"psto", v1::ROUNDING_PSTO},
                                        {"sr", v1::ROUNDING_SR}};
const Words<v1::LossKind> kLosses = {{"mse", v1::LOSS_KIND_MSE}, {"ce", v1::LOSS_KIND_CE}};
const Words<v1::RuleSet> kRules = {{"niti", v1::RULE_SET_NITI},
                                   {"niti-literal", v1::RULE_SET_NITI_LITERAL},
                                   {"dfp16", v1::RULE_SET_DFP16}};
const Words<v1::AptMode> kAptChecks = {{"quarters", v1::APT_MODE_QUARTERS},
                                       {"epochs", v1::APT_MODE_EPOCHS}};
const Words<v1::ShiftSource> kShiftSources = {{"exact", v1::SHIFT_SOURCE_EXACT},
                                              {"stale", v1::SHIFT_SOURCE_STALE}};

template <typename Enum>
std::vector<std::string> words_of(const Words<Enum>& words) {
  std::vector<std::string> out;
  for (const auto& [word, value] : words) out.push_back(word);
  return out;
}

Result<std::uint32_t> q8(const char* option, double value, double least) {
  const double scaled = std::round(value * 256);
  if (value != 0 && scaled >= 1 && scaled <= 65535 && value >= least)
    return static_cast<std::uint32_t>(scaled);
  return absl::InvalidArgumentError(
      absl::StrCat(option, " is ", value, "; allowed ", std::max(least, 1.0 / 256), " to 255.99"));
}

// Rates as lr_m * 2^-lr_s with one exponent, the largest with 15 bits.
Status fill_lr(const std::vector<double>& lr, v1::HyperParams& h) {
  if (lr.size() != 1 && lr.size() != 3)
    return absl::InvalidArgumentError(absl::StrCat(
        "--lr has ", lr.size(), " values; give one (constant) or three (by thirds of the run)"));
  const double most = *std::max_element(lr.begin(), lr.end());
  std::uint32_t s = 0;
  while (s < 40 && std::round(std::ldexp(most, static_cast<int>(s + 1))) <= 32767) ++s;
  for (const double rate : lr) {
    const double m = std::round(std::ldexp(rate, static_cast<int>(s)));
    if (!(m >= 1 && m <= 32767))
      return absl::InvalidArgumentError(
          absl::StrCat("--lr: ", rate, " cannot be written as m * 2^-", s,
                       " with m from 1 to 32767; allowed are 1e-12 to 32767, not over 15 bits "
                       "apart"));
    h.add_lr_m(static_cast<std::uint32_t>(m));
  }
  h.set_lr_s(s);
  return {};
}

Status fill_precision(const CLI::App& verb, const HyperOptions& o, v1::HyperParams& h) {
  const auto given = [&](const char* name) { return verb.count(name) != 0; };
  for (const std::uint32_t k : o.layer_k) h.add_layer_k(k);
  if (o.apt || given("--apt-checks")) h.set_apt(kAptChecks.at(o.apt_checks));
  if (given("--apt-k-max")) h.set_apt_k_max(o.apt_k_max);
  if (o.apt_offsets) h.set_apt_offsets(true);
  double least = 0;
  if (given("--apt-t-min")) {
    ODT_ASSIGN(const std::uint32_t t, q8("--apt-t-min", o.apt_t_min, 0));
    h.set_apt_t_min_q8(t);
  }
  least = 4.0 * (given("--apt-t-min") ? h.apt_t_min_q8() : 77) / 256;
  if (given("--apt-t-max")) {
    ODT_ASSIGN(const std::uint32_t t, q8("--apt-t-max", o.apt_t_max, least));
    h.set_apt_t_max_q8(t);
  }
  if (o.blocked) h.set_blocked(true);
  return given("--lr") ? fill_lr(o.lr, h) : absl::OkStatus();
}

void fill_given(const CLI::App& verb, const HyperOptions& o, v1::HyperParams& h) {
  const auto given = [&](const char* name) { return verb.count(name) != 0; };
  if (given("--policy")) h.set_policy(kPolicies.at(o.policy));
  if (given("--rounding")) h.set_rounding(kRoundings.at(o.rounding));
  if (given("--loss")) h.set_loss(kLosses.at(o.loss));
  if (given("--rule")) h.set_rule_set(kRules.at(o.rule));
  if (given("--shift-source")) h.set_shift_source(kShiftSources.at(o.shift_source));
  for (const std::int32_t mu : o.mu_weight) h.add_mu_weight(mu);
  if (given("--mu-offset")) h.set_mu_offset(o.mu_offset);
  if (given("--dead-zone")) h.set_dead_zone(o.dead_zone);
  if (given("--k")) h.set_k(o.k);
  if (given("--batch")) h.set_batch(o.batch);
  if (given("--epochs")) h.set_epochs(o.epochs);
  if (given("--seed")) h.set_order_seed(o.seed);
  if (given("--sr-seed")) h.set_sr_seed(o.sr_seed);
  if (given("--telemetry-every")) h.set_telemetry_every(o.telemetry_every);
  if (given("--checkpoint-epochs")) h.set_checkpoint_epochs(o.checkpoint_epochs);
  if (given("--commit-every")) h.set_commit_every(o.commit_every);
  if (o.no_guard) h.set_guard(false);
  if (o.streamed) h.set_streamed(true);
  if (o.best_on_host) h.set_best_on_host(true);
  if (o.frozen != "auto") h.set_frozen(o.frozen == "on");
}

using Field = google::protobuf::FieldDescriptor;

// "half-up" as the number of ROUNDING_HALF_UP.
bool enum_number(const Field& field, const std::string& value, int& out) {
  std::string upper = absl::AsciiStrToUpper(value);
  std::replace(upper.begin(), upper.end(), '-', '_');
  const auto& type = *field.enum_type();
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string name(type.value(i)->name());
    if (name != upper && !name.ends_with("_" + upper)) continue;
    out = type.value(i)->number();
    return true;
  }
  return false;
}

bool put_value(const Field& field, const std::string& value, google::protobuf::Message& message) {
  const auto* r = message.GetReflection();
  std::int32_t s = 0;
  std::uint32_t u = 0;
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT32:
      if (!absl::SimpleAtoi(value, &s)) return false;
      field.is_repeated() ? r->AddInt32(&message, &field, s) : r->SetInt32(&message, &field, s);
      return true;
    case Field::CPPTYPE_UINT32:
      if (!absl::SimpleAtoi(value, &u)) return false;
      field.is_repeated() ? r->AddUInt32(&message, &field, u) : r->SetUInt32(&message, &field, u);
      return true;
    case Field::CPPTYPE_BOOL:
      if (value != "true" && value != "false") return false;
      r->SetBool(&message, &field, value == "true");
      return true;
    case Field::CPPTYPE_ENUM:
      if (!enum_number(field, value, s)) return false;
      r->SetEnumValue(&message, &field, s);
      return true;
    default:
      return false;
  }
}

}  // namespace

Status fill_hyper(const CLI::App& verb, const HyperOptions& o, v1::HyperParams& h) {
  if (o.mu_weight.size() != 0 && o.mu_weight.size() != 1 && o.mu_weight.size() != 3)
    return absl::InvalidArgumentError(
        absl::StrCat("--mu-weight has ", o.mu_weight.size(),
                     " values; give one (constant) or three (by thirds of the run)"));
  fill_given(verb, o, h);
  return fill_precision(verb, o, h);
}

Status set_by_name(const std::string& name, const std::string& value, v1::HyperParams& h) {
  const std::string known = name == "rule" ? "rule_set" : name;
  const Field* field = h.GetDescriptor()->FindFieldByName(known);
  if (field == nullptr) {
    std::vector<std::string> names;
    for (int i = 0; i < h.GetDescriptor()->field_count(); ++i)
      names.emplace_back(h.GetDescriptor()->field(i)->name());
    return absl::InvalidArgumentError("no setting '" + clean(name) + "'." +
                                      did_you_mean(name, names));
  }
  h.GetReflection()->ClearField(&h, field);
  const std::vector<std::string> parts =
      field->is_repeated() ? absl::StrSplit(value, '/') : std::vector<std::string>{value};
  for (const auto& part : parts)
    if (!put_value(*field, part, h))
      return absl::InvalidArgumentError("setting " + clean(name) + ": '" + clean(part) +
                                        "' is none of its values");
  return {};
}

void add_hyper_options(CLI::App* verb, HyperOptions& o) {
  verb->add_option("--policy", o.policy, "auto: chosen by the held-out accuracy; fixed: as given")
      ->check(CLI::IsMember(words_of(kPolicies)));
  verb->add_option("--epochs", o.epochs, "Passes over the training samples");
  verb->add_option("--mu-weight", o.mu_weight, "One shift, or three a,b,c by thirds of the run")
      ->delimiter(',');
  verb->add_option("--mu-offset", o.mu_offset, "-8 to 7");
  verb->add_option("--batch", o.batch, "Samples a step");
  verb->add_option("--k", o.k, "Bits of the stored weights, 2 to 16");
  verb->add_option("--layer-k", o.layer_k, "Bits of each trainable layer a,b,...; 0: those of --k")
      ->delimiter(',');
  verb->add_flag("--apt", o.apt,
                 "Adapt each layer's bits while training; starts at --k, default 6");
  verb->add_option("--apt-t-min", o.apt_t_min, "Mean update in steps below: one bit more (0.3)");
  verb->add_option("--apt-t-max", o.apt_t_max,
                   "Above: one bit less; at least 4 times t-min (never)");
  verb->add_option("--apt-k-max", o.apt_k_max, "Most bits, 2 to 16; default: what memory allows");
  verb->add_option("--apt-checks", o.apt_checks, "When to look: quarters of an epoch, or epochs")
      ->check(CLI::IsMember(words_of(kAptChecks)));
  verb->add_flag("--apt-offsets", o.apt_offsets, "Adapt the offsets' steps too");
  verb->add_option("--lr", o.lr, "dfp16: rate on a batch's summed gradient, one or three a,b,c")
      ->delimiter(',');
  verb->add_flag("--blocked", o.blocked, "dfp16: an exponent for every output");
  verb->add_option("--rounding", o.rounding, "Of the weight update")
      ->check(CLI::IsMember(words_of(kRoundings)));
  verb->add_option("--loss", o.loss, "Default: ce where the model has a scale")
      ->check(CLI::IsMember(words_of(kLosses)));
  verb->add_option("--rule", o.rule, "Rule set")->check(CLI::IsMember(words_of(kRules)));
  verb->add_option("--shift-source", o.shift_source, "exact or stale")
      ->check(CLI::IsMember(words_of(kShiftSources)));
  verb->add_option("--dead-zone", o.dead_zone, "Updates below this are none");
  verb->add_option("--seed", o.seed, "Order of the samples");
  verb->add_option("--sr-seed", o.sr_seed, "Of stochastic rounding");
  verb->add_option("--telemetry-every", o.telemetry_every, "Report every Nth step");
  verb->add_option("--checkpoint-epochs", o.checkpoint_epochs, "State to the host every N epochs");
  verb->add_option("--commit-every", o.commit_every,
                   "State to the board's own non-volatile memory every N steps, and at the end");
  verb->add_flag("--streamed", o.streamed, "Send batches; the board keeps no samples");
  verb->add_flag("--best-on-host", o.best_on_host,
                 "The guard's best weights stay with odtd; default: where the board lacks room");
  verb->add_option("--frozen", o.frozen,
                   "Train on outputs of the frozen layers, made once by odtd: on, off, or auto: "
                   "where the board lacks room for the whole model and the samples")
      ->check(CLI::IsMember({"on", "off", "auto"}));
  verb->add_flag("--no-guard", o.no_guard, "Keep the last weights, even if they became worse");
}

}  // namespace odt::cli
