#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/follow.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

struct Options {
  std::string board, model, data, start, name;
  std::string policy, rounding, loss, rule, shift_source, frozen = "auto";
  std::vector<std::int32_t> mu_weight;
  std::int32_t mu_offset = 0;
  std::uint32_t epochs = 0, batch = 0, k = 0, dead_zone = 0, seed = 0, sr_seed = 0;
  std::vector<std::uint32_t> layer_k;
  std::vector<double> lr;
  double apt_t_min = 0, apt_t_max = 0;
  std::uint32_t apt_k_max = 0;
  std::string apt_checks = "quarters";
  bool apt = false, apt_offsets = false, blocked = false;
  std::uint32_t telemetry_every = 0, checkpoint_epochs = 0, commit_every = 0, resume_deadline_s = 0;
  std::int32_t priority = 0;
  bool streamed = false, best_on_host = false, no_guard = false, evaluate = false, detach = false,
       dry_run = false, captured = false;
};

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

Status fill_precision(const CLI::App& verb, const Options& o, v1::HyperParams& h) {
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

// Which options were given: absent ones are left to the policy.
void fill_hyper(const CLI::App& verb, const Options& o, v1::HyperParams& h) {
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

Result<v1::CreateRunRequest> build(const CLI::App& verb, const Options& o, Context& context) {
  if (o.captured == !o.data.empty())
    return absl::InvalidArgumentError(
        o.captured ? "--captured and --data: a run is on the one or the other"
                   : "on what? Give --data, or --captured for the samples that the board captured");
  if (o.mu_weight.size() != 0 && o.mu_weight.size() != 1 && o.mu_weight.size() != 3)
    return absl::InvalidArgumentError(
        absl::StrCat("--mu-weight has ", o.mu_weight.size(),
                     " values; give one (constant) or three (by thirds of the run)"));
  v1::CreateRunRequest request;
  v1::RunSpec& spec = *request.mutable_spec();
  ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
  ODT_ASSIGN(const v1::Model model, find_model(context, o.model));
  if (!o.layer_k.empty() && model.trainable_layers() != 0 &&
      o.layer_k.size() != model.trainable_layers())
    return absl::InvalidArgumentError(absl::StrCat(
        "--layer-k has ", o.layer_k.size(), " values; model '", clean(model.name()), "' has ",
        model.trainable_layers(), " trainable layers: give one for each, 0 for that of --k"));
  spec.set_board_uid(board.uid());
  spec.set_model_hash(model.hash());
  if (o.captured) {
    spec.set_captured(true);
  } else {
    ODT_ASSIGN(const v1::Dataset dataset, find_dataset(context, o.data));
    spec.set_dataset_id(dataset.id());
  }
  if (!o.start.empty()) {
    ODT_ASSIGN(const v1::Snapshot start, find_snapshot(context, o.start));
    spec.set_start_snapshot(start.hash());
  }
  spec.set_name(o.name);
  spec.set_evaluate(o.evaluate);
  spec.set_resume_deadline_s(o.resume_deadline_s);
  spec.set_priority(o.priority);
  fill_hyper(verb, o, *spec.mutable_hyper());
  ODT_TRY(fill_precision(verb, o, *spec.mutable_hyper()));
  request.set_dry_run(o.dry_run);
  return request;
}

std::string basis_text(v1::RunEstimate::Basis basis) {
  switch (basis) {
    case v1::RunEstimate::BASIS_THIS_BOARD:
      return "measured on this board";
    case v1::RunEstimate::BASIS_SAME_CORE:
      return "measured on a board of this type";
    case v1::RunEstimate::BASIS_SCALED:
      return "measured with another model, scaled by instructions";
    case v1::RunEstimate::BASIS_PREDICTED:
      return "predicted by instructions and the board's clock";
    default:
      return "not known: no run has measured this type of board yet";
  }
}

// JSON: the run with the estimate in it.
void show_estimate(Context& context, const v1::CreateRunResponse& response) {
  const v1::RunEstimate& e = response.estimate();
  if (context.json) {
    nlohmann::ordered_json out = to_json(response.run());
    out["estimate"] = to_json(e);
    context.print_json(out);
    return;
  }
  context.say("the run could start");
  Table table({"time", e.total_us() == 0 ? "not known" : duration_text(e.total_us())});
  if (e.total_us() != 0)
    table.add({"", "prepare " + duration_text(e.prepare_us()) + ", train " +
                       duration_text(e.train_us()) + ", evaluate " +
                       duration_text(e.evaluate_us())});
  table.add(
      {"steps", absl::StrCat(e.steps(),
                             e.step_us() == 0 ? std::string() : " of " + duration_text(e.step_us()),
                             " (", basis_text(e.basis()), ")")});
  table.add({"link", size_text(e.send_bytes()) + " at " + size_text(e.link_bytes_per_s()) + "/s" +
                         (e.link_measured() ? " (measured)" : " (assumed)")});
  table.add({"memory", e.board_ram_bytes() == 0
                           ? size_text(e.ram_bytes())
                           : size_text(e.ram_bytes()) + " of " + size_text(e.board_ram_bytes())});
  if (!e.placement().empty()) table.add({"fit", e.placement()});
  table.add(
      {"disk", size_text(e.disk_bytes()) + " of " + size_text(e.disk_free_bytes()) + " free"});
  if (e.queue_us() != 0)
    table.add({"waits", e.queue_us() < 0 ? "for runs whose end is not known"
                                         : "about " + duration_text(e.queue_us())});
  context.print(table);
  for (const auto& warning : e.warnings())
    context.say("warning: " + warning.text() + ". " + warning.remedy());
}

Status train(const CLI::App& verb, const Options& o, Context& context) {
  ODT_ASSIGN(const v1::CreateRunRequest request, build(verb, o, context));
  ODT_ASSIGN(const auto response, context.call<v1::CreateRunResponse>(request));
  const v1::Run& run = response.run();
  if (o.dry_run) {
    show_estimate(context, response);
    return {};
  }
  for (const auto& warning : run.warnings()) context.note("warning: " + warning.text());
  if (o.detach) {
    if (context.json) context.print_json(run);
    context.say("run " + hex(run.id()) + " " + state_word(run.state()));
    return {};
  }
  context.say("run " + hex(run.id()) + "  " + o.model + " on " + o.board + " with " +
              (o.captured ? "what it captured" : o.data));
  return follow_run(context, run.id());
}

void add_rule_options(CLI::App* verb, Options& o) {
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

}  // namespace

void add_train(CLI::App& app, Context& context) {
  const auto o = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("train", "Train a model on a board and watch it learn");
  verb->add_option("--board", o->board, "Name, or beginning of the uid")->required();
  verb->add_option("--model", o->model, "Name, or beginning of the hash")->required();
  verb->add_option("--data", o->data, "Name, or beginning of the id");
  verb->add_flag("--captured", o->captured,
                 "On the windows that the board captured and labelled, which stay there");
  verb->add_option("--name", o->name, "Of the run");
  verb->add_option("--start", o->start, "Begin with this snapshot (alias or hash)");
  verb->add_option("--resume-deadline", o->resume_deadline_s, "Seconds to wait for a lost board");
  verb->add_option("--priority", o->priority, "Of runs that wait: the highest goes first (0)")
      ->check(CLI::Range(-100, 100));
  add_rule_options(verb, *o);
  verb->add_flag("--evaluate", o->evaluate, "Measure the test split before and after");
  verb->add_flag("--detach", o->detach, "Do not watch");
  verb->add_flag("--dry-run", o->dry_run, "Check everything, start nothing; time, disk, fit");
  verb->callback([&context, o, verb] {
    context.action = [&context, o, verb] { return train(*verb, *o, context); };
  });
}

}  // namespace odt::cli
