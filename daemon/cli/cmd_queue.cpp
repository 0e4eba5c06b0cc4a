// Lines of runs in front of boards, and the stop of everything.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
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

Status retry(Context& context, const std::vector<std::string>& words, const CLI::App& verb,
             std::int32_t priority) {
  auto out = nlohmann::ordered_json::array();
  for (const std::string& word : words) {
    ODT_ASSIGN(const v1::Run old, find_run(context, word));
    v1::RetryRunRequest request;
    request.set_id(old.id());
    if (verb.count("--priority") != 0) request.set_priority(priority);
    ODT_ASSIGN(const auto response, context.call<v1::RetryRunResponse>(request));
    out.push_back(to_json(response.run()));
    context.say("run " + hex(response.run().id()) + " does " + hex(old.id()).substr(0, 16) +
                " again");
  }
  if (context.json) context.print_json(out);
  return {};
}

std::string holder_text(const v1::BoardQueue& queue) {
  if (!queue.has_lease()) return "free";
  const auto& lease = queue.lease();
  const auto us = lease.expire_time_us() - lease.since_time_us();
  return lease.what() + " since " + clock_text(lease.since_time_us()) +
         (us > 0 ? ", until " + clock_text(lease.expire_time_us()) + " without progress" : "");
}

Status show_queues(Context& context, const std::string& word) {
  v1::ListQueuesRequest request;
  if (!word.empty()) {
    ODT_ASSIGN(const v1::Board board, find_board(context, word));
    request.set_board_uid(board.uid());
  }
  ODT_ASSIGN(const auto response, context.call<v1::ListQueuesResponse>(request));
  if (context.json) {
    context.print_json(response);
    return {};
  }
  ODT_ASSIGN(const Names names, Names::read(context));
  if (response.queues().empty()) context.say("no board has runs that wait");
  for (const auto& queue : response.queues()) {
    context.say(names.board(queue.board_uid()) + ": " + holder_text(queue));
    if (queue.runs().empty()) continue;
    Table table({"", "RUN", "STATE", "PRIORITY", "ENDS", "NAME", "WHY"});
    for (int i = 0; i < queue.runs_size(); ++i) {
      const v1::Run& run = queue.runs(i);
      table.add({std::to_string(i), hex(run.id()).substr(0, 16), state_word(run.state()),
                 std::to_string(run.priority()),
                 run.eta_time_us() == 0 ? "-" : clock_text(run.eta_time_us()), run.spec().name(),
                 run.state() == v1::RUN_STATE_QUEUED ? run.reason().text() : ""});
    }
    context.print(table);
  }
  return {};
}

struct ReorderOptions {
  std::string run, before;
  std::int32_t priority = 0;
};

Status reorder(Context& context, const ReorderOptions& o, const CLI::App& verb) {
  const bool priority = verb.count("--priority") != 0;
  if (!priority && o.before.empty())
    return absl::InvalidArgumentError("--priority N or --before RUN");
  ODT_ASSIGN(const v1::Run run, find_run(context, o.run));
  v1::ReorderRunRequest request;
  request.set_id(run.id());
  if (priority) request.set_priority(o.priority);
  if (!o.before.empty()) {
    ODT_ASSIGN(const v1::Run before, find_run(context, o.before));
    request.set_before(before.id());
  }
  ODT_ASSIGN(const auto response, context.call<v1::ReorderRunResponse>(request));
  if (context.json) context.print_json(response.run());
  context.say(
      absl::StrCat("run ", hex(response.run().id()), " has priority ", response.run().priority()));
  return {};
}

// Exit 1 where a run could not be stopped or a board does not answer.
Status stop_all(Context& context, bool cancel) {
  v1::StopAllRequest request;
  request.set_cancel(cancel);
  ODT_ASSIGN(const auto response, context.call<v1::StopAllResponse>(request));
  if (context.json) context.print_json(response);
  ODT_ASSIGN(const Names names, Names::read(context));
  int open = 0;
  for (const auto& id : response.campaigns())
    context.say("campaign " + hex(id).substr(0, 16) +
                (cancel ? " is cancelled" : " is paused; odtctl campaign resume goes on with it"));
  Table table({"RUN", "BOARD", "BOARD TOLD", "WHY NOT"});
  for (const auto& run : response.runs()) {
    if (!run.told()) ++open;
    table.add({hex(run.run_id()).substr(0, 16), names.board(run.board_uid()),
               run.told() ? "yes" : "NO", run.reason().text()});
  }
  if (!response.runs().empty()) context.print(table);
  context.say(absl::StrCat(response.runs_size(), cancel ? " runs cancelled, " : " runs paused, ",
                           response.campaigns_size(),
                           cancel ? " campaigns cancelled, " : " campaigns paused, ",
                           response.evaluations(), " evaluations ended, ", response.boards_told(),
                           " boards told, ", response.boards_silent(), " silent"));
  if (open == 0 && response.boards_silent() == 0) return {};
  return with_reason(absl::UnknownError("not every board has answered"), "BOARDS_SILENT",
                     "The wish is stored: they are told when they answer. Cut the power of what "
                     "must not wait.");
}

}  // namespace

void add_queue(CLI::App& run, Context& context) {
  const auto words = std::make_shared<std::vector<std::string>>();
  const auto priority = std::make_shared<std::int32_t>(0);
  const auto board = std::make_shared<std::string>();
  CLI::App* again = run.add_subcommand("retry", "Do runs again that FAILED or were CANCELLED");
  again->add_option("RUN", *words, "Beginnings of ids, or names")->required();
  again->add_option("--priority", *priority, "-100 to 100; default: as before")
      ->check(CLI::Range(-100, 100));
  again->callback([&context, again, words, priority] {
    context.action = [&context, again, words, priority] {
      return retry(context, *words, *again, *priority);
    };
  });
  CLI::App* sub = run.add_subcommand("queue", "Who has each board, and what waits for it");
  sub->add_option("BOARD,--board", *board, "Name, or beginning of the uid; default: all");
  sub->callback([&context, board] {
    context.action = [&context, board] { return show_queues(context, *board); };
  });
  const auto o = std::make_shared<ReorderOptions>();
  CLI::App* order = run.add_subcommand("reorder", "Another place for a run that waits");
  order->add_option("RUN", o->run, "Beginning of the id, or name")->required();
  order->add_option("--priority", o->priority, "-100 to 100: the highest goes first")
      ->check(CLI::Range(-100, 100));
  order->add_option("--before", o->before, "In front of this run, with its priority");
  order->callback([&context, order, o] {
    context.action = [&context, order, o] { return reorder(context, *o, *order); };
  });
}

void add_stop_all(CLI::App& app, Context& context) {
  const auto cancel = std::make_shared<bool>(false);
  CLI::App* verb = app.add_subcommand("stop-all", "Emergency: pause every run on every board, now");
  verb->add_flag("--cancel", *cancel, "End them instead");
  verb->callback([&context, cancel] {
    context.action = [&context, cancel] { return stop_all(context, *cancel); };
  });
}

}  // namespace odt::cli
