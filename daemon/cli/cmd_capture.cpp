// Windows of a board's sensor: cut, labelled, kept as samples on the board.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/json.h"
#include "cli/lookup.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

struct StartOptions {
  std::string board, model, dtype, keep, level;
  std::vector<std::string> rules;
  std::vector<std::int32_t> mul;
  std::vector<std::int64_t> add;
  std::uint32_t window = 0, stride = 0, slots = 16, shift = 0, channels = 0, heldout_every = 0;
  std::int64_t label = -1, button_label = -1;
  bool unscaled = false, button = false;
};

struct WindowOptions {
  std::string board, keep, file;
  std::uint32_t id = 0, label = 0, from = 0;
  std::uint64_t first = 0;
};

v1::CaptureRole role_of(const std::string& keep) {
  if (keep == "train") return v1::CAPTURE_ROLE_TRAIN;
  return keep == "heldout" ? v1::CAPTURE_ROLE_HELDOUT : v1::CAPTURE_ROLE_UNSPECIFIED;
}

// "mean:0:-5:5:2": of, channel, min, max, class.
Result<v1::CaptureRule> rule_of(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  v1::CaptureRule rule;
  std::uint32_t channel = 0, label = 0;
  std::int32_t min = 0, max = 0;
  if (parts.size() != 5 || !absl::SimpleAtoi(parts[1], &channel) ||
      !absl::SimpleAtoi(parts[2], &min) || !absl::SimpleAtoi(parts[3], &max) ||
      !absl::SimpleAtoi(parts[4], &label))
    return absl::InvalidArgumentError("--rule '" + clean(text) +
                                      "': wanted OF:CHANNEL:MIN:MAX:CLASS, e.g. mean:0:-5:5:2");
  if (parts[0] == "mean")
    rule.set_of(v1::CaptureRule::OF_MEAN);
  else if (parts[0] == "max")
    rule.set_of(v1::CaptureRule::OF_MAX);
  else if (parts[0] == "range")
    rule.set_of(v1::CaptureRule::OF_RANGE);
  else
    return absl::InvalidArgumentError("--rule '" + clean(text) + "': '" + clean(parts[0]) +
                                      "' is not mean, max or range");
  rule.set_channel(channel);
  rule.set_min(min);
  rule.set_max(max);
  rule.set_label(label);
  return rule;
}

Status set_level(const std::string& text, v1::CaptureSettings& to) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  std::uint32_t channel = 0, level = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &channel) ||
      !absl::SimpleAtoi(parts[1], &level))
    return absl::InvalidArgumentError("--level '" + clean(text) +
                                      "': wanted CHANNEL:VALUE, e.g. 0:500");
  to.set_trigger(v1::CAPTURE_TRIGGER_LEVEL);
  to.set_trigger_channel(channel);
  to.set_trigger_level(level);
  return {};
}

Status read_settings(const StartOptions& o, v1::CaptureSettings& to) {
  to.set_window_steps(o.window);
  to.set_stride_steps(o.stride);
  to.set_slots(o.slots);
  to.mutable_mul()->Assign(o.mul.begin(), o.mul.end());
  to.mutable_add()->Assign(o.add.begin(), o.add.end());
  to.set_shift(o.shift);
  to.set_unscaled(o.unscaled);
  if (o.button) to.set_trigger(v1::CAPTURE_TRIGGER_BUTTON);
  if (!o.level.empty()) ODT_TRY(set_level(o.level, to));
  for (const auto& text : o.rules) {
    ODT_ASSIGN(*to.add_rules(), rule_of(text));
  }
  if (o.label >= 0) to.set_label(static_cast<std::uint32_t>(o.label));
  if (o.button_label >= 0) to.set_button_label(static_cast<std::uint32_t>(o.button_label));
  to.set_keep(role_of(o.keep));
  to.set_heldout_every(o.heldout_every);
  to.set_channels(o.channels);
  to.set_dtype(o.dtype == "s8" ? 1 : o.dtype == "u8" ? 2 : o.dtype == "s16" ? 3 : 0);
  return {};
}

// ---- output ----

void show(Context& context, const std::string& board, const v1::Capture& c) {
  if (context.json) return context.print_json(c);
  if (c.window_steps() == 0) return context.say(board + ": no capture on this board");
  context.say(absl::StrCat(board, ": ", c.active() ? "capturing" : "stopped", ", ", c.captured(),
                           " windows of ", c.window_steps(), " steps x ", c.channels(),
                           " channels, ", c.steps(), " steps taken"));
  if (c.kept_train() + c.kept_heldout() > 0)
    context.say(absl::StrCat("samples made: ", c.kept_train(), " for training, ", c.kept_heldout(),
                             " held out"));
  if (c.lost_windows() > 0)
    context.note(absl::StrCat(c.lost_windows(),
                              " windows lost: all places hold labelled windows; keep some as "
                              "samples, or start with more --slots"));
  if (c.lost_steps() > 0)
    context.note(absl::StrCat(c.lost_steps(), " time steps lost: the sensor is too fast"));
  if (c.not_kept() > 0)
    context.note(
        absl::StrCat(c.not_kept(), " windows not kept: no memory, or a run was using the samples"));
  if (c.windows().empty()) return;
  Table table({"ID", "AT", "CLASS", "LABELLED BY", "SAMPLE"});
  for (const auto& w : c.windows())
    table.add({std::to_string(w.id()), duration_text(std::int64_t{w.time_ms()} * 1000),
               w.has_label() ? std::to_string(w.label()) : "-",
               !w.has_label()  ? "-"
               : w.by_rule()   ? "rule"
               : w.by_button() ? "button"
                               : "host",
               w.kept() == v1::CAPTURE_ROLE_TRAIN     ? "training"
               : w.kept() == v1::CAPTURE_ROLE_HELDOUT ? "held-out"
                                                      : "-"});
  context.print(table);
}

// ---- verbs ----

Status start(Context& context, const StartOptions& o) {
  v1::StartCaptureRequest request;
  ODT_TRY(read_settings(o, *request.mutable_settings()));
  ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
  request.set_uid(board.uid());
  if (!o.model.empty()) {
    ODT_ASSIGN(const v1::Model model, find_model(context, o.model));
    request.set_model_hash(model.hash());
  }
  ODT_ASSIGN(const auto response, context.call<v1::StartCaptureResponse>(request));
  show(context, board.name(), response.capture());
  return {};
}

// Verbs whose request is little more than the board.
template <typename Response, typename Request>
Status one(Context& context, const WindowOptions& o, Request request) {
  ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
  request.set_uid(board.uid());
  ODT_ASSIGN(const auto response, context.call<Response>(request));
  show(context, board.name(), response.capture());
  return {};
}

Status label(Context& context, const WindowOptions& o) {
  v1::LabelWindowRequest request;
  request.set_id(o.id);
  request.set_label(o.label);
  request.set_keep(role_of(o.keep));
  return one<v1::LabelWindowResponse>(context, o, request);
}

Status values(Context& context, const WindowOptions& o) {
  ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
  v1::GetCaptureRequest ask;
  ask.set_uid(board.uid());
  ask.set_from_id(o.id);
  ODT_ASSIGN(const auto capture, context.call<v1::GetCaptureResponse>(ask));
  v1::GetWindowRequest request;
  request.set_uid(board.uid());
  request.set_id(o.id);
  ODT_ASSIGN(const auto window, context.call<v1::GetWindowResponse>(request));
  const std::string& raw = window.values();
  const std::size_t n =
      std::size_t{capture.capture().window_steps()} * std::max(1u, capture.capture().channels());
  const std::uint32_t dtype = window.dtype();  // 0: nobody knows; their number tells their size
  const bool wide = dtype == 0 ? raw.size() == 2 * n : dtype == 3;
  std::vector<int> all;
  for (std::size_t i = 0; i + (wide ? 2 : 1) <= raw.size(); i += wide ? 2 : 1)
    all.push_back(wide         ? static_cast<std::int16_t>(static_cast<std::uint8_t>(raw[i]) |
                                                   static_cast<std::uint8_t>(raw[i + 1]) << 8)
                  : dtype == 1 ? static_cast<std::int8_t>(raw[i])
                               : static_cast<std::uint8_t>(raw[i]));
  if (context.json) {
    context.print_json({{"id", o.id}, {"values", all}});
    return {};
  }
  const std::size_t steps = std::max<std::size_t>(1, capture.capture().window_steps());
  for (std::size_t c = 0; c * steps < all.size(); ++c) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(c * steps);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(steps, all.size() - c * steps));
    context.say(absl::StrCat("channel ", c, ": ", join_numbers(std::vector<int>(begin, end), " ")));
  }
  return {};
}

Status feed(Context& context, const WindowOptions& o) {
  constexpr std::size_t kPart = 48u << 10;
  std::ifstream file(o.file, std::ios::binary);
  if (!file) return absl::NotFoundError(clean(o.file) + ": cannot open");
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
  v1::GetCaptureRequest ask;
  ask.set_uid(board.uid());
  ask.set_from_id(UINT32_MAX);
  ODT_ASSIGN(const auto now, context.call<v1::GetCaptureResponse>(ask));
  const v1::Capture& c = now.capture();
  const std::size_t step = std::size_t{c.channels()} * (c.dtype() == 3 ? 2 : 1);
  if (step == 0 || !c.active())
    return absl::FailedPreconditionError(board.name() +
                                         ": no capture is under way: 'odtctl capture start' first");
  if (all.empty() || all.size() % step != 0)
    return absl::InvalidArgumentError(absl::StrCat(clean(o.file), ": ", all.size(),
                                                   " bytes; wanted a multiple of ", step, " (",
                                                   c.channels(), " channels)"));
  v1::FeedSensorRequest request;
  request.set_uid(board.uid());
  v1::Capture last;
  const std::size_t part = kPart / step * step;
  for (std::size_t at = 0; at < all.size(); at += part) {
    request.set_first(c.steps() + at / step);
    request.set_steps(all.substr(at, part));
    ODT_ASSIGN(const auto response, context.call<v1::FeedSensorResponse>(request));
    last = response.capture();
    context.progress(absl::StrCat(at / step, " of ", all.size() / step, " steps"));
  }
  context.end_progress();
  show(context, board.name(), last);
  return {};
}

CLI::App* add_start(CLI::App& capture, Context& context) {
  const auto o = std::make_shared<StartOptions>();
  CLI::App* v = capture.add_subcommand("start", "Begin to cut the sensor's values into windows");
  v->add_option("board", o->board, "Name, or beginning of the uid")->required();
  v->add_option("--model", o->model, "Loaded where the board holds another (default: what it has)");
  v->add_option("--window", o->window, "Time steps of a window")->required();
  v->add_option("--stride", o->stride, "Steps from window to window (default: the window)");
  v->add_option("--slots", o->slots, "Windows that the board holds, 1..255");
  v->add_option("--label", o->label, "Class of every window that nothing else labels")
      ->check(CLI::Range(0, 127));
  v->add_option("--rule", o->rules, "OF:CHANNEL:MIN:MAX:CLASS, OF is mean, max or range");
  v->add_option("--button-label", o->button_label, "Class of windows while the button is pressed")
      ->check(CLI::Range(0, 127));
  CLI::Option* level =
      v->add_option("--level", o->level, "CHANNEL:VALUE: a window begins where |value| reaches it");
  v->add_flag("--button", o->button, "Windows only while the button is pressed")->excludes(level);
  v->add_option("--keep", o->keep, "Labelled windows become samples at once")
      ->check(CLI::IsMember({"train", "heldout"}));
  v->add_option("--heldout-every", o->heldout_every, "Of those, every n-th is held out");
  v->add_option("--mul", o->mul, "Sample = (value * mul + add) >> shift; one, or one per channel")
      ->delimiter(',');
  v->add_option("--add", o->add, "See --mul")->delimiter(',');
  v->add_option("--shift", o->shift, "See --mul (default: the model's own input stage)");
  v->add_flag("--unscaled", o->unscaled, "Values as they are");
  CLI::Option* channels =
      v->add_option("--channels", o->channels,
                    "Of a sensor that 'capture feed' stands for (a board without one)");
  CLI::Option* dtype = v->add_option("--dtype", o->dtype, "Likewise: of its values")
                           ->check(CLI::IsMember({"s8", "u8", "s16"}));
  channels->needs(dtype);
  dtype->needs(channels);
  v->callback([&context, o] { context.action = [&context, o] { return start(context, *o); }; });
  return v;
}

}  // namespace

void add_capture(CLI::App& app, Context& context) {
  CLI::App* capture =
      app.add_subcommand("capture", "Windows of a board's sensor: start, list, label, ...");
  capture->require_subcommand(1);
  add_start(*capture, context);
  const auto o = std::make_shared<WindowOptions>();
  const auto verb = [&](const char* name, const char* help, std::function<Status()> action) {
    CLI::App* v = capture->add_subcommand(name, help);
    v->add_option("board", o->board, "Name, or beginning of the uid")->required();
    v->callback([&context, action] { context.action = action; });
    return v;
  };
  verb("stop", "End the capture; its windows stay", [&context, o] {
    return one<v1::StopCaptureResponse>(context, *o, v1::StopCaptureRequest());
  });
  CLI::App* v = verb("list", "The windows on a board", [&context, o] {
    v1::GetCaptureRequest request;
    request.set_from_id(o->from);
    return one<v1::GetCaptureResponse>(context, *o, request);
  });
  v->add_option("--from", o->from, "Oldest window");
  v = verb("show", "The values of a window", [&context, o] { return values(context, *o); });
  v->add_option("window", o->id, "Its number")->required();
  v = verb("label", "Say what a window is", [&context, o] { return label(context, *o); });
  v->add_option("window", o->id, "Its number")->required();
  v->add_option("class", o->label, "Number of the class")->required();
  v->add_option("--keep", o->keep, "Make a sample of it")
      ->check(CLI::IsMember({"train", "heldout"}));
  v = verb("feed", "Time steps from a file, for a board without a sensor",
           [&context, o] { return feed(context, *o); });
  v->add_option("file", o->file, "Little-endian values, channel by channel in each step")
      ->required();
}

}  // namespace odt::cli
