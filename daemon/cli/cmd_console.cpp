// What boards print.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "odt/api/v1/console.pb.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

constexpr std::uint32_t kPage = 1000;
constexpr std::chrono::milliseconds kAgain{300};

struct ConsoleOptions {
  std::string board, search;
  std::uint32_t lines = 100, least_level = 0;
  bool follow = false, all = false, no_times = false;
};

const char* source_mark(const v1::ConsoleLine& line) {
  switch (line.source()) {
    case v1::CONSOLE_SOURCE_RAW:
      return "raw";
    case v1::CONSOLE_SOURCE_HOST:
      return "odtd";
    default:
      break;
  }
  static constexpr const char* kLevels[] = {"trace", "debug", "info", "warn", "error", "critical"};
  return kLevels[std::min<std::uint32_t>(line.level(), 5)];
}

// Prints pages and remembers where it is.
class Console {
 public:
  Console(Context& context, const ConsoleOptions& o, const Names& names)
      : context_(context), o_(o), names_(names) {}

  void print(const v1::ListConsoleResponse& page) {
    for (const auto& line : page.lines()) {
      if (context_.json) context_.print_json(line);
      const std::string time =
          o_.no_times ? "" : date_text(line.time_us()).substr(0, 11) + clock_text(line.time_us());
      std::string text = absl::StrCat(time, time.empty() ? "" : "  ");
      if (o_.board.empty()) absl::StrAppend(&text, names_.board(line.board_uid()), "  ");
      context_.say(absl::StrCat(text, source_mark(line), "  ", clean(line.text())));
      last_ = line.seq();
    }
    printed_ += page.lines_size();
    if (o_.follow && !page.more()) last_ = page.newest_seq();
    epoch_ = page.epoch();
  }
  Status follow(v1::ListConsoleRequest request) {
    while (!context_.interrupt.wait(kAgain)) {
      request.set_begin(last_ == 0);
      request.set_after_seq(last_);
      request.set_page_size(kPage);
      ODT_ASSIGN(const auto page, context_.call<v1::ListConsoleResponse>(request));
      if (page.epoch() != epoch_ && epoch_ != 0) {
        context_.note("odtd has a new record of consoles");
        last_ = 0;
        epoch_ = page.epoch();
        continue;
      }
      print(page);
    }
    return {};
  }
  Status read_all(v1::ListConsoleRequest request) {
    request.set_page_size(kPage);
    request.set_begin(true);
    while (!context_.interrupt.seen()) {
      ODT_ASSIGN(const auto page, context_.call<v1::ListConsoleResponse>(request));
      print(page);
      if (!page.more()) return {};
      request.set_begin(false);
      request.set_after_seq(last_);
    }
    return {};
  }
  int printed() const { return printed_; }

 private:
  Context& context_;
  const ConsoleOptions& o_;
  const Names& names_;
  std::uint64_t last_ = 0, epoch_ = 0;
  int printed_ = 0;
};

Status console(Context& context, const ConsoleOptions& o) {
  v1::ListConsoleRequest request;
  std::string who = "any board";
  if (!o.board.empty()) {
    ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
    request.add_board_uids(board.uid());
    who = board.name();
  }
  ODT_ASSIGN(const Names names, Names::read(context));
  request.set_search(o.search);
  request.set_least_level(o.least_level);
  Console out(context, o, names);
  if (o.all) {
    ODT_TRY(out.read_all(request));
  } else {
    request.set_page_size(o.lines);
    ODT_ASSIGN(const auto page, context.call<v1::ListConsoleResponse>(request));
    out.print(page);
    if (page.more() && !o.follow) context.note("older lines: --lines N, or --all");
  }
  if (o.follow) return out.follow(request);
  if (out.printed() == 0)
    context.note(o.search.empty() ? "nothing is kept of " + who : "no line of " + who + " matches");
  return {};
}

}  // namespace

void add_console(CLI::App& board, Context& context) {
  const auto o = std::make_shared<ConsoleOptions>();
  CLI::App* verb =
      board.add_subcommand("console", "What a board prints: log lines and raw console output");
  verb->add_option("BOARD", o->board, "Name, or beginning of the uid (default: all, merged)");
  verb->add_flag("--follow,-f", o->follow, "Go on with new lines until interrupted");
  CLI::Option* lines = verb->add_option("--lines,-n", o->lines, "Newest lines (default 100)")
                           ->check(CLI::Range(1, 1000));
  verb->add_flag("--all", o->all, "Every line that is kept, oldest first")->excludes(lines);
  verb->add_option("--search", o->search, "Words that a line must have; -word: must not have");
  verb->add_option("--least-level", o->least_level, "0 trace to 5 critical; 3: warnings and worse")
      ->check(CLI::Range(0, 5));
  verb->add_flag("--no-times", o->no_times, "Only the text");
  verb->callback(
      [&context, o] { context.action = [&context, o] { return console(context, *o); }; });
}

}  // namespace odt::cli
