#pragma once

#include "store/body_fields.h"

// body_fields.h of alerts and settings. Inside of body_codec.cpp.
namespace odt::store {

template <typename V>
void fields(V& f, model::AlertDelivery& v) {
  f("state", v.state);
  f("attempts", v.attempts);
  f("error", v.error);
  f("time_us", v.time_us);
  f("next_time_us", v.next_time_us);
}
template <typename V>
void fields(V& f, model::Alert& v) {
  f("id", v.id);
  f("rule", v.rule);
  f("state", v.state);
  f("severity", v.severity);
  f("subject", v.subject);
  f("board", v.board);
  f("run_id", v.run_id);
  f("reason", v.reason);
  f("value", v.value);
  f("threshold", v.threshold);
  f("count", v.count);
  f("first_time_us", v.first_time_us);
  f("fire_time_us", v.fire_time_us);
  f("last_time_us", v.last_time_us);
  f("resolve_time_us", v.resolve_time_us);
  f("resolution", v.resolution);
  f("ack_time_us", v.ack_time_us);
  f("ack_by", v.ack_by);
  f("ack_note", v.ack_note);
  f("silenced_until_us", v.silenced_until_us);
  f("delivery", v.delivery);
  f("meta", v.meta);
}
template <typename V>
void fields(V& f, model::AlertRule& v) {
  f("rule", v.rule);
  f("enabled", v.enabled);
  f("threshold", v.threshold);
  f("severity", v.severity);
  f("default_threshold", v.default_threshold);
  f("default_enabled", v.default_enabled);
  f("changed", v.changed);
}
template <typename V>
void fields(V& f, model::AlertSilence& v) {
  f("id", v.id);
  f("rule", v.rule);
  f("board", v.board);
  f("until_us", v.until_us);
  f("note", v.note);
  f("created_by", v.created_by);
  f("create_time_us", v.create_time_us);
}
template <typename V>
void fields(V& f, model::AlertSettings& v) {
  f("rules", v.rules);
  f("silences", v.silences);
  f("webhook", v.webhook);
  f("meta", v.meta);
}
template <typename V>
void fields(V& f, model::Setting& v) {
  f("scope", v.scope);
  f("target", v.target);
  f("board", v.board);
  f("key", v.key);
  f("value", v.value);
  f("meta", v.meta);
}

}  // namespace odt::store
