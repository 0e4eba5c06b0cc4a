// Campaigns: runs over a cohort of boards.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/campaign_view.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/hyper_options.h"
#include "cli/lookup.h"
#include "odt/api/v1/campaigns.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

struct Options {
  HyperOptions hyper;
  std::string cohort, model, data, name, start;
  std::vector<std::string> boards, data_of, sweep, b_set;
  std::string strategy = "grid", board_a, board_b, snapshot, split = "heldout", phases;
  std::uint32_t resume_deadline_s = 0, parallel = 0;
  std::uint32_t trials = 0, sweep_seed = 0, eta = 0, min_epochs = 0, budget_s = 0;
  std::uint32_t rounds = 0, min_boards = 0, deadline_s = 0, personalise = 0;
  double canary = 10, max_drop = 2, outlier = 3;
  bool evaluate = false, detach = false, dry_run = false, commit = false;
};

const std::map<std::string, v1::SweepStrategy> kStrategies = {
    {"grid", v1::SWEEP_STRATEGY_GRID},
    {"random", v1::SWEEP_STRATEGY_RANDOM},
    {"halving", v1::SWEEP_STRATEGY_HALVING}};

Result<std::uint32_t> ppm(const char* option, double percent) {
  if (percent >= 0 && percent <= 100)
    return static_cast<std::uint32_t>(std::lround(percent * 10'000));
  return absl::InvalidArgumentError(absl::StrCat(option, " is ", percent, "; allowed 0 to 100"));
}

Result<std::pair<std::string, std::string>> pair_of(const char* option, const std::string& text) {
  const auto at = text.find('=');
  if (at == 0 || at == std::string::npos || at + 1 == text.size())
    return absl::InvalidArgumentError(
        absl::StrCat(option, " is '", clean(text), "'; write NAME=VALUE"));
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

Status fill_cohort(Context& context, const Options& o, v1::CampaignSpec& spec) {
  spec.set_query(o.cohort);
  for (const auto& name : o.boards) {
    ODT_ASSIGN(const v1::Board board, find_board(context, name));
    spec.add_boards(board.uid());
  }
  for (const auto& text : o.data_of) {
    ODT_ASSIGN(const auto pair, pair_of("--data-of", text));
    ODT_ASSIGN(const v1::Board board, find_board(context, pair.first));
    ODT_ASSIGN(const v1::Dataset data, find_dataset(context, pair.second));
    auto* item = spec.add_datasets();
    item->set_board_uid(board.uid());
    item->set_dataset_id(data.id());
  }
  return {};
}

Status fill_common(const CLI::App& verb, Context& context, const Options& o,
                   v1::CampaignSpec& spec) {
  spec.set_name(o.name);
  ODT_TRY(fill_cohort(context, o, spec));
  if (!o.model.empty()) {
    ODT_ASSIGN(const v1::Model model, find_model(context, o.model));
    spec.set_model_hash(model.hash());
  }
  if (!o.data.empty()) {
    ODT_ASSIGN(const v1::Dataset data, find_dataset(context, o.data));
    spec.set_dataset_id(data.id());
  }
  if (!o.start.empty()) {
    ODT_ASSIGN(const v1::Snapshot start, find_snapshot(context, o.start));
    spec.set_start_snapshot(start.hash());
  }
  spec.set_evaluate(o.evaluate);
  spec.set_resume_deadline_s(o.resume_deadline_s);
  spec.set_max_parallel(o.parallel);
  if (spec.kind() == v1::CAMPAIGN_KIND_ROLLOUT) return {};
  return fill_hyper(verb, o.hyper, *spec.mutable_hyper());
}

Status fill_sweep(const CLI::App& verb, const Options& o, v1::CampaignSpec& spec) {
  if (o.sweep.empty()) {
    for (const char* option : {"--strategy", "--trials", "--eta", "--min-epochs", "--budget"})
      if (verb.count(option) != 0)
        return absl::InvalidArgumentError(
            absl::StrCat(option, " needs an axis: --sweep mu_weight=0,1,2"));
    return {};
  }
  spec.set_kind(v1::CAMPAIGN_KIND_SWEEP);
  auto& sweep = *spec.mutable_sweep();
  sweep.set_strategy(kStrategies.at(o.strategy));
  for (const auto& text : o.sweep) {
    ODT_ASSIGN(const auto pair, pair_of("--sweep", text));
    auto* axis = sweep.add_axes();
    axis->set_name(pair.first == "trainable" ? "trainable_layers" : pair.first);
    for (const auto part : absl::StrSplit(pair.second, ',')) axis->add_values(std::string(part));
  }
  sweep.set_trials(o.trials);
  sweep.set_seed(o.sweep_seed);
  sweep.set_eta(o.eta);
  sweep.set_min_epochs(o.min_epochs);
  sweep.set_budget_board_s(o.budget_s);
  return {};
}

Status fill_twin(Context& context, const Options& o, v1::CampaignSpec& spec) {
  for (const auto& name : {o.board_a, o.board_b.empty() ? o.board_a : o.board_b}) {
    ODT_ASSIGN(const v1::Board board, find_board(context, name));
    spec.add_boards(board.uid());
  }
  if (o.b_set.empty()) return {};
  *spec.mutable_hyper_b() = spec.hyper();
  for (const auto& text : o.b_set) {
    ODT_ASSIGN(const auto pair, pair_of("--b", text));
    ODT_TRY(set_by_name(pair.first, pair.second, *spec.mutable_hyper_b()));
  }
  return {};
}

Status fill_rollout(Context& context, const Options& o, v1::CampaignSpec& spec) {
  auto& r = *spec.mutable_rollout();
  ODT_ASSIGN(const v1::Snapshot snapshot, find_snapshot(context, o.snapshot));
  r.set_snapshot(snapshot.hash());
  ODT_ASSIGN(const auto canary, ppm("--canary", o.canary));
  r.set_canary_ppm(canary);
  ODT_ASSIGN(const auto drop, ppm("--max-drop", o.max_drop));
  r.set_max_drop_ppm(std::max(drop, 1u));  // 0 stands for the default
  if (!o.phases.empty())
    for (const auto part : absl::StrSplit(o.phases, ',')) {
      double percent = 0;
      if (!absl::SimpleAtod(part, &percent))
        return absl::InvalidArgumentError("--phases is '" + clean(o.phases) + "'; write 25,50,100");
      ODT_ASSIGN(const auto phase, ppm("--phases", percent));
      r.add_phases_ppm(phase);
    }
  r.set_split(o.split);
  r.set_commit(o.commit);
  return {};
}

Status fill_federated(const Options& o, v1::CampaignSpec& spec) {
  auto& f = *spec.mutable_federated();
  f.set_rounds(o.rounds);
  f.set_min_boards(o.min_boards);
  f.set_deadline_s(o.deadline_s);
  f.set_personalise_epochs(o.personalise);
  if (o.outlier != 0 && !(o.outlier >= 1 && o.outlier <= 1e6))
    return absl::InvalidArgumentError(
        absl::StrCat("--outlier is ", o.outlier, "; allowed 1 to 1000000, or 0: never"));
  f.set_outlier_q8(o.outlier == 0 ? 0xFFFFFFFFu
                                  : static_cast<std::uint32_t>(std::lround(o.outlier * 256)));
  return {};
}

Status create(const CLI::App& verb, Context& context, const Options& o, v1::CampaignKind kind) {
  v1::CreateCampaignRequest request;
  auto& spec = *request.mutable_spec();
  spec.set_kind(kind);
  ODT_TRY(fill_common(verb, context, o, spec));
  switch (kind) {
    case v1::CAMPAIGN_KIND_TWIN:
      ODT_TRY(fill_twin(context, o, spec));
      break;
    case v1::CAMPAIGN_KIND_ROLLOUT:
      ODT_TRY(fill_rollout(context, o, spec));
      break;
    case v1::CAMPAIGN_KIND_FEDERATED:
      ODT_TRY(fill_federated(o, spec));
      break;
    default:
      ODT_TRY(fill_sweep(verb, o, spec));
  }
  request.set_dry_run(o.dry_run);
  ODT_ASSIGN(const auto response, context.call<v1::CreateCampaignResponse>(request));
  if (o.dry_run) return show_checks(context, response);
  const auto& c = response.campaign();
  if (o.detach) {
    if (context.json) context.print_json(c);
    context.say("campaign " + hex(c.id()));
    return {};
  }
  context.say(absl::StrCat("campaign ", hex(c.id()), "  ", c.units_total(), " units on ",
                           c.boards_size(), " boards"));
  return follow_campaign(context, c.id());
}

void add_common(CLI::App* verb, Options& o, bool cohort, bool training) {
  if (cohort) {
    verb->add_option("--cohort", o.cohort,
                     "Boards by labels and fields: site=lab,target!=m33,!broken");
    verb->add_option("--board", o.boards, "This board too; may come several times");
    verb->add_option("--parallel", o.parallel, "Boards at work at a time; default: all");
  }
  verb->add_option("--data-of", o.data_of, "BOARD=DATA: what one board uses instead of --data");
  verb->add_option("--data", o.data, "Name, or beginning of the id");
  verb->add_option("--name", o.name, "Of the campaign; also in names of its runs and snapshots");
  verb->add_option("--resume-deadline", o.resume_deadline_s, "Seconds to wait for a lost board");
  if (training) {
    verb->add_option("--model", o.model, "Name, or beginning of the hash")->required();
    verb->add_option("--start", o.start, "Begin with this snapshot (alias or hash)");
    add_hyper_options(verb, o.hyper);
    verb->add_flag("--evaluate", o.evaluate, "Measure the test split before and after each run");
  }
  verb->add_flag("--detach", o.detach, "Do not watch");
  verb->add_flag("--dry-run", o.dry_run, "Check every board, start nothing");
}

CLI::App* add_kind(CLI::App& parent, Context& context, const char* name, const char* help,
                   v1::CampaignKind kind, const std::shared_ptr<Options>& o) {
  CLI::App* verb = parent.add_subcommand(name, help);
  verb->callback([&context, o, verb, kind] {
    context.action = [&context, o, verb, kind] { return create(*verb, context, *o, kind); };
  });
  return verb;
}

void add_create(CLI::App& parent, Context& context) {
  const auto o = std::make_shared<Options>();
  CLI::App* verb = add_kind(parent, context, "create",
                            "The same run on every board; with --sweep: trials of settings",
                            v1::CAMPAIGN_KIND_SAME, o);
  add_common(verb, *o, true, true);
  verb->add_option("--sweep", o->sweep,
                   "AXIS=V1,V2,...; may come several times; a/b/c: by thirds; 0..4: five values; "
                   "trainable=1,2: models of one ONNX file");
  std::vector<std::string> words;
  for (const auto& [word, value] : kStrategies) words.push_back(word);
  verb->add_option("--strategy", o->strategy, "grid, random, or successive halving")
      ->check(CLI::IsMember(words));
  verb->add_option("--trials", o->trials, "random, halving: how many combinations; default: all");
  verb->add_option("--sweep-seed", o->sweep_seed, "random, halving: which ones");
  verb->add_option("--eta", o->eta, "halving: the best 1/ETA go on; default 3");
  verb->add_option("--min-epochs", o->min_epochs, "halving: epochs of the first rung; default 1");
  verb->add_option("--budget", o->budget_s, "Begin no trial after so many seconds on boards");
}

void add_others(CLI::App& parent, Context& context) {
  const auto t = std::make_shared<Options>();
  CLI::App* twin = add_kind(parent, context, "twin", "Two runs that differ in one thing",
                            v1::CAMPAIGN_KIND_TWIN, t);
  twin->add_option("--a", t->board_a, "Board A")->required();
  twin->add_option("--b-board", t->board_b, "Board B; default: A again");
  twin->add_option("--b", t->b_set, "NAME=VALUE: a setting of B; may come several times");
  add_common(twin, *t, false, true);

  const auto r = std::make_shared<Options>();
  CLI::App* rollout = add_kind(parent, context, "rollout", "A snapshot to every board, in phases",
                               v1::CAMPAIGN_KIND_ROLLOUT, r);
  rollout->add_option("--snapshot", r->snapshot, "Alias, or beginning of the hash")->required();
  rollout->add_option("--canary", r->canary, "Percent of the boards that go first (10)");
  rollout->add_option("--phases", r->phases, "Percent after each phase: 25,50,100");
  rollout->add_option("--max-drop", r->max_drop, "Points of accuracy that a board may lose (2)");
  rollout->add_option("--split", r->split, "Measured before and after")
      ->check(CLI::IsMember({"heldout", "test"}));
  rollout->add_flag("--commit", r->commit, "Into the boards' non-volatile memory at the end");
  add_common(rollout, *r, true, false);

  const auto f = std::make_shared<Options>();
  CLI::App* federated =
      add_kind(parent, context, "federated", "Rounds: train on every board, average",
               v1::CAMPAIGN_KIND_FEDERATED, f);
  federated->add_option("--rounds", f->rounds, "How many")->required();
  federated->add_option("--min-boards", f->min_boards, "Least of a round; default: half");
  federated->add_option("--deadline", f->deadline_s,
                        "Seconds of a round; later boards are left out");
  federated->add_option("--outlier", f->outlier,
                        "Left out: drift over so many medians (3); 0: never");
  federated->add_option("--personalise", f->personalise,
                        "Epochs on each board after the last round");
  add_common(federated, *f, true, true);
}

template <typename Request, typename Response>
Status act(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Campaign c, find_campaign(context, word));
  Request request;
  request.set_id(c.id());
  ODT_ASSIGN(const auto response, context.call<Response>(request));
  if (context.json) context.print_json(response.campaign());
  context.say(
      "campaign " + hex(c.id()).substr(0, 16) + " " +
      without_prefix(v1::CampaignState_Name(response.campaign().state()), "CAMPAIGN_STATE_"));
  return {};
}

Status remove(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Campaign c, find_campaign(context, word));
  v1::DeleteCampaignRequest request;
  request.set_id(c.id());
  ODT_TRY(context.call<v1::DeleteCampaignResponse>(request));
  if (context.json) context.print_json(nlohmann::ordered_json{{"deleted", hex(c.id())}});
  context.say("campaign " + hex(c.id()).substr(0, 16) + " is forgotten; its runs stay");
  return {};
}

void add_verb(CLI::App& parent, Context& context, const char* name, const char* help,
              Status (*what)(Context&, const std::string&)) {
  const auto word = std::make_shared<std::string>();
  CLI::App* verb = parent.add_subcommand(name, help);
  verb->add_option("CAMPAIGN", *word, "Name, or beginning of the id")->required();
  verb->callback([&context, word, what] {
    context.action = [&context, word, what] { return what(context, *word); };
  });
}

}  // namespace

void add_campaign(CLI::App& app, Context& context) {
  CLI::App* campaign = app.add_subcommand(
      "campaign", "Campaigns over boards: create, twin, rollout, federated, list, show, wait, ...");
  campaign->require_subcommand(1);
  add_create(*campaign, context);
  add_others(*campaign, context);
  const auto filter = std::make_shared<std::string>();
  CLI::App* list = campaign->add_subcommand("list", "All campaigns, newest first");
  list->add_option("--filter", *filter, "state=RUNNING,kind=SWEEP");
  list->callback([&context, filter] {
    context.action = [&context, filter] { return list_campaigns(context, *filter); };
  });
  add_verb(*campaign, context, "show", "A campaign with its units and rounds",
           [](Context& c, const std::string& word) -> Status {
             ODT_ASSIGN(const v1::Campaign found, find_campaign(c, word));
             return show_campaign(c, found);
           });
  add_verb(*campaign, context, "wait", "Follow it until it ends",
           [](Context& c, const std::string& word) -> Status {
             ODT_ASSIGN(const v1::Campaign found, find_campaign(c, word));
             return follow_campaign(c, found.id());
           });
  add_verb(*campaign, context, "pause", "Begin nothing new, pause its runs",
           act<v1::PauseCampaignRequest, v1::PauseCampaignResponse>);
  add_verb(*campaign, context, "resume", "Go on",
           act<v1::ResumeCampaignRequest, v1::ResumeCampaignResponse>);
  add_verb(*campaign, context, "cancel", "Cancel its runs and end it",
           act<v1::CancelCampaignRequest, v1::CancelCampaignResponse>);
  add_verb(*campaign, context, "retry", "Do once more what failed",
           act<v1::RetryCampaignRequest, v1::RetryCampaignResponse>);
  add_verb(*campaign, context, "delete", "Forget one that is over; its runs stay", remove);
  const auto run = std::make_shared<std::string>();
  CLI::App* account =
      campaign->add_subcommand("account", "Energy and memory of a run, against fp32");
  account->add_option("RUN", *run, "Name, or beginning of the id")->required();
  account->callback([&context, run] {
    context.action = [&context, run] { return show_accounting(context, *run); };
  });
}

}  // namespace odt::cli
