#pragma once

#include <array>
#include <string>
#include <vector>

#include "model/common.h"

namespace odt::model {

// AlertRuleKind of types.proto: what is watched, and the unit of its threshold.
enum class AlertKind : std::uint8_t {
  kAny = 0,
  kOffline = 1,
  kStuck = 2,
  kAccuracyDrop = 3,
  kDeadLayer = 4,
  kSaturation = 5,
  kCrcRate = 6,
  kDisk = 7,
  kFirmwareSkew = 8,
};
inline constexpr std::size_t kAlertKinds = 8;
enum class AlertSeverity : std::uint8_t { kUnspecified = 0, kWarning = 1, kCritical = 2 };
enum class AlertState : std::uint8_t { kUnspecified = 0, kFiring = 1, kResolved = 2 };
enum class DeliveryState : std::uint8_t { kNone = 0, kPending = 1, kDelivered = 2, kDead = 3 };

struct AlertDelivery {
  DeliveryState state = DeliveryState::kNone;
  std::uint32_t attempts = 0;
  std::string error;
  std::int64_t time_us = 0, next_time_us = 0;
  bool operator==(const AlertDelivery&) const = default;
};

struct Alert {
  Uuid id;
  AlertKind rule = AlertKind::kAny;
  AlertState state = AlertState::kUnspecified;
  AlertSeverity severity = AlertSeverity::kUnspecified;
  std::string subject;
  BoardUid board;  // empty: of no board
  Uuid run_id;
  Reason reason;
  std::int64_t value = 0, threshold = 0;
  std::uint32_t count = 0;
  std::int64_t first_time_us = 0, fire_time_us = 0, last_time_us = 0, resolve_time_us = 0;
  std::string resolution;
  std::int64_t ack_time_us = 0;
  std::string ack_by, ack_note;
  std::int64_t silenced_until_us = 0;
  AlertDelivery delivery;
  Meta meta;
};

// As it is in force.
struct AlertRule {
  AlertKind rule = AlertKind::kAny;
  bool enabled = true;
  std::int64_t threshold = 0;
  AlertSeverity severity = AlertSeverity::kWarning;
  std::int64_t default_threshold = 0;
  bool default_enabled = true;
  bool changed = false;  // by a person; else it follows the configuration
};

struct AlertSilence {
  Uuid id;
  AlertKind rule = AlertKind::kAny;
  BoardUid board;  // empty: any
  std::int64_t until_us = 0;
  std::string note, created_by;
  std::int64_t create_time_us = 0;
};

struct AlertSettings {
  std::vector<AlertRule> rules;  // all of them, in order of their numbers
  std::vector<AlertSilence> silences;
  std::string webhook;
  Meta meta;
};

// What is the same of a rule everywhere. Source of the defaults: daemon/alerts/README.md.
struct AlertRuleInfo {
  AlertKind rule;
  const char* name;  // "offline", "accuracy_drop"
  const char* code;  // of Alert::reason
  const char* unit;  // empty: no threshold
  std::int64_t min, max, threshold;
  AlertSeverity severity;
  const char* text;
};
extern const std::array<AlertRuleInfo, kAlertKinds> kAlertRules;
// nullptr: no such rule.
const AlertRuleInfo* alert_rule_info(AlertKind rule);

}  // namespace odt::model
