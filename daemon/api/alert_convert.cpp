#include "api/convert_parts.h"
#include "api/parse_parts.h"

// Alerts and settings by scope as messages, and back.
namespace odt::api {

v1::Alert to_proto(const model::Alert& alert) {
  v1::Alert out;
  out.set_id(id_bytes(alert.id));
  out.set_rule(static_cast<v1::AlertRuleKind>(alert.rule));
  out.set_state(static_cast<v1::AlertState>(alert.state));
  out.set_severity(static_cast<v1::AlertSeverity>(alert.severity));
  out.set_subject(clean_text(alert.subject));
  out.set_board_uid(alert.board.str());
  out.set_run_id(id_bytes(alert.run_id));
  set_reason(alert.reason, out.mutable_reason());
  out.set_value(alert.value);
  out.set_threshold(alert.threshold);
  out.set_count(alert.count);
  out.set_first_time_us(alert.first_time_us);
  out.set_fire_time_us(alert.fire_time_us);
  out.set_last_time_us(alert.last_time_us);
  out.set_resolve_time_us(alert.resolve_time_us);
  out.set_resolution(clean_text(alert.resolution));
  out.set_ack_time_us(alert.ack_time_us);
  out.set_ack_by(clean_text(alert.ack_by));
  out.set_ack_note(clean_text(alert.ack_note));
  out.set_silenced_until_time_us(alert.silenced_until_us);
  auto* delivery = out.mutable_delivery();
  delivery->set_state(static_cast<v1::AlertDelivery::State>(alert.delivery.state));
  delivery->set_attempts(alert.delivery.attempts);
  delivery->set_error(clean_text(alert.delivery.error));
  delivery->set_time_us(alert.delivery.time_us);
  delivery->set_next_time_us(alert.delivery.next_time_us);
  set_meta(alert.meta, out.mutable_meta());
  return out;
}

v1::AlertRule to_proto(const model::AlertRule& rule) {
  v1::AlertRule out;
  out.set_rule(static_cast<v1::AlertRuleKind>(rule.rule));
  out.set_enabled(rule.enabled);
  out.set_threshold(rule.threshold);
  out.set_severity(static_cast<v1::AlertSeverity>(rule.severity));
  out.set_default_threshold(rule.default_threshold);
  out.set_default_enabled(rule.default_enabled);
  out.set_changed(rule.changed);
  if (const auto* info = model::alert_rule_info(rule.rule); info != nullptr) {
    out.set_unit(info->unit);
    out.set_min(info->min);
    out.set_max(info->max);
    out.set_text(info->text);
  }
  return out;
}

v1::AlertSilence to_proto(const model::AlertSilence& silence) {
  v1::AlertSilence out;
  out.set_id(id_bytes(silence.id));
  out.set_rule(static_cast<v1::AlertRuleKind>(silence.rule));
  out.set_board_uid(silence.board.str());
  out.set_until_time_us(silence.until_us);
  out.set_note(clean_text(silence.note));
  out.set_created_by(clean_text(silence.created_by));
  out.set_create_time_us(silence.create_time_us);
  return out;
}

v1::AlertSettings to_proto(const model::AlertSettings& settings) {
  v1::AlertSettings out;
  for (const auto& rule : settings.rules) *out.add_rules() = to_proto(rule);
  for (const auto& silence : settings.silences) *out.add_silences() = to_proto(silence);
  out.set_webhook(clean_text(settings.webhook));
  set_meta(settings.meta, out.mutable_meta());
  return out;
}

v1::Setting to_proto(const model::Setting& setting) {
  v1::Setting out;
  out.set_scope(static_cast<v1::SettingScope>(setting.scope));
  out.set_target(clean_text(setting.target));
  out.set_board_uid(setting.board.str());
  out.set_key(clean_text(setting.key));
  out.set_value(clean_text(setting.value));
  set_meta(setting.meta, out.mutable_meta());
  return out;
}

v1::RunSetting to_proto(const model::RunSetting& setting) {
  v1::RunSetting out;
  out.set_key(clean_text(setting.key));
  out.set_value(clean_text(setting.value));
  out.set_scope(static_cast<v1::SettingScope>(setting.scope));
  out.set_target(clean_text(setting.target));
  return out;
}

Result<model::Setting> from_proto(const v1::Setting& setting) {
  model::Setting out;
  const bool valid =
      v1::SettingScope_IsValid(setting.scope()) && setting.scope() != v1::SETTING_SCOPE_UNSPECIFIED;
  ODT_ASSIGN(out.scope, enum_field<model::SettingScope>(setting.scope(), valid, "setting.scope"));
  const bool board = out.scope == model::SettingScope::kBoard;
  if (board) {
    ODT_ASSIGN(out.board, uid_field(setting.board_uid(), "setting.board_uid"));
  } else if (!setting.board_uid().empty()) {
    return bad_field("setting.board_uid", "only SETTING_SCOPE_BOARD has one");
  }
  const bool target =
      out.scope == model::SettingScope::kBoardType || out.scope == model::SettingScope::kCohort;
  if (!target && !setting.target().empty())
    return bad_field("setting.target", "a setting of the fleet or of a board has none");
  ODT_ASSIGN(out.target, text_field(setting.target(), "setting.target", 500, target));
  ODT_ASSIGN(out.key, text_field(setting.key(), "setting.key", 64, true));
  ODT_ASSIGN(out.value, text_field(setting.value(), "setting.value", 200, false));
  out.meta.etag = static_cast<std::int64_t>(setting.meta().etag());
  return out;
}

}  // namespace odt::api
