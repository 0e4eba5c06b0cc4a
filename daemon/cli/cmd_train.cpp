#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/follow.h"
#include "cli/hyper_options.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

struct Options {
  HyperOptions hyper;
  std::string board, model, data, start, name;
  std::uint32_t resume_deadline_s = 0;
  std::int32_t priority = 0;
  bool evaluate = false, detach = false, dry_run = false, captured = false;
};

Result<v1::CreateRunRequest> build(const CLI::App& verb, const Options& o, Context& context) {
  if (o.captured == !o.data.empty())
    return absl::InvalidArgumentError(
        o.captured ? "--captured and --data: a run is on the one or the other"
                   : "on what? Give --data, or --captured for the samples that the board captured");
  v1::CreateRunRequest request;
  v1::RunSpec& spec = *request.mutable_spec();
  ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
  ODT_ASSIGN(const v1::Model model, find_model(context, o.model));
  if (!o.hyper.layer_k.empty() && model.trainable_layers() != 0 &&
      o.hyper.layer_k.size() != model.trainable_layers())
    return absl::InvalidArgumentError(absl::StrCat(
        "--layer-k has ", o.hyper.layer_k.size(), " values; model '", clean(model.name()), "' has ",
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
  ODT_TRY(fill_hyper(verb, o.hyper, *spec.mutable_hyper()));
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
  add_hyper_options(verb, o->hyper);
  verb->add_flag("--evaluate", o->evaluate, "Measure the test split before and after");
  verb->add_flag("--detach", o->detach, "Do not watch");
  verb->add_flag("--dry-run", o->dry_run, "Check everything, start nothing; time, disk, fit");
  verb->callback([&context, o, verb] {
    context.action = [&context, o, verb] { return train(*verb, *o, context); };
  });
}

}  // namespace odt::cli
