#include "api/service_helpers.h"

namespace odt::api {
namespace {

using alerts::AlertControl;

constexpr std::size_t kNote = 1000;

Result<model::AlertKind> rule_field(v1::AlertRuleKind rule, bool required) {
  if (!v1::AlertRuleKind_IsValid(rule) || (required && rule == v1::ALERT_RULE_KIND_UNSPECIFIED)) {
    std::string names;
    for (const auto& info : model::kAlertRules)
      names += (names.empty() ? "" : ", ") + std::string(info.name);
    return bad_field("rule", "not one of " + names);
  }
  return static_cast<model::AlertKind>(rule);
}

void add_alert_reads(ApiService& service, Deps& deps) {
  service.unary<v1::ListAlertsRequest, v1::ListAlertsResponse>(
      "ListAlerts", [&deps](const Call&, const v1::ListAlertsRequest& request,
                            Reply<v1::ListAlertsResponse> reply) {
        ODT_FIELD(auto params, params_of<v1::Alert>(request));
        answer_from_store(deps.control, reply,
                          [params](store::ControlStore& store) -> Result<v1::ListAlertsResponse> {
                            ODT_ASSIGN(auto page,
                                       (list_from<v1::Alert, model::Alert>(
                                           params, [&](const auto& q) { return store.alerts(q); },
                                           [](const auto& item) { return to_proto(item); })));
                            v1::ListAlertsResponse response;
                            for (auto& item : page.items) *response.add_alerts() = std::move(item);
                            response.set_next_page_token(page.next_token);
                            return response;
                          });
      });
  service.unary<v1::GetAlertRequest, v1::GetAlertResponse>(
      "GetAlert",
      [&deps](const Call&, const v1::GetAlertRequest& request, Reply<v1::GetAlertResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        answer_from_store(deps.control, reply,
                          [id](store::ControlStore& store) -> Result<v1::GetAlertResponse> {
                            const auto found = store.alert(id);
                            if (!found.ok()) return not_found(found.status(), "alert", id.hex());
                            v1::GetAlertResponse response;
                            *response.mutable_alert() = to_proto(*found);
                            return response;
                          });
      });
  service.unary<v1::ListAlertRulesRequest, v1::ListAlertRulesResponse>(
      "ListAlertRules", [&deps](const Call&, const v1::ListAlertRulesRequest&,
                                Reply<v1::ListAlertRulesResponse> reply) {
        deps.alerts.overview([reply](Result<AlertControl::Overview> overview) {
          if (!overview.ok()) return reply(overview.status());
          v1::ListAlertRulesResponse response;
          *response.mutable_settings() = to_proto(overview->settings);
          response.set_pending(overview->pending);
          response.set_dead(overview->dead);
          reply(std::move(response));
        });
      });
}

// A board that odtd does not know is a slip of the hand.
void silence(Deps& deps, const Call& call, model::AlertSilence silence,
             Reply<v1::SilenceAlertsResponse> reply) {
  const auto begin = [&deps, ctx = call.ctx, silence, reply] {
    deps.alerts.silence(ctx, silence, [reply](Result<AlertControl::Silenced> done) {
      if (!done.ok()) return reply(done.status());
      v1::SilenceAlertsResponse response;
      *response.mutable_silence() = to_proto(done->silence);
      response.set_firing(done->firing);
      reply(std::move(response));
    });
  };
  if (silence.board.empty()) return begin();
  deps.control.post([board = silence.board, begin, reply](store::ControlStore& store) {
    const auto known = store.board(board);
    if (!known.ok()) return reply(not_found(known.status(), "board", board.hex()));
    begin();
  });
}

void add_silences(ApiService& service, Deps& deps) {
  service.unary<v1::SilenceAlertsRequest, v1::SilenceAlertsResponse>(
      "SilenceAlerts", [&deps](const Call& call, const v1::SilenceAlertsRequest& request,
                               Reply<v1::SilenceAlertsResponse> reply) {
        model::AlertSilence asked;
        ODT_FIELD(asked.rule, rule_field(request.rule(), false));
        if (!request.board_uid().empty()) {
          ODT_FIELD(asked.board, uid_field(request.board_uid(), "board_uid"));
        }
        asked.until_us = request.until_time_us();
        ODT_FIELD(asked.note, text_field(request.note(), "note", kNote, false));
        silence(deps, call, std::move(asked), std::move(reply));
      });
  service.unary<v1::UnsilenceAlertsRequest, v1::UnsilenceAlertsResponse>(
      "UnsilenceAlerts", [&deps](const Call& call, const v1::UnsilenceAlertsRequest& request,
                                 Reply<v1::UnsilenceAlertsResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        deps.alerts.unsilence(call.ctx, id, answer_done(std::move(reply)));
      });
}

void add_alert_changes(ApiService& service, Deps& deps) {
  service.unary<v1::AcknowledgeAlertRequest, v1::AcknowledgeAlertResponse>(
      "AcknowledgeAlert", [&deps](const Call& call, const v1::AcknowledgeAlertRequest& request,
                                  Reply<v1::AcknowledgeAlertResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        ODT_FIELD(std::string note, text_field(request.note(), "note", kNote, false));
        deps.alerts.acknowledge(
            call.ctx, id, std::move(note),
            answer_with<v1::AcknowledgeAlertResponse, model::Alert>(
                std::move(reply), &v1::AcknowledgeAlertResponse::mutable_alert));
      });
  service.unary<v1::UpdateAlertRuleRequest, v1::UpdateAlertRuleResponse>(
      "UpdateAlertRule", [&deps](const Call& call, const v1::UpdateAlertRuleRequest& request,
                                 Reply<v1::UpdateAlertRuleResponse> reply) {
        AlertControl::RuleUpdate update;
        ODT_FIELD(update.rule, rule_field(request.rule(), true));
        if (request.has_enabled()) update.enabled = request.enabled();
        if (request.has_threshold()) update.threshold = request.threshold();
        update.reset = request.reset();
        if (!update.enabled && !update.threshold && !update.reset)
          return reply(bad_field("rule", "nothing to change: give enabled, threshold or reset"));
        deps.alerts.update_rule(call.ctx, update,
                                answer_with<v1::UpdateAlertRuleResponse, model::AlertRule>(
                                    std::move(reply), &v1::UpdateAlertRuleResponse::mutable_rule));
      });
  service.unary<v1::TestWebhookRequest, v1::TestWebhookResponse>(
      "TestWebhook", [&deps](const Call& call, const v1::TestWebhookRequest& request,
                             Reply<v1::TestWebhookResponse> reply) {
        deps.alerts.test_webhook(call.ctx, request.retry_dead(),
                                 [reply](Result<AlertControl::WebhookTest> test) {
                                   if (!test.ok()) return reply(test.status());
                                   v1::TestWebhookResponse response;
                                   response.set_delivered(test->delivered);
                                   response.set_http_status(test->http_status);
                                   response.set_error(clean_text(test->error));
                                   response.set_took_ms(test->took_ms);
                                   response.set_retried(test->retried);
                                   reply(std::move(response));
                                 });
      });
}

}  // namespace

ServicePtr make_alert_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate, *v1::GetAlertRequest::descriptor()->file()->FindServiceByName("AlertService"));
  add_alert_reads(*service, deps);
  add_silences(*service, deps);
  add_alert_changes(*service, deps);
  return service;
}

}  // namespace odt::api
