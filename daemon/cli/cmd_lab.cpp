// Boards in a lab: whose they are for now, out of service, replaced, their power.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/json.h"
#include "cli/lab_view.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "odt/api/v1/lab.pb.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

struct LabOptions {
  std::vector<std::string> boards;
  std::string board, time = "1h", note, state, by;
  bool take_over = false, restore = false;
};

Result<std::uint32_t> seconds_of(const std::string& text) {
  ODT_ASSIGN(const std::int64_t us, parse_duration(text));
  return static_cast<std::uint32_t>(us / 1'000'000);
}

// The same of each board named; stops at the first that is refused.
template <typename Response, typename Request>
Status each_board(Context& context, const LabOptions& o, Request request,
                  const std::function<std::string(const v1::Board&)>& done) {
  auto out = nlohmann::ordered_json::array();
  std::vector<v1::Board> boards;
  for (const auto& word : o.boards) {
    ODT_ASSIGN(boards.emplace_back(), find_board(context, word));
  }
  Status status;
  for (const auto& board : boards) {
    request.set_uid(board.uid());
    const auto response = context.call<Response>(request);
    status = response.status();
    if (!status.ok()) break;
    out.push_back(to_json(response->board()));
    context.say(board.name() + " " + done(response->board()));
  }
  if (context.json && !out.empty()) context.print_json(out);
  return status;
}

Status reserve(Context& context, const LabOptions& o) {
  v1::ReserveBoardRequest request;
  ODT_ASSIGN(const std::uint32_t seconds, seconds_of(o.time));
  request.set_duration_s(seconds);
  request.set_note(o.note);
  request.set_take_over(o.take_over);
  return each_board<v1::ReserveBoardResponse>(context, o, request, [](const v1::Board& b) {
    return "is reserved for " + b.reservation().owner() + " until " +
           date_text(b.reservation().expire_time_us());
  });
}

Status extend(Context& context, const LabOptions& o) {
  v1::ExtendBoardRequest request;
  ODT_ASSIGN(const std::uint32_t seconds, seconds_of(o.time));
  request.set_duration_s(seconds);
  return each_board<v1::ExtendBoardResponse>(context, o, request, [](const v1::Board& b) {
    return "is reserved until " + date_text(b.reservation().expire_time_us());
  });
}

Status release(Context& context, const LabOptions& o) {
  v1::ReleaseBoardRequest request;
  request.set_take_over(o.take_over);
  return each_board<v1::ReleaseBoardResponse>(context, o, request,
                                              [](const v1::Board&) { return "is free"; });
}

Status maintain(Context& context, const LabOptions& o) {
  v1::SetMaintenanceRequest request;
  request.set_on(o.state == "on");
  request.set_note(o.note);
  return each_board<v1::SetMaintenanceResponse>(context, o, request, [](const v1::Board& b) {
    return b.has_maintenance() ? "is in maintenance: no run begins, its alerts are quiet"
                               : "is in service";
  });
}

// --restore: also the weights that the old one was meant to hold.
Status replace(Context& context, const LabOptions& o) {
  ODT_ASSIGN(const v1::Board old, find_board(context, o.boards.front()));
  ODT_ASSIGN(const v1::Board by, find_board(context, o.by));
  v1::ReplaceBoardRequest request;
  request.set_old_uid(old.uid());
  request.set_new_uid(by.uid());
  ODT_ASSIGN(const auto response, context.call<v1::ReplaceBoardResponse>(request));
  const v1::Board& now = response.new_board();
  if (context.json) context.print_json(response);
  context.say(now.name() + " stands at '" + now.place() + "' for " + old.name());
  if (now.target_snapshot().empty()) return {};
  const std::string target = hex(now.target_snapshot()).substr(0, 16);
  if (!o.restore) {
    context.note("it is meant to hold weights " + target + ": odtctl weights restore " + target +
                 " --board " + now.name());
    return {};
  }
  v1::RestoreWeightsRequest weights;
  weights.set_board_uid(now.uid());
  weights.set_snapshot(now.target_snapshot());
  ODT_TRY(context.call<v1::RestoreWeightsResponse>(weights));
  context.say(now.name() + " holds weights " + target);
  return {};
}

// Exit 1 where the command failed.
Status power_cycle(Context& context, const LabOptions& o) {
  ODT_ASSIGN(const v1::Board board, find_board(context, o.boards.front()));
  v1::ListPowerProfilesRequest list;
  ODT_ASSIGN(const auto profiles, context.call<v1::ListPowerProfilesResponse>(list));
  for (const auto& p : profiles.profiles())
    if (p.name() == board.power().profile())
      context.answer_within(static_cast<int>(p.timeout_s()) + 10);
  v1::PowerCycleBoardRequest request;
  request.set_uid(board.uid());
  ODT_ASSIGN(const auto response, context.call<v1::PowerCycleBoardResponse>(request));
  const v1::PowerResult& r = response.result();
  if (context.json) context.print_json(r);
  if (r.ok()) {
    context.say(absl::StrCat(board.name(), ": power cycled by profile '", r.profile(), "' in ",
                             duration_text(std::int64_t{r.took_ms()} * 1000)));
    return {};
  }
  for (const auto line : absl::StrSplit(r.output(), '\n', absl::SkipEmpty()))
    context.note(std::string(line));
  return with_reason(absl::UnknownError(board.name() + ": " + r.reason().text()), r.reason().code(),
                     r.reason().remedy());
}

Status list_profiles(Context& context) {
  v1::ListPowerProfilesRequest request;
  ODT_ASSIGN(const auto response, context.call<v1::ListPowerProfilesResponse>(request));
  if (context.json) {
    context.print_json(response);
    return {};
  }
  if (response.profiles().empty()) {
    context.say("no power profiles ([[power]] in odtd's configuration)");
    return {};
  }
  ODT_ASSIGN(const Names names, Names::read(context));
  Table table({"PROFILE", "AUTOMATIC", "TIMEOUT", "BOARDS", "COMMAND"});
  for (const auto& p : response.profiles()) {
    std::string boards, command;
    for (const auto& uid : p.board_uids()) boards += (boards.empty() ? "" : ",") + names.board(uid);
    for (const auto& argument : p.argv()) command += (command.empty() ? "" : " ") + argument;
    table.add({p.name(), p.automatic() ? absl::StrCat("away ", p.away_s(), " s") : "no",
               absl::StrCat(p.timeout_s(), " s"), boards.empty() ? "-" : boards, command});
  }
  context.print(table);
  return {};
}

Status history(Context& context, const LabOptions& o) {
  ODT_ASSIGN(const v1::Board board, find_board(context, o.boards.front()));
  ODT_ASSIGN(Client * client, context.client());
  v1::ListLabEventsRequest request;
  request.set_board_uid(board.uid());
  ODT_ASSIGN(const auto events, client->list<v1::ListLabEventsResponse>(
                                    request, [](const auto& page) { return page.events(); }));
  if (context.json) {
    auto out = nlohmann::ordered_json::array();
    for (const auto& event : events) out.push_back(to_json(event));
    context.print_json(out);
    return {};
  }
  if (events.empty()) {
    context.say("nothing has happened to " + board.name() + " yet");
    return {};
  }
  ODT_ASSIGN(const Names names, Names::read(context));
  Table table({"WHEN", "BY", "WHAT"});
  for (const auto& e : events) table.add({date_text(e.time_us()), e.actor(), event_text(e, names)});
  context.print(table);
  return {};
}

}  // namespace

void add_lab(CLI::App& board, Context& context) {
  const auto o = std::make_shared<LabOptions>();
  const auto verb = [&](const char* name, const char* help, bool many, auto act) {
    CLI::App* v = board.add_subcommand(name, help);
    const char* what = "Name, or beginning of the uid";
    if (many)
      v->add_option("BOARD", o->boards, what)->required();
    else
      v->add_option("BOARD", o->board, what)->required();
    v->callback([&context, o, act, many] {
      if (!many) o->boards.assign(1, o->board);
      context.action = [&context, o, act] { return act(context, *o); };
    });
    return v;
  };
  CLI::App* sub =
      verb("reserve", "Keep boards for yourself, or --owner, for a time", true, reserve);
  sub->add_option("--for", o->time, "90s, 30m, 2h, 7d (1h)");
  sub->add_option("--note", o->note, "For the others");
  sub->add_flag("--take-over", o->take_over, "Also from somebody else (admin); it is recorded");
  sub = verb("extend", "Keep reserved boards for so long from now on", true, extend);
  sub->add_option("--for", o->time, "90s, 30m, 2h, 7d (1h)");
  sub = verb("release", "End a reservation before its time", true, release);
  sub->add_flag("--take-over", o->take_over, "Also somebody else's (admin); it is recorded");
  sub = verb("maintenance", "Out of service: no run begins, alerts are quiet", false, maintain);
  sub->add_option("STATE", o->state, "on or off")->required()->check(CLI::IsMember({"on", "off"}));
  sub->add_option("--note", o->note, "For the others");
  sub = verb("replace", "Another board takes the place, labels and target weights of one", false,
             replace);
  sub->add_option("BY", o->by, "The new board")->required();
  sub->add_flag("--restore", o->restore, "Also give it the weights that the old one should hold");
  verb("power-cycle", "Switch a board's power off and on (odtd's configuration says how)", false,
       power_cycle);
  verb("history", "What was done with a board: reservations, maintenance, places, power", false,
       history);
  sub = board.add_subcommand("power-profiles", "How boards' power can be switched");
  sub->callback([&context] { context.action = [&context] { return list_profiles(context); }; });
}

}  // namespace odt::cli
