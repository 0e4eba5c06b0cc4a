// Evaluation on a board, and training on the PC.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/follow.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "cli/same_name.h"
#include "odt/api/v1/evaluations.pb.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

void show_confusion(Context& context, const v1::Evaluation& e, const v1::Dataset& dataset) {
  int n = 0;
  while (n * n < e.confusion_size()) ++n;
  if (n == 0 || n * n != e.confusion_size()) return;
  const auto name = [&](int i) {
    return i < dataset.class_names_size() ? dataset.class_names(i) : std::to_string(i);
  };
  std::vector<std::string> head{"LABEL \\ SAID"};
  for (int i = 0; i < n; ++i) head.push_back(name(i));
  head.push_back("RIGHT");
  Table table(head);
  for (int row = 0; row < n; ++row) {
    std::vector<std::string> cells{name(row)};
    std::uint64_t all = 0;
    for (int column = 0; column < n; ++column) {
      const std::uint32_t count = e.confusion(row * n + column);
      all += count;
      cells.push_back(count == 0 ? "." : std::to_string(count));
    }
    cells.push_back(percent(e.confusion(row * n + row), all));
    table.add(std::move(cells));
  }
  context.print(table);
}

// Without classes: the error, and how it lies over the samples.
void show_scores(Context& context, const std::string& what, const v1::Evaluation& e) {
  const v1::Outputs& outputs = e.outputs();
  context.say(absl::StrCat(what, "mse ", error_text(e.loss(), outputs), " over ", e.loss().count(),
                           " samples"));
  const bool autoencoder = outputs.task() == v1::TASK_AUTOENCODE;
  const auto of_sample = [&](std::uint64_t score) {
    return error_text(static_cast<double>(score), 1, outputs);
  };
  Table table({autoencoder ? "ANOMALY SCORE" : "SAMPLE", "MIN", "MEDIAN", "P95", "MAX"});
  table.add({"mse", of_sample(e.scores().min()), of_sample(e.scores().median()),
             of_sample(e.scores().p95()), of_sample(e.scores().max())});
  table.add({"sum, as on the board", std::to_string(e.scores().min()),
             std::to_string(e.scores().median()), std::to_string(e.scores().p95()),
             std::to_string(e.scores().max())});
  context.print(table);
  context.say("mse       " + error_unit(outputs));
  context.say("scores    " + hex(e.scores().blob()) + "  (all of them: GET /v1/blobs/<this>)");
}

struct EvalOptions {
  std::string board, data, weights, split = "test";
  std::uint32_t wrong = 0;
};

// The first of the samples that were said wrongly.
Status show_wrong(Context& context, const EvalOptions& o, const v1::Evaluation& e,
                  const v1::Dataset& dataset, nlohmann::ordered_json* out) {
  v1::ListWrongSamplesRequest request;
  request.set_evaluation_id(e.id());
  request.set_count(o.wrong);
  ODT_ASSIGN(const auto answer, context.call<v1::ListWrongSamplesResponse>(request));
  if (out != nullptr) {
    (*out)["wrong_samples"] = to_json(answer);
    return {};
  }
  const auto name = [&dataset](std::uint32_t i) {
    return static_cast<int>(i) < dataset.class_names_size()
               ? dataset.class_names(static_cast<int>(i))
               : std::to_string(i);
  };
  Table table({"SAMPLE", "LABEL", "SAID"});
  for (const auto& s : answer.samples())
    table.add({std::to_string(s.index()), name(s.label()), name(s.said())});
  context.say(absl::StrCat(answer.total(), " samples are wrong",
                           answer.samples_size() == 0 ? "" : "; the first:"));
  if (answer.samples_size() != 0) context.print(table);
  return {};
}

Status evaluate(Context& context, const EvalOptions& o) {
  ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
  ODT_ASSIGN(const v1::Dataset dataset, find_dataset(context, o.data));
  v1::EvaluateRequest request;
  request.set_board_uid(board.uid());
  request.set_dataset_id(dataset.id());
  request.set_split(o.split);
  if (!o.weights.empty()) {
    ODT_ASSIGN(const v1::Snapshot snapshot, find_snapshot(context, o.weights));
    request.set_snapshot(snapshot.hash());
  }
  request.set_samples(o.wrong != 0);
  ODT_ASSIGN(const auto started, context.call<v1::EvaluateResponse>(request));
  ODT_ASSIGN(const v1::Job job, wait_for_job(context, started.job()));
  v1::GetEvaluationRequest get;
  get.set_id(job.result_key());
  ODT_ASSIGN(const auto got, context.call<v1::GetEvaluationResponse>(get));
  const v1::Evaluation& e = got.evaluation();
  if (context.json) {
    nlohmann::ordered_json out = to_json(e);
    if (o.wrong != 0 && has_classes(e.outputs())) ODT_TRY(show_wrong(context, o, e, dataset, &out));
    context.print_json(out);
    return {};
  }
  if (!has_classes(e.outputs())) {
    show_scores(context, board.name() + " on " + dataset.name() + " (" + e.split() + "): ", e);
    return {};
  }
  context.say(absl::StrCat(board.name(), " on ", dataset.name(), " (", e.split(),
                           "): ", accuracy_text(e.accuracy()), ", ", e.accuracy().correct(), " of ",
                           e.accuracy().total(), ", loss ", loss_text(e.loss())));
  show_confusion(context, e, dataset);
  if (o.wrong != 0) return show_wrong(context, o, e, dataset, nullptr);
  return {};
}

struct HistoryOptions {
  std::string board, data, split;
  std::uint32_t count = 50;
};

// What was measured before, newest first.
Status list_evaluations(Context& context, const HistoryOptions& o) {
  v1::ListEvaluationsRequest request;
  request.set_page_size(o.count);
  std::vector<std::string> terms;
  if (!o.board.empty()) {
    ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
    terms.push_back("board_uid=" + hex(board.uid()));
  }
  if (!o.data.empty()) {
    ODT_ASSIGN(const v1::Dataset dataset, find_dataset(context, o.data));
    terms.push_back("dataset_id=" + hex(dataset.id()));
  }
  if (!o.split.empty()) terms.push_back("split=" + o.split);
  request.set_filter(absl::StrJoin(terms, ","));
  ODT_ASSIGN(const auto page, context.call<v1::ListEvaluationsResponse>(request));
  if (context.json) {
    auto out = nlohmann::ordered_json::array();
    for (const auto& e : page.evaluations()) out.push_back(to_json(e));
    context.print_json(out);
    return {};
  }
  ODT_ASSIGN(const Names names, Names::read(context));
  Table table({"ID", "WHEN", "BOARD", "MODEL", "WEIGHTS", "DATA", "SPLIT", "SCORE"});
  for (const auto& e : page.evaluations())
    table.add({hex(e.id()).substr(0, 12), date_text(e.meta().create_time_us()),
               names.board(e.board_uid()), names.model(e.model_hash()),
               e.snapshot().empty() ? "as held" : hex(e.snapshot()).substr(0, 12),
               names.dataset(e.dataset_id()), e.split(),
               score_text(e.accuracy(), e.loss(), e.outputs())});
  context.print(table);
  if (page.evaluations().empty())
    context.note("none yet; 'odtctl eval --board BOARD --data DATA' measures what a board holds");
  if (!page.next_page_token().empty()) context.note("there are older ones: --count N");
  return {};
}

void add_eval_list(CLI::App& verb, Context& context) {
  const auto o = std::make_shared<HistoryOptions>();
  CLI::App* list = verb.add_subcommand("list", "What was measured before, newest first");
  list->add_option("--board", o->board, "Only of this board");
  list->add_option("--data", o->data, "Only on this dataset");
  list->add_option("--split", o->split, "Only of these samples")
      ->check(CLI::IsMember({"train", "heldout", "test"}));
  list->add_option("--count", o->count, "At most so many (default 50)")->check(CLI::Range(1, 1000));
  list->callback(
      [&context, o] { context.action = [&context, o] { return list_evaluations(context, *o); }; });
}

struct PcOptions {
  std::string data, name, arch, augment;
  std::vector<std::uint32_t> hidden{32};
  std::uint32_t epochs = 0, seed = 1;  // epochs 0: not given
  bool dfp16 = false, autoencode = false, replace = false;
};

// What came of it, in the words of odt-worker's result.
void show_trained(Context& context, const PcOptions& o, const nlohmann::ordered_json& result) {
  if (!o.name.empty()) context.say("model     " + o.name + "  " + result.value("model_hash", ""));
  context.say("onnx      " + result.value("onnx_hash", ""));
  const auto correct = result.value("correct", 0u), total = result.value("total", 0u);
  const double mse = result.value("mse", 0.0), in_units = result.value("mse_in_units", -1.0);
  const int task = result.value("task", 0);
  if (task == 0)
    context.say(
        absl::StrCat("accuracy  ", percent(correct, total), "  (", correct, " of ", total, ")"));
  else if (in_units >= 0)
    context.say("mse       " + significant(in_units) +
                (task == 1 ? "  (units of the target)" : "  (units of the data)"));
  else
    context.say("mse       " + significant(mse) + "  (steps of the model's int8 outputs)");
  for (const auto& warning : result.value("warnings", nlohmann::ordered_json::array()))
    context.say("warning   " + (warning.is_string() ? warning.get<std::string>() : warning.dump()));
}

Status train_on_pc(Context& context, const PcOptions& o) {
  ODT_ASSIGN(const v1::Dataset dataset, find_dataset(context, o.data));
  v1::TrainOnPcRequest request;
  request.set_dataset_id(dataset.id());
  if (o.arch.empty())
    for (const std::uint32_t width : o.hidden) request.add_hidden(width);
  request.set_arch(o.arch);
  request.set_augment(o.augment);
  request.set_epochs(o.epochs == 0 && o.arch.empty() ? 10 : o.epochs);
  request.set_seed(o.seed);
  request.set_name(o.name);
  request.set_dfp16(o.dfp16);
  request.set_autoencode(o.autoencode);
  ODT_ASSIGN(const auto started, context.call<v1::TrainOnPcResponse>(request));
  ODT_ASSIGN(const v1::Job job, wait_for_job(context, started.job()));
  const auto result = nlohmann::ordered_json::parse(job.result_json(), nullptr, false);
  if (context.json) {
    nlohmann::ordered_json out = to_json(job);
    if (!result.is_discarded()) out["result"] = result;
    context.print_json(out);
  } else if (result.is_object()) {
    show_trained(context, o, result);
  }
  if (o.name.empty()) return {};
  return settle_model_name(context, o.name, job.result_key(), o.replace);
}

}  // namespace

void add_eval(CLI::App& app, Context& context) {
  const auto o = std::make_shared<EvalOptions>();
  CLI::App* verb =
      app.add_subcommand("eval", "Measure weights on a board: confusion matrix, or squared errors");
  CLI::Option* board = verb->add_option("--board", o->board, "Name, or beginning of the uid");
  CLI::Option* data = verb->add_option("--data", o->data, "Name, or beginning of the id");
  verb->add_option("--weights", o->weights, "Snapshot (default: what the board holds)");
  verb->add_option("--split", o->split, "Which samples")
      ->check(CLI::IsMember({"train", "heldout", "test"}));
  verb->add_option("--wrong", o->wrong,
                   "Also list the first N samples that are wrong (measured one by one: slower)")
      ->check(CLI::Range(1, 1000));
  add_eval_list(*verb, context);
  verb->callback([&context, o, verb, board, data] {
    if (verb->got_subcommand("list")) return;
    for (const CLI::Option* needed : {board, data})
      if (needed->count() == 0) throw CLI::RequiredError(needed->get_name());
    context.action = [&context, o] { return evaluate(context, *o); };
  });
}

void add_pc_train(CLI::App& app, Context& context) {
  const auto o = std::make_shared<PcOptions>();
  CLI::App* verb = app.add_subcommand("pc-train", "Train a model on this computer");
  verb->add_option("--data", o->data, "Name, or beginning of the id")->required();
  CLI::Option* arch = verb->add_option(
      "--arch", o->arch,
      "Layers, e.g. conv8x3x3s2p1,bn,relu,conv16x3x3s2p1,bn,relu,dense (daemon/worker/README.md)");
  verb->add_option("--hidden", o->hidden, "Short form: widths of dense layers, e.g. 32 or 64,32")
      ->delimiter(',')
      ->excludes(arch);
  verb->add_option("--augment", o->augment, "Random training images, e.g. shift2,flip");
  verb->add_option(
          "--epochs", o->epochs,
          "Passes over the training samples (default 10; with --arch up to 100 for small sets)")
      ->check(CLI::Range(1, 10000));
  verb->add_option("--seed", o->seed, "Of weights and order");
  verb->add_option("--name", o->name, "Add it as a model of this name");
  verb->add_flag("--replace", o->replace, "Delete older models of this name");
  verb->add_flag("--autoencode", o->autoencode,
                 "Learn the samples themselves, for anomaly scores; so where data has no classes");
  verb->add_flag("--dfp16", o->dfp16,
                 "For training with --rule dfp16: int16 with shared exponents");
  verb->callback(
      [&context, o] { context.action = [&context, o] { return train_on_pc(context, *o); }; });
}

}  // namespace odt::cli
