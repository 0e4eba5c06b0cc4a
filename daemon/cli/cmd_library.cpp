// Models and datasets.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/follow.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "cli/upload.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace fs = std::filesystem;
namespace v1 = api::v1;

// ---- models -----------------------------------------------------------------------------------

void show_model(Context& context, const v1::Model& m) {
  if (context.json) return context.print_json(m);
  Table table({"model", m.name()});
  table.add({"hash", hex(m.hash())});
  table.add({"image", size_text(m.image_bytes())});
  table.add({"input",
             join_numbers(m.input_shape(), "x") + absl::StrCat(", ", m.n_classes(), " classes")});
  table.add({"trains", absl::StrCat("the last ", m.trainable_layers(), " layers")});
  table.add({"RAM", size_text(m.ram_k8_bytes()) + " (k = 8), " + size_text(m.ram_k16_bytes()) +
                        " (k > 8)"});
  table.add({"accuracy", accuracy_text(m.source_accuracy())});
  context.print(table);
  Table layers({"LAYER", "KIND", "WEIGHTS", "OUT", "MACS", "TRAINS"});
  for (const auto& l : m.layers())
    layers.add({l.name(), l.kind(), join_numbers(l.weight_shape(), "x"),
                join_numbers(l.output_shape(), "x"), std::to_string(l.macs()),
                l.trainable() ? "yes" : "no"});
  context.print(layers);
}

Status add_model_file(Context& context, const std::string& file, std::string name,
                      std::uint32_t trainable) {
  if (name.empty()) name = fs::path(file).stem().string();
  ODT_ASSIGN(const std::string blob, upload_file(context, file));
  v1::AddModelRequest request;
  request.set_onnx_blob(blob);
  request.set_name(name);
  request.set_trainable_layers(trainable);
  ODT_ASSIGN(const auto started, context.call<v1::AddModelResponse>(request));
  const auto ended = wait_for_job(context, started.job());
  if (!ended.ok()) return name_file(ended.status(), file, name + ".onnx");
  const v1::Job& job = *ended;
  v1::GetModelRequest get;
  get.set_hash(job.result_key());
  ODT_ASSIGN(const auto got, context.call<v1::GetModelResponse>(get));
  show_model(context, got.model());
  return {};
}

Status list_models(Context& context) {
  ODT_ASSIGN(Client * client, context.client());
  ODT_ASSIGN(const auto models, client->list<v1::ListModelsResponse>(
                                    v1::ListModelsRequest(), [](auto& r) { return r.models(); }));
  auto out = nlohmann::ordered_json::array();
  Table table({"NAME", "HASH", "INPUT", "CLASSES", "TRAINS", "IMAGE", "RAM k=8", "ACCURACY"});
  for (const auto& m : models) {
    out.push_back(to_json(m));
    table.add({m.name(), hex(m.hash()).substr(0, 12), join_numbers(m.input_shape(), "x"),
               std::to_string(m.n_classes()), std::to_string(m.trainable_layers()),
               size_text(m.image_bytes()), size_text(m.ram_k8_bytes()),
               accuracy_text(m.source_accuracy())});
  }
  if (context.json) context.print_json(out);
  context.print(table);
  return {};
}

// ---- datasets ---------------------------------------------------------------------------------

struct Import {
  std::string file, labels, test_file, test_labels, name, format, resize, transform = "none";
  std::string label_column;
  std::uint32_t train = 0, heldout = 0, test = 0, seed = 1, skip = 0;
};

// A folder with the files of the MNIST family.
void take_folder(Import& import) {
  std::error_code ec;
  if (!fs::is_directory(import.file, ec)) return;
  const fs::path folder = import.file;
  const auto find = [&](const char* name) {
    for (const char* end : {"", ".gz"})
      if (fs::exists(folder / (std::string(name) + end)))
        return (folder / (name + std::string(end))).string();
    return std::string();
  };
  const std::string images = find("train-images-idx3-ubyte");
  if (images.empty()) return;
  import.file = images;
  if (import.labels.empty()) import.labels = find("train-labels-idx1-ubyte");
  if (import.test_file.empty()) import.test_file = find("t10k-images-idx3-ubyte");
  if (import.test_labels.empty()) import.test_labels = find("t10k-labels-idx1-ubyte");
}

Status parse_resize(const std::string& text, v1::ImportOptions& options) {
  if (text.empty()) return {};
  unsigned height = 0, width = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%ux%u%c", &height, &width, &rest) != 2 || height == 0 ||
      width == 0)
    return absl::InvalidArgumentError("--resize '" + clean(text) + "' is not HxW, e.g. 14x14");
  options.add_resize(height);
  options.add_resize(width);
  return {};
}

Status upload_into(Context& context, const std::string& path, std::string* blob) {
  if (path.empty()) return {};
  ODT_ASSIGN(*blob, upload_file(context, path));
  return {};
}

void show_dataset(Context& context, const v1::Dataset& d) {
  if (context.json) return context.print_json(d);
  Table table({"dataset", d.name()});
  table.add({"id", hex(d.id())});
  table.add({"content", hex(d.content_hash())});
  table.add({"sample", d.dtype() + " " + join_numbers(d.shape(), "x")});
  table.add({"splits",
             absl::StrCat("train ", d.train(), ", held-out ", d.heldout(), ", test ", d.test())});
  table.add({"source", d.source()});
  table.add({"size", size_text(d.bytes())});
  context.print(table);
  std::uint64_t all = 0;
  for (const auto count : d.class_counts()) all += count;
  Table classes({"CLASS", "SAMPLES", "SHARE"});
  for (int i = 0; i < d.class_counts_size(); ++i)
    classes.add({i < d.class_names_size() ? d.class_names(i) : std::to_string(i),
                 std::to_string(d.class_counts(i)), percent(d.class_counts(i), all)});
  if (d.class_counts_size() != 0) context.print(classes);
}

Status in_own_words(Status status, const Import& import, const v1::ImportDatasetRequest& r) {
  status = rename_file(status, imported_name("data", r.data_blob()), import.file);
  status = rename_file(status, imported_name("labels", r.label_blob()), import.labels);
  status = rename_file(status, imported_name("test_data", r.test_data_blob()), import.test_file);
  return rename_file(status, imported_name("test_labels", r.test_label_blob()), import.test_labels);
}

Status import_data(Context& context, Import import) {
  if (import.name.empty()) import.name = fs::path(import.file).stem().string();
  take_folder(import);
  if (import.format.empty()) import.format = import.file.ends_with(".csv") ? "csv" : "idx";
  v1::ImportDatasetRequest request;
  v1::ImportOptions& options = *request.mutable_options();
  options.set_name(import.name);
  options.set_format(import.format);
  ODT_TRY(parse_resize(import.resize, options));
  options.set_transform(import.transform);
  options.set_train(import.train);
  options.set_heldout(import.heldout);
  options.set_test(import.test);
  options.set_seed(import.seed);
  options.set_skip(import.skip);
  options.set_label_column(import.label_column);
  ODT_TRY(upload_into(context, import.file, request.mutable_data_blob()));
  ODT_TRY(upload_into(context, import.labels, request.mutable_label_blob()));
  ODT_TRY(upload_into(context, import.test_file, request.mutable_test_data_blob()));
  ODT_TRY(upload_into(context, import.test_labels, request.mutable_test_label_blob()));
  ODT_ASSIGN(const auto started, context.call<v1::ImportDatasetResponse>(request));
  const auto ended = wait_for_job(context, started.job());
  if (!ended.ok()) return in_own_words(ended.status(), import, request);
  const v1::Job& job = *ended;
  v1::GetDatasetRequest get;
  get.set_id(job.result_key());
  ODT_ASSIGN(const auto got, context.call<v1::GetDatasetResponse>(get));
  show_dataset(context, got.dataset());
  return {};
}

Status list_data(Context& context) {
  ODT_ASSIGN(Client * client, context.client());
  ODT_ASSIGN(const auto all, client->list<v1::ListDatasetsResponse>(
                                 v1::ListDatasetsRequest(), [](auto& r) { return r.datasets(); }));
  auto out = nlohmann::ordered_json::array();
  Table table({"NAME", "ID", "SAMPLE", "TRAIN", "HELD-OUT", "TEST", "CLASSES", "SOURCE"});
  for (const auto& d : all) {
    out.push_back(to_json(d));
    table.add({d.name(), hex(d.id()), d.dtype() + " " + join_numbers(d.shape(), "x"),
               std::to_string(d.train()), std::to_string(d.heldout()), std::to_string(d.test()),
               std::to_string(d.n_classes()), d.source()});
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
  const auto name = std::make_shared<std::string>();
  const auto trainable = std::make_shared<std::uint32_t>(0);
  CLI::App* sub = model->add_subcommand("add", "Compile an ONNX file into a model image");
  sub->add_option("FILE", *word, "Quantised ONNX")->required();
  sub->add_option("--name", *name, "Default: the file's name");
  sub->add_option("--trainable", *trainable, "Train the last N layers (default: all)");
  sub->callback([&context, word, name, trainable] {
    context.action = [=, &context] { return add_model_file(context, *word, *name, *trainable); };
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
      ODT_ASSIGN(const v1::Model m, find_model(context, *word));
      v1::DeleteModelRequest request;
      request.set_hash(m.hash());
      return remove<v1::DeleteModelResponse>(context, request, m.name());
    };
  });
}

void add_data(CLI::App& app, Context& context) {
  CLI::App* data = app.add_subcommand("data", "Datasets: import, list, show, rm");
  data->require_subcommand(1);
  const auto word = std::make_shared<std::string>();
  const auto import = std::make_shared<Import>();
  CLI::App* sub = data->add_subcommand("import", "Bring in labelled samples");
  sub->add_option("FILE", import->file, "IDX images, CSV, or a folder of the MNIST family")
      ->required();
  sub->add_option("--labels", import->labels, "IDX labels");
  sub->add_option("--test-data", import->test_file, "Own test set, IDX");
  sub->add_option("--test-labels", import->test_labels, "Its labels");
  sub->add_option("--name", import->name, "Default: the file's name");
  sub->add_option("--format", import->format, "Default: by the file's name")
      ->check(CLI::IsMember({"idx", "csv"}));
  sub->add_option("--resize", import->resize, "HxW, e.g. 14x14");
  sub->add_option("--transform", import->transform,
                  "Sensor shift: none, inversion, rot90, flip, gain:0.4,60");
  sub->add_option("--train", import->train, "Samples to train on");
  sub->add_option("--heldout", import->heldout, "Samples of the guard");
  sub->add_option("--test", import->test, "Samples to test with");
  sub->add_option("--seed", import->seed, "Picks the samples");
  sub->add_option("--skip", import->skip, "Leave out the first N after the shuffle");
  sub->add_option("--label-column", import->label_column, "CSV: name, or number from 0");
  sub->callback([&context, import] {
    context.action = [&context, import] { return import_data(context, *import); };
  });
  sub = data->add_subcommand("list", "All datasets, newest first");
  sub->callback([&context] { context.action = [&context] { return list_data(context); }; });
  sub = data->add_subcommand("show", "One dataset with its class balance");
  sub->add_option("DATA", *word, "Name, or beginning of the id")->required();
  sub->callback([&context, word] {
    context.action = [&context, word]() -> Status {
      ODT_ASSIGN(const v1::Dataset d, find_dataset(context, *word));
      show_dataset(context, d);
      return {};
    };
  });
  sub = data->add_subcommand("rm", "Delete a dataset");
  sub->add_option("DATA", *word, "Name, or beginning of the id")->required();
  sub->callback([&context, word] {
    context.action = [&context, word]() -> Status {
      ODT_ASSIGN(const v1::Dataset d, find_dataset(context, *word));
      v1::DeleteDatasetRequest request;
      request.set_id(d.id());
      return remove<v1::DeleteDatasetResponse>(context, request, d.name());
    };
  });
}

}  // namespace odt::cli
