// What a board says of single samples.
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;
using Json = nlohmann::ordered_json;

constexpr int kShownOutputs = 8;  // outputs of a sample, in text

struct InferOptions {
  std::string board, data, split = "test", file;
  std::vector<float> values;
  std::uint32_t first = 0, count = 5, row = 0;
};

// Numbers of one line of a text file, separated by commas, semicolons, blanks or tabs.
Result<std::vector<float>> read_row(const std::string& path, std::uint32_t row) {
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(clean(path) + ": cannot be opened");
  std::string line;
  std::uint32_t number = 0;
  while (std::getline(in, line) && number < row) ++number;
  if (number < row || line.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(clean(path), ": no line ", row, " with numbers (the first is 0)"));
  std::vector<float> out;
  for (const auto word : absl::StrSplit(line, absl::ByAnyChar(",; \t\r"), absl::SkipEmpty())) {
    float value = 0;
    if (!absl::SimpleAtof(word, &value))
      return absl::InvalidArgumentError(absl::StrCat(
          clean(path), ": line ", row, ": '", clean(std::string(word)), "' is not a number"));
    out.push_back(value);
  }
  return out;
}

bool is_picture_or_sound(const std::string& path) {
  const std::string low = absl::AsciiStrToLower(path);
  return low.ends_with(".png") || low.ends_with(".wav");
}

Result<std::string> read_whole(const std::string& path) {
  constexpr std::size_t kMost = 1u << 20;  // of a request
  std::ifstream in(path, std::ios::binary);
  std::string out(kMost + 1, '\0');
  if (!in) return absl::NotFoundError(clean(path) + ": cannot be opened");
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<std::size_t>(in.gcount()));
  if (out.empty()) return absl::InvalidArgumentError(clean(path) + ": is empty");
  if (out.size() > kMost)
    return absl::InvalidArgumentError(clean(path) + ": is larger than 1 MiB; import it as data");
  return out;
}

// One sample that is in no dataset.
Status infer_by_hand(Context& context, const InferOptions& o, const v1::Board& board) {
  v1::InferRequest request;
  request.set_board_uid(board.uid());
  std::vector<float> values = o.values;
  if (is_picture_or_sound(o.file)) {
    ODT_ASSIGN(*request.mutable_file(), read_whole(o.file));
  } else if (!o.file.empty()) {
    ODT_ASSIGN(values, read_row(o.file, o.row));
  }
  request.mutable_values()->Add(values.begin(), values.end());
  ODT_ASSIGN(const auto answer, context.call<v1::InferResponse>(request));
  if (context.json) {
    context.print_json(to_json(answer));
    return {};
  }
  for (const auto& s : answer.samples()) {
    if (has_classes(answer.outputs())) context.say(absl::StrCat("class     ", s.predicted()));
    std::vector<int> outputs;
    for (const char c : s.outputs()) outputs.push_back(static_cast<std::int8_t>(c));
    context.say("outputs   " + join_numbers(outputs, " "));
  }
  return {};
}

// Integers of outputs or targets in units of the target, where the scale is known.
std::vector<double> in_units(const std::string& integers, const v1::Outputs& o) {
  std::vector<double> out;
  for (std::size_t i = 0; i < integers.size(); ++i) {
    double v = static_cast<std::int8_t>(integers[i]);
    if (o.scale_size() > 0 && o.offset_size() == o.scale_size()) {
      const int at = std::min(static_cast<int>(i), o.scale_size() - 1);
      v = v / double{o.scale(at)} + double{o.offset(at)};
    }
    out.push_back(v);
  }
  return out;
}

std::string some(const std::vector<double>& values) {
  std::string out;
  for (std::size_t i = 0; i < values.size() && i < kShownOutputs; ++i)
    absl::StrAppend(&out, i == 0 ? "" : " ", significant(values[i]));
  return out + (values.size() > kShownOutputs ? " ..." : "");
}

double squared_error(const v1::InferResponse::Sample& s) {
  double sum = 0;
  for (std::size_t i = 0; i < s.outputs().size() && i < s.wanted().size(); ++i) {
    const int d =
        static_cast<std::int8_t>(s.outputs()[i]) - static_cast<std::int8_t>(s.wanted()[i]);
    sum += d * d;
  }
  return sum;
}

Table table_of(const v1::InferResponse& answer, const v1::Dataset& dataset) {
  const v1::Outputs& o = answer.outputs();
  const auto name = [&dataset](std::uint32_t label) {
    const int i = static_cast<int>(label);
    return i < dataset.class_names_size() ? dataset.class_names(i) : std::to_string(label);
  };
  if (has_classes(o)) {
    Table table({"SAMPLE", "SAID", "LABEL", "LOGITS"});
    for (const auto& s : answer.samples())
      table.add({std::to_string(s.index()), name(s.predicted()),
                 s.wanted().empty() ? "-" : name(static_cast<unsigned char>(s.wanted()[0])),
                 some(in_units(s.outputs(), {}))});
    return table;
  }
  const bool autoencoder = o.task() == v1::TASK_AUTOENCODE;
  Table table({"SAMPLE", autoencoder ? "ANOMALY SCORE" : "MSE", "OUTPUTS",
               autoencoder ? "INPUTS" : "TARGETS"});
  for (const auto& s : answer.samples())
    table.add({std::to_string(s.index()), error_text(squared_error(s), 1, o),
               some(in_units(s.outputs(), o)), some(in_units(s.wanted(), o))});
  return table;
}

// The message, and beside its integers their values in units of the target.
Json json_of(const v1::InferResponse& answer) {
  Json out = to_json(answer);
  for (int i = 0; i < answer.samples_size(); ++i) {
    const auto& s = answer.samples(i);
    Json& item = out["samples"][static_cast<std::size_t>(i)];
    if (has_classes(answer.outputs())) continue;
    item["output_values"] = in_units(s.outputs(), answer.outputs());
    item["wanted_values"] = in_units(s.wanted(), answer.outputs());
    item["score"] = static_cast<std::uint64_t>(squared_error(s));
  }
  return out;
}

Status infer(Context& context, const InferOptions& o) {
  const int ways = (o.data.empty() ? 0 : 1) + (o.values.empty() ? 0 : 1) + (o.file.empty() ? 0 : 1);
  if (ways != 1)
    return absl::InvalidArgumentError(
        "--data DATASET, --values a,b,... or --file FILE: one of them");
  ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
  if (o.data.empty()) return infer_by_hand(context, o, board);
  ODT_ASSIGN(const v1::Dataset dataset, find_dataset(context, o.data));
  v1::InferRequest request;
  request.set_board_uid(board.uid());
  request.set_dataset_id(dataset.id());
  request.set_split(o.split);
  request.set_first(o.first);
  request.set_count(o.count);
  ODT_ASSIGN(const auto answer, context.call<v1::InferResponse>(request));
  if (context.json) {
    context.print_json(json_of(answer));
    return {};
  }
  context.print(table_of(answer, dataset));
  if (!has_classes(answer.outputs())) context.say("mse: " + error_unit(answer.outputs()));
  return {};
}

}  // namespace

void add_infer(CLI::App& app, Context& context) {
  const auto o = std::make_shared<InferOptions>();
  CLI::App* verb = app.add_subcommand("infer", "What a board says of a few samples");
  verb->add_option("--board", o->board, "Name, or beginning of the uid")->required();
  verb->add_option("--data", o->data, "Name, or beginning of the id");
  verb->add_option("--values", o->values, "One sample by hand: source values in the model's order")
      ->delimiter(',');
  verb->add_option("--file", o->file,
                   "The same from a file: a picture (.png), sound (.wav), or a line of "
                   "numbers, e.g. CSV");
  verb->add_option("--row", o->row, "That line, from 0 (0)");
  verb->add_option("--split", o->split, "Which samples")
      ->check(CLI::IsMember({"train", "heldout", "test"}));
  verb->add_option("--first", o->first, "Sample of the split, from 0");
  verb->add_option("--count", o->count, "So many from there on (5)")->check(CLI::Range(1, 64));
  verb->callback([&context, o] { context.action = [&context, o] { return infer(context, *o); }; });
}

}  // namespace odt::cli
