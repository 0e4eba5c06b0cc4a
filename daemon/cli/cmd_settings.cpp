// Settings by scope: defaults of runs for the fleet, a board type, a cohort, a board.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "odt/api/v1/alerts.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

struct ScopeOptions {
  std::vector<std::string> words;
  bool fleet = false;
  std::string type, cohort, board;
};

Result<v1::Setting> scope_of(Context& context, const ScopeOptions& o) {
  const int given = (o.fleet ? 1 : 0) + (o.type.empty() ? 0 : 1) + (o.cohort.empty() ? 0 : 1) +
                    (o.board.empty() ? 0 : 1);
  if (given != 1)
    return absl::InvalidArgumentError(
        "for which boards? one of --fleet, --type TYPE, --cohort QUERY, --board BOARD");
  v1::Setting out;
  if (o.fleet) {
    out.set_scope(v1::SETTING_SCOPE_FLEET);
  } else if (!o.type.empty()) {
    out.set_scope(v1::SETTING_SCOPE_BOARD_TYPE);
    out.set_target(o.type);
  } else if (!o.cohort.empty()) {
    out.set_scope(v1::SETTING_SCOPE_COHORT);
    out.set_target(o.cohort);
  } else {
    ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
    out.set_scope(v1::SETTING_SCOPE_BOARD);
    out.set_board_uid(board.uid());
  }
  return out;
}

std::string scope_text(const v1::Setting& setting, const Names& names) {
  switch (setting.scope()) {
    case v1::SETTING_SCOPE_FLEET:
      return "fleet";
    case v1::SETTING_SCOPE_BOARD_TYPE:
      return "type " + setting.target();
    case v1::SETTING_SCOPE_COHORT:
      return "cohort " + setting.target();
    case v1::SETTING_SCOPE_BOARD:
      return "board " + names.board(setting.board_uid());
    default:
      return "?";
  }
}

Status set(Context& context, const ScopeOptions& o) {
  ODT_ASSIGN(const v1::Setting scope, scope_of(context, o));
  // All are read before the first is set.
  std::vector<v1::SetSettingRequest> requests;
  for (const auto& word : o.words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      return absl::InvalidArgumentError("'" + word + "' is not KEY=VALUE");
    auto& request = requests.emplace_back();
    *request.mutable_setting() = scope;
    request.mutable_setting()->set_key(word.substr(0, equals));
    request.mutable_setting()->set_value(word.substr(equals + 1));
  }
  auto out = nlohmann::ordered_json::array();
  for (const auto& request : requests) {
    ODT_ASSIGN(const auto response, context.call<v1::SetSettingResponse>(request));
    out.push_back(to_json(response.setting()));
    context.say(absl::StrCat(response.setting().key(), " = ", response.setting().value(), " for ",
                             response.boards(), response.boards() == 1 ? " board" : " boards"));
  }
  if (context.json) context.print_json(out);
  return {};
}

Status unset(Context& context, const ScopeOptions& o) {
  ODT_ASSIGN(const v1::Setting scope, scope_of(context, o));
  auto out = nlohmann::ordered_json::array();
  for (const auto& word : o.words) {
    v1::UnsetSettingRequest request;
    *request.mutable_setting() = scope;
    request.mutable_setting()->set_key(word);
    ODT_TRY(context.call<v1::UnsetSettingResponse>(request));
    out.push_back(word);
    context.say(word + " is no longer set there");
  }
  if (context.json) context.print_json(nlohmann::ordered_json{{"unset", out}});
  return {};
}

Status list(Context& context, const std::string& filter) {
  ODT_ASSIGN(Client * client, context.client());
  v1::ListSettingsRequest request;
  request.set_filter(filter);
  ODT_ASSIGN(const auto settings, client->list<v1::ListSettingsResponse>(
                                      request, [](const auto& page) { return page.settings(); }));
  if (context.json) {
    auto out = nlohmann::ordered_json::array();
    for (const auto& setting : settings) out.push_back(to_json(setting));
    context.print_json(out);
    return {};
  }
  if (settings.empty()) {
    context.say("no settings; e.g. odtctl settings set --fleet epochs=5");
    return {};
  }
  ODT_ASSIGN(const Names names, Names::read(context));
  Table table({"SCOPE", "KEY", "VALUE", "BY", "SINCE"});
  for (const auto& s : settings)
    table.add({scope_text(s, names), s.key(), s.value(), s.meta().created_by(),
               date_text(s.meta().create_time_us())});
  context.print(table);
  return {};
}

Status show(Context& context, const std::string& word, bool all) {
  ODT_ASSIGN(const v1::Board board, find_board(context, word));
  v1::GetEffectiveSettingsRequest request;
  request.set_board_uid(board.uid());
  ODT_ASSIGN(const auto response, context.call<v1::GetEffectiveSettingsResponse>(request));
  if (context.json) {
    context.print_json(response);
    return {};
  }
  ODT_ASSIGN(const Names names, Names::read(context));
  context.say(response.run_id().empty() ? board.name() + " has had no run yet"
                                        : board.name() + "; reported: its last run, " +
                                              hex(response.run_id()).substr(0, 16));
  Table table({"KEY", "DESIRED", "FROM", "REPORTED", "OVERRIDES"});
  for (const auto& s : response.settings()) {
    if (!all && s.desired().empty() && s.reported().empty()) continue;
    std::string overrides;
    for (const auto& other : s.overridden())
      overrides +=
          (overrides.empty() ? "" : "; ") + other.value() + " of " + scope_text(other, names);
    table.add({s.key(), s.desired().empty() ? "-" : s.desired(),
               s.has_source() ? scope_text(s.source(), names) : "the policy",
               (s.reported().empty() ? "-" : s.reported()) + (s.asked() ? " (asked)" : ""),
               overrides});
  }
  context.print(table);
  return {};
}

CLI::App* add_scoped(CLI::App& parent, Context& context, const char* name, const char* help,
                     const char* words, const char* what,
                     Status (*act)(Context&, const ScopeOptions&)) {
  const auto o = std::make_shared<ScopeOptions>();
  CLI::App* verb = parent.add_subcommand(name, help);
  verb->add_option(words, o->words, what)->required();
  verb->add_flag("--fleet", o->fleet, "For all boards");
  verb->add_option("--type", o->type, "For boards of this type, e.g. mps2_an505");
  verb->add_option("--cohort", o->cohort, "For boards by labels and fields: site=lab,!broken");
  verb->add_option("--board", o->board, "For this board");
  verb->callback(
      [&context, o, act] { context.action = [&context, o, act] { return act(context, *o); }; });
  return verb;
}

}  // namespace

void add_settings(CLI::App& app, Context& context) {
  CLI::App* settings =
      app.add_subcommand("settings", "Defaults of runs by scope: list, set, unset, show");
  settings->require_subcommand(1);
  const auto filter = std::make_shared<std::string>();
  CLI::App* all = settings->add_subcommand("list", "All settings, the widest scope first");
  all->add_option("--filter", *filter, "scope=cohort,key=batch");
  all->callback([&context, filter] {
    context.action = [&context, filter] { return list(context, *filter); };
  });
  add_scoped(*settings, context, "set", "What runs take where they do not say otherwise", "SETTING",
             "KEY=VALUE, e.g. mu_weight=1 or mu_weight=1/-1/-3", set);
  add_scoped(*settings, context, "unset", "Back to the next wider scope", "KEY", "Keys", unset);
  const auto board = std::make_shared<std::string>();
  const auto every = std::make_shared<bool>(false);
  CLI::App* one = settings->add_subcommand("show", "What holds for a board, and why");
  one->add_option("BOARD,--board", *board, "Name, or beginning of the uid")->required();
  one->add_flag("--all", *every, "Also keys without a value");
  one->callback([&context, board, every] {
    context.action = [&context, board, every] { return show(context, *board, *every); };
  });
}

}  // namespace odt::cli
