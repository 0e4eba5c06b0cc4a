// Runs and jobs.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/follow.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "cli/resolve.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

std::string data_word(const Names& names, const v1::RunSpec& spec) {
  return spec.captured() ? "(captured)" : names.dataset(spec.dataset_id());
}

Status list(Context& context, const std::string& filter) {
  ODT_ASSIGN(Client * client, context.client());
  v1::ListRunsRequest request;
  request.set_filter(filter);
  ODT_ASSIGN(const auto runs,
             client->list<v1::ListRunsResponse>(request, [](auto& r) { return r.runs(); }));
  auto out = nlohmann::ordered_json::array();
  std::vector<std::string> keys;
  for (const auto& run : runs) keys.push_back(run.id());
  ODT_ASSIGN(const Names names, Names::read(context));
  Table table(
      {"RUN", "STATE", "BOARD", "MODEL", "DATA", "EPOCHS", "STEPS", "HELD-OUT", "TEST", "NAME"});
  for (const auto& r : runs) {
    out.push_back(to_json(r));
    table.add({short_key(r.id(), keys), state_word(r.state()), names.board(r.spec().board_uid()),
               names.model(r.spec().model_hash()), data_word(names, r.spec()),
               std::to_string(r.epochs_done()), absl::StrCat(r.steps_done(), "/", r.steps_total()),
               score_text(r.heldout_best(), r.heldout_best_loss(), r.outputs()),
               score_text(r.before(), r.before_loss(), r.outputs()) + " -> " +
                   score_text(r.after(), r.after_loss(), r.outputs()),
               r.spec().name()});
  }
  if (context.json) context.print_json(out);
  context.print(table);
  return {};
}

std::string hyper_text(const v1::HyperParams& h) {
  std::string out = without_prefix(v1::RuleSet_Name(h.rule_set()), "RULE_SET_");
  absl::StrAppend(&out, ", mu_weight ", join_numbers(h.mu_weight(), ","), ", mu_offset ",
                  h.mu_offset(), ", k ", h.k(), ", batch ", h.batch(), ", epochs ", h.epochs(),
                  ", ", without_prefix(v1::Rounding_Name(h.rounding()), "ROUNDING_"), ", ",
                  without_prefix(v1::LossKind_Name(h.loss()), "LOSS_KIND_"), ", seed ",
                  h.order_seed(), h.streamed() ? ", streamed" : "", h.guard() ? "" : ", no guard",
                  h.best_on_host() ? ", best weights kept on the host" : "",
                  h.tail()     ? ", trainable part on frozen outputs"
                  : h.frozen() ? ", frozen outputs"
                               : "");
  if (h.commit_every() != 0) absl::StrAppend(&out, ", commit every ", h.commit_every(), " steps");
  if (h.layer_k_size() > 0) absl::StrAppend(&out, ", layer_k ", join_numbers(h.layer_k(), ","));
  if (h.apt() != v1::APT_MODE_UNSPECIFIED)
    absl::StrAppend(&out, ", APT by ", without_prefix(v1::AptMode_Name(h.apt()), "APT_MODE_"),
                    ", t_min ", h.apt_t_min_q8(), "/256, t_max ", h.apt_t_max_q8(), "/256",
                    h.apt_offsets() ? ", offsets too" : "");
  if (h.apt_k_max() != 0) absl::StrAppend(&out, ", k up to ", h.apt_k_max());
  if (h.rule_set() == v1::RULE_SET_DFP16)
    absl::StrAppend(&out, ", lr ", join_numbers(h.lr_m(), ","), " * 2^-", h.lr_s(),
                    h.blocked() ? ", blocked" : "");
  return out;
}

std::string replay_word(v1::Run::ReplayVerdict verdict) {
  if (verdict == v1::Run::REPLAY_VERDICT_UNSPECIFIED) return "not done";
  if (verdict == v1::Run::REPLAY_VERDICT_NOT_POSSIBLE)
    return "not possible: the samples that the board captured never left it";
  return without_prefix(v1::Run::ReplayVerdict_Name(verdict), "REPLAY_VERDICT_");
}

Status show(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Run r, find_run(context, word));
  if (context.json) {
    context.print_json(r);
    return {};
  }
  ODT_ASSIGN(const Names names, Names::read(context));
  Table table({"run", hex(r.id())});
  table.add({"name", r.spec().name().empty() ? "-" : r.spec().name()});
  table.add({"board", names.board(r.spec().board_uid())});
  table.add({"model", names.model(r.spec().model_hash())});
  table.add({"data", data_word(names, r.spec())});
  table.add({"attempt", std::to_string(r.attempt())});
  table.add({"steps", absl::StrCat(r.steps_done(), " of ", r.steps_total())});
  table.add({"rules", hyper_text(r.effective())});
  table.add({"priority", std::to_string(r.priority())});
  if (!r.retry_of().empty()) table.add({"does again", hex(r.retry_of())});
  if (r.timing().step_us() != 0)
    table.add({"measured", duration_text(r.timing().step_us()) + " a step, link " +
                               size_text(r.timing().link_bytes_per_s()) + "/s"});
  if (r.eta_time_us() != 0) table.add({"ends", eta_text(r)});
  if (!r.verdict_text().empty()) table.add({"guard", r.verdict_text()});
  for (const auto& warning : r.warnings()) table.add({"warning", warning.text()});
  table.add({"replay", replay_word(r.replay())});
  if (!r.reason().text().empty())
    table.add({"why", r.reason().text() + (r.reason().remedy().empty() ? "" : "; ") +
                          r.reason().remedy()});
  context.print(table);
  show_result(context, r);
  return {};
}

template <typename Response, typename Request>
Status set_desired(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Run run, find_run(context, word));
  Request request;
  request.set_id(run.id());
  ODT_ASSIGN(const auto response, context.call<Response>(request));
  if (context.json) context.print_json(response.run());
  context.say("run " + hex(response.run().id()) + " " + state_word(response.run().state()) +
              ", wanted: " +
              without_prefix(v1::DesiredState_Name(response.run().desired()), "DESIRED_STATE_"));
  return {};
}

Status events(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Run run, find_run(context, word));
  v1::ListRunEventsRequest request;
  request.set_run_id(run.id());
  ODT_ASSIGN(const auto response, context.call<v1::ListRunEventsResponse>(request));
  auto out = nlohmann::ordered_json::array();
  Table table({"SEQ", "TIME", "FROM", "TO", "BY", "CAUSE"});
  for (const auto& e : response.events()) {
    out.push_back(to_json(e));
    table.add({std::to_string(e.seq()), clock_text(e.time_us()), state_word(e.from()),
               state_word(e.to()), e.actor(), e.cause()});
  }
  if (context.json) context.print_json(out);
  context.print(table);
  return {};
}

std::string layer_bits(const v1::EpochResult& e) {
  std::vector<std::uint32_t> ks;
  for (const auto& l : e.layers()) ks.push_back(l.k());
  return join_numbers(ks, " ");
}

Status epochs(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Run run, find_run(context, word));
  v1::ListEpochsRequest request;
  request.set_run_id(run.id());
  ODT_ASSIGN(const auto response, context.call<v1::ListEpochsResponse>(request));
  auto out = nlohmann::ordered_json::array();
  Table table({"ATTEMPT", "EPOCH", "STEP", "LOSS", "TRAIN", "HELD-OUT", "BEST STEP", "K", "STATE"});
  const bool classes = has_classes(run.outputs());
  for (const auto& e : response.epochs()) {
    out.push_back(to_json(e));
    table.add({std::to_string(e.attempt()), std::to_string(e.epoch() + 1), std::to_string(e.step()),
               classes ? loss_text(e.loss()) : "-", score_text(e.train(), e.loss(), run.outputs()),
               score_text(e.heldout(), e.heldout_loss(), run.outputs()),
               std::to_string(e.best_step()), layer_bits(e), hex(e.state_hash()).substr(0, 12)});
  }
  if (context.json) context.print_json(out);
  context.print(table);
  if (!classes) context.say("mse: " + error_unit(run.outputs()));
  return {};
}

// Exit 6 where the host's replay ends in another state than the board.
Status replay(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Run run, find_run(context, word));
  v1::ReplayRunRequest request;
  request.set_run_id(run.id());
  ODT_ASSIGN(const auto response, context.call<v1::ReplayRunResponse>(request));
  ODT_ASSIGN(const v1::Job job, wait_for_job(context, response.job()));
  v1::GetRunRequest get;
  get.set_id(run.id());
  ODT_ASSIGN(const auto after, context.call<v1::GetRunResponse>(get));
  if (context.json) {
    nlohmann::ordered_json out = to_json(after.run());
    out["replay_result"] = nlohmann::ordered_json::parse(job.result_json(), nullptr, false);
    context.print_json(out);
  }
  const bool equal = after.run().replay() == v1::Run::REPLAY_VERDICT_EQUAL;
  context.say(equal ? "equal: board and host end in the same training state" : job.result_json());
  if (equal) return {};
  return with_exit(absl::DataLossError("board and host differ"), kExitRunFailed);
}

void add_jobs(CLI::App& app, Context& context) {
  CLI::App* job = app.add_subcommand("job", "Work in the daemon: list, show, cancel");
  job->require_subcommand(1);
  const auto word = std::make_shared<std::string>();
  const auto find = [&context, word]() -> Result<v1::Job> {
    ODT_ASSIGN(Client * client, context.client());
    ODT_ASSIGN(const auto jobs, client->list<v1::ListJobsResponse>(
                                    v1::ListJobsRequest(), [](auto& r) { return r.jobs(); }));
    std::vector<Candidate> candidates;
    for (const auto& j : jobs) candidates.push_back({j.id(), "", {}});
    ODT_ASSIGN(const std::size_t index, resolve("job", *word, candidates));
    return jobs[static_cast<int>(index)];
  };
  const auto print = [&context](const v1::Job& j) {
    if (context.json) context.print_json(j);
    context.say(hex(j.id()) + "  " + job_word(j) + "  " + j.message() + " " + j.reason().text());
  };
  CLI::App* sub = job->add_subcommand("list", "All jobs, newest first");
  sub->callback([&context] {
    context.action = [&context]() -> Status {
      ODT_ASSIGN(Client * client, context.client());
      ODT_ASSIGN(const auto jobs, client->list<v1::ListJobsResponse>(
                                      v1::ListJobsRequest(), [](auto& r) { return r.jobs(); }));
      auto out = nlohmann::ordered_json::array();
      Table table({"JOB", "WHAT", "DONE", "MESSAGE"});
      for (const auto& j : jobs) {
        out.push_back(to_json(j));
        table.add({hex(j.id()), job_word(j), absl::StrCat(j.progress_permille() / 10, " %"),
                   j.reason().text().empty() ? j.message() : j.reason().text()});
      }
      if (context.json) context.print_json(out);
      context.print(table);
      return {};
    };
  });
  sub = job->add_subcommand("show", "One job");
  sub->add_option("JOB", *word, "Beginning of the id")->required();
  sub->callback([&context, find, print] {
    context.action = [find, print]() -> Status {
      ODT_ASSIGN(const v1::Job j, find());
      print(j);
      return {};
    };
  });
  sub = job->add_subcommand("cancel", "Stop a job");
  sub->add_option("JOB", *word, "Beginning of the id")->required();
  sub->callback([&context, find, print] {
    context.action = [&context, find, print]() -> Status {
      ODT_ASSIGN(const v1::Job j, find());
      v1::CancelJobRequest request;
      request.set_id(j.id());
      ODT_ASSIGN(const auto response, context.call<v1::CancelJobResponse>(request));
      print(response.job());
      return {};
    };
  });
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* run = app.add_subcommand("run", "Runs: list, show, pause, resume, cancel, watch, ...");
  run->require_subcommand(1);
  const auto word = std::make_shared<std::string>();
  const auto filter = std::make_shared<std::string>();
  CLI::App* sub = run->add_subcommand("list", "All runs, newest first");
  sub->add_option("--filter", *filter, "e.g. state=RUNNING");
  sub->callback([&context, filter] {
    context.action = [&context, filter] { return list(context, *filter); };
  });
  const auto verb = [&](const char* name, const char* help,
                        Status (*action)(Context&, const std::string&)) {
    CLI::App* v = run->add_subcommand(name, help);
    v->add_option("RUN", *word, "Beginning of the id, or name")->required();
    v->callback([&context, word, action] {
      context.action = [&context, word, action] { return action(context, *word); };
    });
  };
  verb("show", "All about one run", show);
  verb("pause", "Stop after the current step",
       set_desired<v1::PauseRunResponse, v1::PauseRunRequest>);
  verb("resume", "Go on", set_desired<v1::ResumeRunResponse, v1::ResumeRunRequest>);
  verb("cancel", "End it; what it learned so far stays on the board",
       set_desired<v1::CancelRunResponse, v1::CancelRunRequest>);
  const auto steer = std::make_shared<v1::SetLayerPrecisionRequest>();
  CLI::App* set_k = run->add_subcommand("set-k", "Set the bits of a layer (runs with --apt-k-max)");
  set_k->add_option("RUN", *word, "Beginning of the id, or name")->required();
  const auto number = [set_k](const char* name, auto setter, const char* help) {
    return set_k->add_option_function<std::uint32_t>(name, setter, help);
  };
  number(
      "--layer", [steer](std::uint32_t v) { steer->set_layer(v); }, "Trainable layer, first is 0")
      ->required();
  number(
      "--k", [steer](std::uint32_t v) { steer->set_k(v); }, "2 to the run's most")
      ->required();
  number(
      "--step", [steer](std::uint32_t v) { steer->set_step(v); },
      "In force from this step on; default: the next epoch");
  set_k->callback([&context, word, steer] {
    context.action = [&context, word, steer]() -> Status {
      ODT_ASSIGN(const v1::Run r, find_run(context, *word));
      steer->set_id(r.id());
      ODT_ASSIGN(const auto response, context.call<v1::SetLayerPrecisionResponse>(*steer));
      if (context.json) context.print_json(response.run());
      const auto& all = response.run().steering();
      if (all.empty()) return {};
      const auto& last = all[all.size() - 1];
      context.say(absl::StrCat("layer ", last.layer(), " has k ", last.k(), " from step ",
                               last.step(), " on"));
      return {};
    };
  });
  add_queue(*run, context);
  verb("events", "Its changes of state", events);
  verb("epochs", "Its results by epoch", epochs);
  verb("replay", "Train again on the host and compare bit for bit", replay);
  verb("watch", "Follow it until it ends", [](Context& c, const std::string& w) -> Status {
    ODT_ASSIGN(const v1::Run r, find_run(c, w));
    return follow_run(c, r.id());
  });
  add_run_storage(*run, context);
  add_jobs(app, context);
}

}  // namespace odt::cli
