// Models.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/follow.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "cli/same_name.h"
#include "cli/upload.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace fs = std::filesystem;
namespace v1 = api::v1;

std::string outputs_text(const v1::Model& m) {
  switch (m.outputs().task()) {
    case v1::TASK_REGRESS:
      return absl::StrCat("regression of ", m.outputs().count());
    case v1::TASK_AUTOENCODE:
      return "autoencoder";
    default:
      return absl::StrCat(m.n_classes(), " classes");
  }
}

void show_model(Context& context, const v1::Model& m) {
  if (context.json) return context.print_json(m);
  Table table({"model", m.name()});
  table.add({"hash", hex(m.hash())});
  table.add({"image", size_text(m.image_bytes())});
  table.add({"input", join_numbers(m.input_shape(), "x") + ", " + outputs_text(m)});
  table.add({"trains", absl::StrCat("the last ", m.trainable_layers(), " layers")});
  table.add({"RAM", size_text(m.ram_k8_bytes()) + " (k = 8), " + size_text(m.ram_k16_bytes()) +
                        " (k > 8)"});
  if (has_classes(m.outputs())) table.add({"accuracy", accuracy_text(m.source_accuracy())});
  context.print(table);
  Table layers({"LAYER", "KIND", "WEIGHTS", "OUT", "MACS", "TRAINS"});
  for (const auto& l : m.layers())
    layers.add({l.name(), l.kind(), join_numbers(l.weight_shape(), "x"),
                join_numbers(l.output_shape(), "x"), std::to_string(l.macs()),
                l.trainable() ? "yes" : "no"});
  context.print(layers);
}

// Options of "model add"; the request has those that the API takes as they are.
struct ModelOptions {
  std::string file, name, arithmetic, dtype;
  std::uint32_t trainable = 0;
  std::optional<std::int32_t> exponent;
  bool replace = false;
};

Status add_model_file(Context& context, const ModelOptions& o) {
  const std::string& file = o.file;
  std::string name = o.name;
  if (name.empty()) name = fs::path(file).stem().string();
  ODT_ASSIGN(const std::string blob, upload_file(context, file));
  v1::AddModelRequest request;
  request.set_onnx_blob(blob);
  request.set_name(name);
  request.set_trainable_layers(o.trainable);
  if (!o.arithmetic.empty())
    request.set_arithmetic(o.arithmetic == "int8" ? v1::MODEL_ARITHMETIC_INT8
                                                  : v1::MODEL_ARITHMETIC_DFP16);
  if (!o.dtype.empty())
    request.set_input(o.dtype == "u8"   ? v1::MODEL_INPUT_U8
                      : o.dtype == "i8" ? v1::MODEL_INPUT_S8
                                        : v1::MODEL_INPUT_S16);
  if (o.exponent) request.set_input_exponent(*o.exponent);
  ODT_ASSIGN(const auto started, context.call<v1::AddModelResponse>(request));
  const auto ended = wait_for_job(context, started.job());
  if (!ended.ok()) return name_file(ended.status(), file, name + ".onnx");
  const v1::Job& job = *ended;
  v1::GetModelRequest get;
  get.set_hash(job.result_key());
  ODT_ASSIGN(const auto got, context.call<v1::GetModelResponse>(get));
  show_model(context, got.model());
  return settle_model_name(context, got.model().name(), got.model().hash(), o.replace);
}

Status list_models(Context& context) {
  ODT_ASSIGN(Client * client, context.client());
  ODT_ASSIGN(const auto models, client->list<v1::ListModelsResponse>(
                                    v1::ListModelsRequest(), [](auto& r) { return r.models(); }));
  auto out = nlohmann::ordered_json::array();
  Table table({"NAME", "HASH", "INPUT", "CLASSES", "TRAINS", "IMAGE", "RAM k=8", "ACCURACY"});
  std::set<std::string> newer;
  for (const auto& m : models) {
    out.push_back(to_json(m));
    const bool first = newer.insert(m.name()).second;
    table.add({first ? m.name() : m.name() + " (older)", hex(m.hash()).substr(0, 12),
               join_numbers(m.input_shape(), "x"),
               has_classes(m.outputs()) ? std::to_string(m.n_classes()) : outputs_text(m),
               std::to_string(m.trainable_layers()), size_text(m.image_bytes()),
               size_text(m.ram_k8_bytes()),
               has_classes(m.outputs()) ? accuracy_text(m.source_accuracy()) : "-"});
  }
  if (context.json) context.print_json(out);
  context.print(table);
  return {};
}

template <typename Response, typename Request>
Status remove(Context& context, const Request& request, const std::string& name) {
  ODT_TRY(context.call<Response>(request));
  if (context.json) context.print_json(nlohmann::ordered_json{{"deleted", name}});
  context.say(name + " deleted");
  return {};
}

}  // namespace

void add_model(CLI::App& app, Context& context) {
  CLI::App* model = app.add_subcommand("model", "Models: add an ONNX file, list, show, rm");
  model->require_subcommand(1);
  const auto word = std::make_shared<std::string>();
  const auto options = std::make_shared<ModelOptions>();
  CLI::App* sub = model->add_subcommand("add", "Compile an ONNX file into a model image");
  sub->add_option("FILE", options->file, "ONNX, quantised or float32")->required();
  sub->add_option("--name", options->name, "Default: the file's name");
  sub->add_flag("--replace", options->replace, "Delete older models of this name");
  sub->add_option("--trainable", options->trainable, "Train the last N layers (default: all)");
  sub->add_option("--arith", options->arithmetic,
                  "int8 or dfp16 (default: int8 of quantised files, dfp16 of float32 files)")
      ->check(CLI::IsMember({"int8", "dfp16"}));
  sub->add_option("--input-exponent", options->exponent,
                  "Float32 files: value = integer * 2^E, -15 to 7")
      ->check(CLI::Range(-15, 7));
  sub->add_option("--input-dtype", options->dtype,
                  "Float32 files: s16 (default), or u8 or i8: samples are taken as they are")
      ->check(CLI::IsMember({"u8", "i8", "s16"}));
  sub->callback([&context, options] {
    context.action = [=, &context] { return add_model_file(context, *options); };
  });
  sub = model->add_subcommand("list", "All models, newest first");
  sub->callback([&context] { context.action = [&context] { return list_models(context); }; });
  sub = model->add_subcommand("show", "All about one model");
  sub->add_option("MODEL", *word, "Name, or beginning of the hash")->required();
  sub->callback([&context, word] {
    context.action = [&context, word]() -> Status {
      ODT_ASSIGN(const v1::Model m, find_model(context, *word));
      show_model(context, m);
      return {};
    };
  });
  sub = model->add_subcommand("rm", "Delete a model");
  sub->add_option("MODEL", *word, "Name, or beginning of the hash")->required();
  sub->callback([&context, word] {
    context.action = [&context, word]() -> Status {
      ODT_ASSIGN(const v1::Model m, find_model(context, *word, Several::kRefuse));
      v1::DeleteModelRequest request;
      request.set_hash(m.hash());
      return remove<v1::DeleteModelResponse>(context, request, m.name());
    };
  });
}

}  // namespace odt::cli
