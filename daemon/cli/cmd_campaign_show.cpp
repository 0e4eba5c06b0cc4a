#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/campaign_view.h"
#include "cli/context.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "cli/resolve.h"
#include "odt/api/v1/campaigns.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

std::string kind_word(const v1::Campaign& c) {
  return without_prefix(v1::CampaignKind_Name(c.spec().kind()), "CAMPAIGN_KIND_");
}
std::string state_word(const v1::Campaign& c) {
  return without_prefix(v1::CampaignState_Name(c.state()), "CAMPAIGN_STATE_");
}
std::string state_word(const v1::CampaignUnit& u) {
  return without_prefix(v1::CampaignUnitState_Name(u.state()), "CAMPAIGN_UNIT_STATE_");
}
bool ended(const v1::Campaign& c) {
  return c.state() == v1::CAMPAIGN_STATE_SUCCEEDED || c.state() == v1::CAMPAIGN_STATE_FAILED ||
         c.state() == v1::CAMPAIGN_STATE_CANCELLED;
}

std::string settings(const v1::CampaignUnit& u, const v1::Campaign& c) {
  std::vector<std::string> out;
  for (const auto& axis : c.spec().sweep().axes()) {
    const auto* field = v1::HyperParams::descriptor()->FindFieldByName(
        axis.name() == "rule" ? "rule_set" : axis.name());
    if (field == nullptr) continue;
    const auto json = to_json(u.hyper());
    const auto& value = json[std::string(field->name())];
    out.push_back(axis.name() + "=" +
                  (value.is_array() ? [&value] {
                    std::vector<std::string> parts;
                    for (const auto& v : value) parts.push_back(v.dump());
                    return absl::StrJoin(parts, "/");
                  }() : value.is_string() ? value.get<std::string>() : value.dump()));
  }
  if (c.spec().sweep().strategy() == v1::SWEEP_STRATEGY_HALVING)
    out.push_back(absl::StrCat("epochs=", u.hyper().epochs()));
  return absl::StrJoin(out, " ");
}

std::string heldout(const v1::CampaignUnit& u) {
  if (u.heldout_best_loss().count() != 0) return loss_text(u.heldout_best_loss());
  return accuracy_text(u.heldout_best());
}

Result<v1::Campaign> fetch(Context& context, const std::string& id) {
  v1::GetCampaignRequest request;
  request.set_id(id);
  ODT_ASSIGN(const auto response, context.call<v1::GetCampaignResponse>(request));
  return response.campaign();
}

Result<google::protobuf::RepeatedPtrField<v1::CampaignUnit>> units_of(Context& context,
                                                                      const std::string& id) {
  ODT_ASSIGN(Client * client, context.client());
  v1::ListCampaignUnitsRequest request;
  request.set_campaign_id(id);
  return client->list<v1::ListCampaignUnitsResponse>(request, [](auto& r) { return r.units(); });
}

std::string line_of(const v1::Campaign& c) {
  return absl::StrCat(
      state_word(c), "  round ", c.round() + 1, "/", c.rounds_total(), "  ", c.units_done(), "/",
      c.units_total(), " done",
      c.units_running() != 0 ? absl::StrCat(", ", c.units_running(), " running") : "",
      c.units_failed() != 0 ? absl::StrCat(", ", c.units_failed(), " failed") : "",
      c.reason().text().empty() ? "" : "  " + c.reason().text());
}

void print_units(Context& context, const v1::Campaign& c, const Names& names,
                 const google::protobuf::RepeatedPtrField<v1::CampaignUnit>& units) {
  const bool sweep = c.spec().kind() == v1::CAMPAIGN_KIND_SWEEP;
  const bool federated = c.spec().kind() == v1::CAMPAIGN_KIND_FEDERATED;
  Table table(sweep ? std::vector<std::string>{"UNIT", "RUNG", "TRIAL", "STATE", "BOARD",
                                               "SETTINGS", "HELD-OUT", "RUN", "WHY"}
              : federated
                  ? std::vector<std::string>{"UNIT", "ROUND", "STATE", "BOARD", "HELD-OUT", "TEST",
                                             "DRIFT L1", "CHANGED", "WEIGHT", "RUN", "WHY"}
                  : std::vector<std::string>{"UNIT", "ROUND", "STATE", "BOARD", "HELD-OUT", "TEST",
                                             "RUN", "WHY"});
  for (const auto& u : units) {
    const std::string run = u.run_id().empty() ? "-" : hex(u.run_id()).substr(0, 16);
    const std::string round = u.personal() ? "own" : std::to_string(u.round() + 1);
    const std::string test = accuracy_text(u.before()) + " -> " + accuracy_text(u.after());
    if (sweep)
      table.add({std::to_string(u.index()), round, std::to_string(u.trial()), state_word(u),
                 names.board(u.board_uid()), settings(u, c), heldout(u), run, u.reason().text()});
    else if (federated)
      table.add({std::to_string(u.index()), round, state_word(u), names.board(u.board_uid()),
                 heldout(u), test, std::to_string(u.drift_l1()),
                 percent(u.changed_ppm(), 1'000'000), std::to_string(u.weight()), run,
                 u.reason().text()});
    else
      table.add({std::to_string(u.index()), round, state_word(u), names.board(u.board_uid()),
                 heldout(u), test, run, u.reason().text()});
  }
  context.print(table);
}

std::string twin_text(const v1::TwinResult& t) {
  switch (t.what()) {
    case v1::TwinResult::WHAT_UNSPECIFIED:
      return "not compared yet";
    case v1::TwinResult::WHAT_EQUAL:
      return absl::StrCat("A and B are equal in ", t.steps_compared(), " steps");
    case v1::TwinResult::WHAT_STATE:
      return absl::StrCat("states differ after epoch ", t.first_state_epoch());
    case v1::TwinResult::WHAT_LENGTH:
      return absl::StrCat("A has ", t.a(), " epochs, B has ", t.b());
    default:
      return absl::StrCat("first difference at step ", t.step(), ", layer ", t.layer(), ": ",
                          without_prefix(v1::TwinResult::What_Name(t.what()), "WHAT_"), " ", t.a(),
                          " and ", t.b());
  }
}

}  // namespace

Status list_campaigns(Context& context, const std::string& filter) {
  ODT_ASSIGN(Client * client, context.client());
  v1::ListCampaignsRequest request;
  request.set_filter(filter);
  ODT_ASSIGN(const auto all, client->list<v1::ListCampaignsResponse>(
                                 request, [](auto& r) { return r.campaigns(); }));
  auto out = nlohmann::ordered_json::array();
  std::vector<std::string> keys;
  for (const auto& c : all) keys.push_back(c.id());
  Table table({"CAMPAIGN", "KIND", "STATE", "BOARDS", "ROUND", "DONE", "FAILED", "NAME"});
  for (const auto& c : all) {
    out.push_back(to_json(c));
    table.add({short_key(c.id(), keys), kind_word(c), state_word(c),
               std::to_string(c.boards_size()), absl::StrCat(c.round() + 1, "/", c.rounds_total()),
               absl::StrCat(c.units_done(), "/", c.units_total()), std::to_string(c.units_failed()),
               c.spec().name()});
  }
  if (context.json) context.print_json(out);
  context.print(table);
  return {};
}

Status show_campaign(Context& context, const v1::Campaign& c) {
  ODT_ASSIGN(const auto units, units_of(context, c.id()));
  v1::ListCampaignRoundsRequest rounds_request;
  rounds_request.set_campaign_id(c.id());
  ODT_ASSIGN(const auto rounds, context.call<v1::ListCampaignRoundsResponse>(rounds_request));
  if (context.json) {
    v1::ListCampaignEventsRequest events_request;
    events_request.set_campaign_id(c.id());
    ODT_ASSIGN(const auto events, context.call<v1::ListCampaignEventsResponse>(events_request));
    auto out = nlohmann::ordered_json::object();
    out["campaign"] = to_json(c);
    for (const char* list : {"units", "rounds", "events"})
      out[list] = nlohmann::ordered_json::array();
    for (const auto& u : units) out["units"].push_back(to_json(u));
    for (const auto& r : rounds.rounds()) out["rounds"].push_back(to_json(r));
    for (const auto& e : events.events()) out["events"].push_back(to_json(e));
    context.print_json(out);
    return {};
  }
  ODT_ASSIGN(const Names names, Names::read(context));
  context.say("campaign " + hex(c.id()) + "  " + kind_word(c) + "  " + c.spec().name());
  context.say(line_of(c));
  context.say("model " + names.model(c.spec().model_hash()) + ", " +
              std::to_string(c.boards_size()) + " boards, " +
              duration_text(static_cast<std::int64_t>(c.board_us())) + " on boards");
  if (c.has_best_unit()) context.say(absl::StrCat("best: unit ", c.best_unit()));
  if (!c.result().empty()) context.say("result: snapshot " + hex(c.result()).substr(0, 16));
  if (c.has_twin()) {
    context.say(twin_text(c.twin()));
    context.say("settings that differ: " + (c.twin().settings_size() == 0
                                                ? std::string("none")
                                                : absl::StrJoin(c.twin().settings(), ", ")));
  }
  print_units(context, c, names, units);
  Table table({"ROUND", "BOARDS", "AVERAGED", "SAMPLES", "MEDIAN L1", "AVERAGE", "TOOK"});
  for (const auto& r : rounds.rounds())
    table.add({std::to_string(r.round() + 1), std::to_string(r.boards()),
               std::to_string(r.averaged()), std::to_string(r.samples()),
               std::to_string(r.median_l1()),
               r.average().empty() ? "-" : hex(r.average()).substr(0, 12),
               r.end_time_us() == 0 ? "-" : duration_text(r.end_time_us() - r.start_time_us())});
  if (rounds.rounds_size() != 0) context.print(table);
  return {};
}

Status show_checks(Context& context, const v1::CreateCampaignResponse& response) {
  if (context.json) context.print_json(response);
  ODT_ASSIGN(const Names names, Names::read(context));
  Table table({"BOARD", "ONLINE", "UNITS", "STEPS", "ESTIMATE", "CHECK"});
  std::string refusal, remedy;
  std::uint64_t longest = 0;
  for (const auto& check : response.checks()) {
    table.add(
        {names.board(check.board_uid()), check.online() ? "yes" : "no",
         std::to_string(check.units()), check.steps() == 0 ? "-" : std::to_string(check.steps()),
         check.estimate_us() == 0 ? "never measured"
                                  : duration_text(static_cast<std::int64_t>(check.estimate_us())),
         check.refusal().code().empty() ? "can" : check.refusal().text()});
    longest = std::max(longest, check.estimate_us());
    if (refusal.empty() && !check.refusal().code().empty()) {
      refusal = "board " + names.board(check.board_uid()) +
                " cannot take part: " + check.refusal().text();
      remedy = check.refusal().remedy();
    }
  }
  context.print(table);
  if (longest != 0)
    context.say("about " + duration_text(static_cast<std::int64_t>(longest)) +
                " for the first of " + std::to_string(response.campaign().rounds_total()) +
                " rounds");
  if (refusal.empty()) {
    context.say("the campaign could start");
    return {};
  }
  return with_exit(with_reason(absl::FailedPreconditionError(refusal), "CANNOT_RUN", remedy),
                   kExitRefused);
}

Status follow_campaign(Context& context, const std::string& id) {
  using Clock = std::chrono::steady_clock;
  std::string shown;
  auto heard = Clock::now();
  while (true) {
    const auto c = fetch(context, id);
    if (c.ok()) {
      heard = Clock::now();
      if (const std::string line = line_of(*c); line != shown) {
        shown = line;
        if (context.json && !ended(*c)) context.print_json(*c);
        context.say(line);
      }
      if (ended(*c)) {
        if (context.json) context.print_json(*c);
        if (!context.json) ODT_TRY(show_campaign(context, *c));
        if (c->state() == v1::CAMPAIGN_STATE_SUCCEEDED) return {};
        return with_exit(with_reason(absl::UnknownError("the campaign is " + state_word(*c) + ": " +
                                                        clean(c->reason().text())),
                                     c->reason().code(), c->reason().remedy()),
                         kExitRunFailed);
      }
    } else if (!unreachable(c.status()) || Clock::now() - heard > std::chrono::seconds(60)) {
      return c.status();
    }
    if (context.interrupt.wait(std::chrono::milliseconds(500))) {
      context.note("the campaign goes on in odtd: odtctl campaign wait " + hex(id).substr(0, 16));
      return with_exit(absl::CancelledError(""), kExitInterrupted);
    }
  }
}

Status show_accounting(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Run run, find_run(context, word));
  v1::GetRunAccountingRequest request;
  request.set_run_id(run.id());
  ODT_ASSIGN(const auto a, context.call<v1::GetRunAccountingResponse>(request));
  if (context.json) {
    context.print_json(a);
    return {};
  }
  Table table({"EPOCH", "HELD-OUT", "K", "ENERGY OF FP32", "MEMORY OF FP32", "RESIDENT"});
  for (const auto& e : a.epochs())
    table.add({std::to_string(e.epoch() + 1), accuracy_text(e.heldout()),
               join_numbers(e.layer_k(), ","), percent(e.energy(), e.energy_fp32()),
               percent(e.memory_bits(), e.memory_fp32_bits()), size_text(e.resident_bytes())});
  context.print(table);
  context.say("energy: " + percent(a.energy(), a.energy_fp32()) + " of fp32, " +
              percent(a.energy(), a.energy_fixed16()) + " of 16 bits, " +
              percent(a.energy(), a.energy_fixed8()) + " of 8 bits; memory at its peak: " +
              percent(a.peak_memory_bits(), a.memory_fp32_bits()) + " of fp32");
  return {};
}

}  // namespace odt::cli
