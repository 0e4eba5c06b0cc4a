// Alerts: what fires, who looks after it, what is silenced, the rules and the webhook.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "cli/resolve.h"
#include "odt/api/v1/alerts.pb.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string lower(std::string text) {
  for (char& c : text)
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string rule_word(v1::AlertRuleKind rule) {
  return lower(without_prefix(v1::AlertRuleKind_Name(rule), "ALERT_RULE_KIND_"));
}

// INVALID_ARGUMENT: names the rules.
Result<v1::AlertRuleKind> parse_rule(const std::string& word) {
  std::vector<std::string> names;
  const auto* all = v1::AlertRuleKind_descriptor();
  for (int i = 1; i < all->value_count(); ++i) {
    const auto rule = static_cast<v1::AlertRuleKind>(all->value(i)->number());
    if (rule_word(rule) == lower(word)) return rule;
    names.push_back(rule_word(rule));
  }
  std::string text = "no rule '" + word + "'; rules:";
  for (const auto& name : names) text += (name == names.front() ? " " : ", ") + name;
  return absl::InvalidArgumentError(text);
}

std::string handle_of(const v1::Alert& alert) {
  return rule_word(alert.rule()) + "/" + alert.subject();
}

std::string state_text(const v1::Alert& alert) {
  if (alert.state() != v1::ALERT_STATE_FIRING) return "resolved";
  if (alert.ack_time_us() != 0) return "acknowledged";
  return alert.silenced_until_time_us() > now_us() ? "silenced" : "FIRING";
}

std::string delivery_text(const v1::Alert& alert) {
  const auto& d = alert.delivery();
  std::string out = lower(without_prefix(v1::AlertDelivery::State_Name(d.state()), "STATE_"));
  if (d.state() == v1::AlertDelivery::STATE_UNSPECIFIED) return "-";
  if (d.attempts() > 1) absl::StrAppend(&out, " (", d.attempts(), " attempts)");
  if (!d.error().empty()) absl::StrAppend(&out, ": ", d.error());
  return out;
}

Result<std::vector<v1::Alert>> read_alerts(Context& context, const std::string& filter) {
  ODT_ASSIGN(Client * client, context.client());
  v1::ListAlertsRequest request;
  request.set_filter(filter);
  ODT_ASSIGN(const auto alerts, client->list<v1::ListAlertsResponse>(
                                    request, [](const auto& page) { return page.alerts(); }));
  return std::vector<v1::Alert>(alerts.begin(), alerts.end());
}

Result<v1::Alert> find_alert(Context& context, const std::string& word) {
  ODT_ASSIGN(auto alerts, read_alerts(context, ""));
  std::vector<Candidate> candidates;
  for (const auto& alert : alerts) candidates.push_back({alert.id(), handle_of(alert), {}});
  ODT_ASSIGN(const std::size_t index, resolve("alert", word, candidates));
  return alerts[index];
}

// ---- what there is ------------------------------------------------------------------------------

struct ListOptions {
  bool all = false, watch = false;
  std::string filter;
};

Status watch_alerts(Context& context) {
  v1::WatchRequest request;
  request.add_topics()->set_kind(v1::Topic::KIND_ALERTS);
  request.mutable_topics(0)->set_lossless(true);
  ODT_ASSIGN(Client * client, context.client());
  context.interrupt.on_interrupt([client] { client->cancel_watch(); });
  const Status status = client->watch(request, [&](const v1::WatchResponse& response) {
    for (const auto& event : response.events()) {
      if (!event.has_alert()) continue;
      const v1::Alert& alert = event.alert();
      if (event.event_seq() == 0 && alert.state() != v1::ALERT_STATE_FIRING) continue;
      if (context.json) context.print_json(alert);
      context.say(absl::StrCat(
          event.time_us() == 0 ? "now     " : clock_text(event.time_us()), "  ", state_text(alert),
          "  ", handle_of(alert), "  ",
          alert.state() == v1::ALERT_STATE_FIRING ? alert.reason().text() : alert.resolution()));
    }
    return true;
  });
  context.interrupt.on_interrupt({});
  if (context.interrupt.seen()) return with_exit(absl::CancelledError(""), kExitInterrupted);
  return status;
}

Status list_alerts(Context& context, const ListOptions& o) {
  if (o.watch) return watch_alerts(context);
  std::string filter = o.filter;
  if (!o.all && filter.find("state") == std::string::npos)
    filter += std::string(filter.empty() ? "" : ",") + "state=firing";
  ODT_ASSIGN(const auto alerts, read_alerts(context, filter));
  if (context.json) {
    auto out = nlohmann::ordered_json::array();
    for (const auto& alert : alerts) out.push_back(to_json(alert));
    context.print_json(out);
    return {};
  }
  if (alerts.empty()) {
    context.say(o.all ? "no alerts" : "nothing fires (--all: also what is over)");
    return {};
  }
  Table table({"ID", "STATE", "SEVERITY", "RULE", "SUBJECT", "SINCE", "COUNT", "WHAT"});
  for (const auto& alert : alerts) {
    const bool firing = alert.state() == v1::ALERT_STATE_FIRING;
    table.add({hex(alert.id()).substr(0, 16), state_text(alert),
               lower(without_prefix(v1::AlertSeverity_Name(alert.severity()), "ALERT_SEVERITY_")),
               rule_word(alert.rule()), alert.subject(), date_text(alert.fire_time_us()),
               std::to_string(alert.count()), firing ? alert.reason().text() : alert.resolution()});
  }
  context.print(table);
  return {};
}

void say_alert(Context& context, const v1::Alert& alert) {
  context.say("alert " + hex(alert.id()) + "  " + handle_of(alert) + "  " + state_text(alert));
  context.say("  " + alert.reason().code() + ": " + alert.reason().text());
  context.say("  " + alert.reason().remedy());
  if (!alert.board_uid().empty()) context.say("  board " + hex(alert.board_uid()));
  if (!alert.run_id().empty()) context.say("  run " + hex(alert.run_id()));
  context.say(absl::StrCat("  value ", alert.value(), ", threshold ", alert.threshold(), ", seen ",
                           alert.count(), " times"));
  context.say("  first " + date_text(alert.first_time_us()) + ", fired " +
              date_text(alert.fire_time_us()) + ", last seen " + date_text(alert.last_time_us()));
  if (alert.resolve_time_us() != 0)
    context.say("  over " + date_text(alert.resolve_time_us()) + ": " + alert.resolution());
  if (alert.ack_time_us() != 0)
    context.say("  acknowledged " + date_text(alert.ack_time_us()) + " by " + alert.ack_by() +
                (alert.ack_note().empty() ? "" : ": " + alert.ack_note()));
  if (alert.silenced_until_time_us() > now_us())
    context.say("  silenced until " + date_text(alert.silenced_until_time_us()));
  context.say("  webhook: " + delivery_text(alert));
}

Status show_alert(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Alert found, find_alert(context, word));
  if (context.json) context.print_json(found);
  say_alert(context, found);
  return {};
}

Status show_rules(Context& context) {
  ODT_ASSIGN(const auto response,
             context.call<v1::ListAlertRulesResponse>(v1::ListAlertRulesRequest()));
  if (context.json) {
    context.print_json(response);
    return {};
  }
  const auto& settings = response.settings();
  Table table({"RULE", "ON", "THRESHOLD", "DEFAULT", "SEVERITY", "WHAT"});
  for (const auto& rule : settings.rules()) {
    const auto with_unit = [&](std::int64_t value) {
      return rule.unit().empty() ? "-" : absl::StrCat(value, " ", rule.unit());
    };
    table.add({rule_word(rule.rule()), rule.enabled() ? "yes" : "no",
               with_unit(rule.threshold()) + (rule.changed() ? " *" : ""),
               with_unit(rule.default_threshold()),
               lower(without_prefix(v1::AlertSeverity_Name(rule.severity()), "ALERT_SEVERITY_")),
               rule.text()});
  }
  context.print(table);
  context.say("* changed here; back to the configuration: odtctl alert rule set RULE --reset");
  if (!settings.silences().empty()) {
    ODT_ASSIGN(const Names names, Names::read(context));
    Table silences({"SILENCE", "RULE", "BOARD", "UNTIL", "BY", "NOTE"});
    for (const auto& s : settings.silences())
      silences.add({hex(s.id()).substr(0, 16),
                    s.rule() == v1::ALERT_RULE_KIND_UNSPECIFIED ? "any" : rule_word(s.rule()),
                    s.board_uid().empty() ? "any" : names.board(s.board_uid()),
                    date_text(s.until_time_us()), s.created_by(), s.note()});
    context.print(silences);
  }
  context.say(settings.webhook().empty()
                  ? "webhook: none (webhook_url in [alerts] of odtd's configuration)"
                  : absl::StrCat("webhook: ", settings.webhook(), "; ", response.pending(),
                                 " messages wait, ", response.dead(), " were given up"));
  return {};
}

// ---- what people do -----------------------------------------------------------------------------

Status acknowledge(Context& context, const std::vector<std::string>& words,
                   const std::string& note) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& word : words) {
    ODT_ASSIGN(const v1::Alert found, find_alert(context, word));
    v1::AcknowledgeAlertRequest request;
    request.set_id(found.id());
    request.set_note(note);
    ODT_ASSIGN(const auto response, context.call<v1::AcknowledgeAlertResponse>(request));
    out.push_back(to_json(response.alert()));
    context.say(handle_of(found) + " is acknowledged until it fires again");
  }
  if (context.json) context.print_json(out);
  return {};
}

struct SilenceOptions {
  std::string rule, board, time, note;
};

Status silence(Context& context, const SilenceOptions& o) {
  if (o.rule.empty() && o.board.empty())
    return absl::InvalidArgumentError("what? give --rule RULE, --board BOARD, or both");
  v1::SilenceAlertsRequest request;
  if (!o.rule.empty()) {
    ODT_ASSIGN(const v1::AlertRuleKind rule, parse_rule(o.rule));
    request.set_rule(rule);
  }
  if (!o.board.empty()) {
    ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
    request.set_board_uid(board.uid());
  }
  ODT_ASSIGN(const std::int64_t time, parse_duration(o.time));
  request.set_until_time_us(now_us() + time);
  request.set_note(o.note);
  ODT_ASSIGN(const auto response, context.call<v1::SilenceAlertsResponse>(request));
  if (context.json) context.print_json(response);
  context.say(absl::StrCat("silence ", hex(response.silence().id()).substr(0, 16), " until ",
                           date_text(response.silence().until_time_us()), "; ", response.firing(),
                           " of what fires now is quiet by it"));
  return {};
}

Status unsilence(Context& context, const std::string& word) {
  ODT_ASSIGN(const auto rules,
             context.call<v1::ListAlertRulesResponse>(v1::ListAlertRulesRequest()));
  const auto& silences = rules.settings().silences();
  std::vector<Candidate> candidates;
  for (const auto& s : silences) candidates.push_back({s.id(), "", {}});
  ODT_ASSIGN(const std::size_t index, resolve("silence", word, candidates));
  v1::UnsilenceAlertsRequest request;
  request.set_id(candidates[index].key);
  ODT_TRY(context.call<v1::UnsilenceAlertsResponse>(request));
  if (context.json) context.print_json(nlohmann::ordered_json{{"removed", hex(request.id())}});
  context.say("silence " + hex(request.id()).substr(0, 16) + " is over");
  return {};
}

struct RuleOptions {
  std::string rule;
  bool enable = false, disable = false, reset = false;
  std::int64_t threshold = 0;
};

Status set_rule(Context& context, const RuleOptions& o, const CLI::App& verb) {
  v1::UpdateAlertRuleRequest request;
  ODT_ASSIGN(const v1::AlertRuleKind rule, parse_rule(o.rule));
  request.set_rule(rule);
  if (o.enable || o.disable) request.set_enabled(o.enable);
  if (verb.count("--threshold") != 0) request.set_threshold(o.threshold);
  request.set_reset(o.reset);
  ODT_ASSIGN(const auto response, context.call<v1::UpdateAlertRuleResponse>(request));
  if (context.json) context.print_json(response.rule());
  const v1::AlertRule& now = response.rule();
  context.say(absl::StrCat(
      rule_word(rule), now.enabled() ? " is on" : " is off",
      now.unit().empty() ? "" : absl::StrCat(", threshold ", now.threshold(), " ", now.unit())));
  return {};
}

// Exit 1 where the message was not taken.
Status test_webhook(Context& context, bool retry_dead) {
  v1::TestWebhookRequest request;
  request.set_retry_dead(retry_dead);
  ODT_ASSIGN(const auto response, context.call<v1::TestWebhookResponse>(request));
  if (context.json) context.print_json(response);
  if (retry_dead) context.say(absl::StrCat(response.retried(), " messages are tried again"));
  if (response.delivered()) {
    context.say(absl::StrCat("delivered: HTTP status ", response.http_status(), " after ",
                             response.took_ms(), " ms"));
    return {};
  }
  return with_reason(absl::UnknownError("the webhook did not take it: " + response.error()),
                     "WEBHOOK_FAILED", "See webhook_url in [alerts] of odtd's configuration.");
}

void add_word_verb(CLI::App& parent, Context& context, const char* name, const char* help,
                   const char* argument, const char* what,
                   Status (*act)(Context&, const std::string&)) {
  const auto word = std::make_shared<std::string>();
  CLI::App* verb = parent.add_subcommand(name, help);
  verb->add_option(argument, *word, what)->required();
  verb->callback([&context, word, act] {
    context.action = [&context, word, act] { return act(context, *word); };
  });
}

void add_list(CLI::App& alert, Context& context) {
  const auto o = std::make_shared<ListOptions>();
  CLI::App* list = alert.add_subcommand("list", "What fires, newest first");
  list->add_flag("--all", o->all, "Also what is over");
  list->add_flag("--watch", o->watch, "Each change as it happens, until Ctrl-C");
  list->add_option("--filter", o->filter, "rule=offline,severity=critical,ack_time_us=0");
  list->callback(
      [&context, o] { context.action = [&context, o] { return list_alerts(context, *o); }; });
}

void add_acts(CLI::App& alert, Context& context) {
  const auto words = std::make_shared<std::vector<std::string>>();
  const auto note = std::make_shared<std::string>();
  CLI::App* ack = alert.add_subcommand("ack", "Somebody looks after it");
  ack->add_option("ALERT", *words, "RULE/SUBJECT, or beginnings of ids")->required();
  ack->add_option("--note", *note, "For the others");
  ack->callback([&context, words, note] {
    context.action = [&context, words, note] { return acknowledge(context, *words, *note); };
  });
  const auto s = std::make_shared<SilenceOptions>();
  CLI::App* quiet = alert.add_subcommand("silence", "Keep alerts out of the webhook for a time");
  quiet->add_option("--rule", s->rule, "Of this rule; default: all");
  quiet->add_option("--board", s->board, "Of this board; default: all");
  quiet->add_option("--for", s->time, "90s, 30m, 2h, 7d")->required();
  quiet->add_option("--note", s->note, "For the others");
  quiet->callback(
      [&context, s] { context.action = [&context, s] { return silence(context, *s); }; });
  const auto r = std::make_shared<RuleOptions>();
  CLI::App* rule = alert.add_subcommand("rule", "One rule: set");
  rule->require_subcommand(1);
  CLI::App* set = rule->add_subcommand("set", "Switch a rule on or off, or move its threshold");
  set->add_option("RULE", r->rule, "Its name: odtctl alert rules")->required();
  auto* on = set->add_flag("--enable", r->enable, "On");
  set->add_flag("--disable", r->disable, "Off: what fires by it is over")->excludes(on);
  set->add_option("--threshold", r->threshold, "In the rule's unit");
  set->add_flag("--reset", r->reset, "To the configuration's values first");
  set->callback([&context, r, set] {
    context.action = [&context, r, set] { return set_rule(context, *r, *set); };
  });
}

}  // namespace

void add_alert(CLI::App& app, Context& context) {
  CLI::App* alert = app.add_subcommand("alert", "Alerts: list, show, ack, silence, rules, ...");
  alert->require_subcommand(1);
  add_list(*alert, context);
  add_word_verb(*alert, context, "show", "One alert with everything", "ALERT",
                "RULE/SUBJECT, or beginning of the id", show_alert);
  add_acts(*alert, context);
  add_word_verb(*alert, context, "unsilence", "End a silence", "SILENCE",
                "Beginning of its id: odtctl alert rules", unsilence);
  CLI::App* rules = alert->add_subcommand("rules", "Rules, silences and the webhook");
  rules->callback([&context] { context.action = [&context] { return show_rules(context); }; });
  const auto retry = std::make_shared<bool>(false);
  CLI::App* test = alert->add_subcommand("test", "Send a message to the webhook now");
  test->add_flag("--retry-dead", *retry, "Also try again what was given up");
  test->callback([&context, retry] {
    context.action = [&context, retry] { return test_webhook(context, *retry); };
  });
}

}  // namespace odt::cli
