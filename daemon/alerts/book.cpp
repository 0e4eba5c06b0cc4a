#include "alerts/book.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "alerts/alert_control.h"

namespace odt::alerts {
namespace {

using model::AlertKind;
using model::AlertState;
using model::DeliveryState;

constexpr std::int64_t kWriteEvery = 10 * kSecondUs;
constexpr std::int64_t kLongestSilence = 366LL * 86'400 * kSecondUs;
// About half an hour: 1, 2, 4, ... 256, 300, 300 s.
constexpr std::uint32_t kAttempts = 12;
constexpr std::int64_t kLongestWait = 300 * kSecondUs;

// How long, and how often in a row, it must be good before an alert is over.
struct Clear {
  std::uint32_t times;
  std::int64_t us;
};
Clear clear_of(AlertKind rule) {
  switch (rule) {
    case AlertKind::kOffline:
    case AlertKind::kDisk:
      return {1, 10 * kSecondUs};
    case AlertKind::kAccuracyDrop:
    case AlertKind::kDeadLayer:
    case AlertKind::kSaturation:
      return {2, 0};
    case AlertKind::kCrcRate:
      return {1, 60 * kSecondUs};
    default:
      return {1, 0};
  }
}

std::int64_t backoff(std::uint32_t attempts) {
  return std::min(kSecondUs << std::min(attempts - 1, 20u), kLongestWait);
}

bool matches(const model::AlertSilence& silence, const model::Alert& alert) {
  return (silence.rule == AlertKind::kAny || silence.rule == alert.rule) &&
         (silence.board.empty() || silence.board == alert.board);
}

bool differ(const std::vector<model::AlertRule>& a, const std::vector<model::AlertRule>& b) {
  return !std::equal(a.begin(), a.end(), b.begin(), b.end(),
                     [](const model::AlertRule& x, const model::AlertRule& y) {
                       return x.rule == y.rule && x.enabled == y.enabled &&
                              x.threshold == y.threshold && x.severity == y.severity &&
                              x.default_enabled == y.default_enabled &&
                              x.default_threshold == y.default_threshold && x.changed == y.changed;
                     });
}

Status bad(const std::string& text, const std::string& field) {
  return with_reason(absl::InvalidArgumentError(text), "BAD_FIELD", "", field);
}

}  // namespace

std::vector<model::AlertRule> default_rules() {
  std::vector<model::AlertRule> out;
  for (const auto& info : model::kAlertRules) {
    model::AlertRule& rule = out.emplace_back();
    rule.rule = info.rule;
    rule.severity = info.severity;
    rule.threshold = rule.default_threshold = info.threshold;
  }
  return out;
}

Book::Book(std::vector<model::AlertRule> rules, std::string webhook) {
  settings_.rules = std::move(rules);
  settings_.webhook = std::move(webhook);
}

void Book::load(std::vector<model::Alert> alerts, const model::AlertSettings& stored) {
  for (const auto& old : stored.rules) {
    const auto* info = model::alert_rule_info(old.rule);
    if (info == nullptr || !old.changed) continue;
    auto& rule = settings_.rules[static_cast<std::size_t>(old.rule) - 1];
    rule.enabled = old.enabled;
    rule.threshold = std::clamp(old.threshold, info->min, info->max);
    rule.changed = true;
  }
  settings_.silences = stored.silences;
  // What nobody ever changed is not stored.
  if (!stored.rules.empty() &&
      (differ(stored.rules, settings_.rules) || stored.webhook != settings_.webhook))
    ++settings_version_;
  for (auto& alert : alerts) {
    Entry& entry = entries_[{alert.rule, alert.board}];
    // Of two, by an older odtd perhaps, the newer stands.
    if (!entry.alert.id.is_zero() && entry.alert.first_time_us >= alert.first_time_us) continue;
    entry.alert = std::move(alert);
    // Nobody to tell any more.
    if (settings_.webhook.empty() && entry.alert.delivery.state == DeliveryState::kPending) {
      entry.alert.delivery = {};
      changed(entry);
    }
  }
}

const model::AlertRule& Book::rule(AlertKind kind) const {
  return settings_.rules[static_cast<std::size_t>(kind) - 1];
}

void Book::changed(Entry& entry, bool urgent) {
  ++entry.version;
  if (urgent) entry.urgent = entry.version;
}

std::int64_t Book::silenced_until(const model::Alert& alert, std::int64_t now_us) const {
  std::int64_t until = 0;
  for (const auto& silence : settings_.silences)
    if (silence.until_us > now_us && matches(silence, alert))
      until = std::max(until, silence.until_us);
  return until;
}

void Book::fire(Entry& entry, std::int64_t now_us) {
  model::Alert& alert = entry.alert;
  if (alert.id.is_zero()) {
    alert.id = new_uuid();
    alert.first_time_us = now_us;
  }
  alert.state = AlertState::kFiring;
  alert.severity = rule(alert.rule).severity;
  alert.fire_time_us = now_us;
  alert.resolve_time_us = 0;
  alert.resolution.clear();
  alert.ack_time_us = 0;
  alert.ack_by.clear();
  alert.ack_note.clear();
  alert.silenced_until_us = silenced_until(alert, now_us);
  alert.delivery = {};
  if (!settings_.webhook.empty() && alert.silenced_until_us == 0) {
    alert.delivery.state = DeliveryState::kPending;
    alert.delivery.next_time_us = now_us;
  }
}

void Book::judge(const Seen& seen, std::int64_t now_us, std::int64_t mono_us) {
  const model::AlertRule& rule = this->rule(seen.rule);
  if (!rule.enabled || muted_.contains(seen.board)) return;
  const Key key{seen.rule, seen.board};
  const auto it = entries_.find(key);
  if (seen.verdict == Verdict::kBad) {
    Entry& entry = it != entries_.end() ? it->second : entries_[key];
    entry.good_times = 0;
    entry.good_since = -1;
    const bool fires = entry.alert.state != AlertState::kFiring;
    if (!fires && !seen.occurrence) return;
    model::Alert& alert = entry.alert;
    alert.rule = seen.rule;
    alert.board = seen.board;
    alert.subject = seen.subject;
    alert.run_id = seen.run_id;
    alert.reason = {model::alert_rule_info(seen.rule)->code, seen.text, seen.remedy};
    alert.value = seen.value;
    alert.threshold = rule.threshold;
    alert.last_time_us = now_us;
    ++alert.count;
    if (fires) fire(entry, now_us);
    return changed(entry, fires);
  }
  if (it == entries_.end() || it->second.alert.state != AlertState::kFiring) return;
  Entry& entry = it->second;
  if (seen.verdict == Verdict::kBetween) {
    entry.good_times = 0;
    entry.good_since = -1;
    return;
  }
  const Clear clear = clear_of(seen.rule);
  if (entry.good_since < 0) entry.good_since = mono_us;
  if (++entry.good_times < clear.times || mono_us - entry.good_since < clear.us) return;
  close(entry, seen.text, now_us);
}

void Book::close(Entry& entry, const std::string& text, std::int64_t now_us) {
  model::Alert& alert = entry.alert;
  alert.state = AlertState::kResolved;
  alert.resolve_time_us = now_us;
  alert.resolution = text;
  entry.good_times = 0;
  entry.good_since = -1;
  // Who heard that it fires hears that it is over.
  const bool told = alert.delivery.state != DeliveryState::kNone;
  alert.delivery = {};
  alert.silenced_until_us = silenced_until(alert, now_us);
  if (told && alert.silenced_until_us == 0 && !settings_.webhook.empty()) {
    alert.delivery.state = DeliveryState::kPending;
    alert.delivery.next_time_us = now_us;
  }
  changed(entry);
}

void Book::resolve(AlertKind kind, const BoardUid& board, const std::string& text,
                   std::int64_t now_us) {
  for (auto& [key, entry] : entries_)
    if ((kind == AlertKind::kAny || key.first == kind) && key.second == board &&
        entry.alert.state == AlertState::kFiring)
      close(entry, text, now_us);
}

void Book::apply_silences(std::int64_t now_us) {
  for (auto& [key, entry] : entries_) {
    model::Alert& alert = entry.alert;
    const bool firing = alert.state == AlertState::kFiring;
    const std::int64_t until = silenced_until(alert, now_us);
    const bool was_silent = alert.silenced_until_us > now_us;
    if (firing && until != alert.silenced_until_us && (until != 0 || was_silent)) {
      alert.silenced_until_us = until;
      changed(entry);
    }
    if (until != 0 && alert.delivery.state == DeliveryState::kPending) {
      alert.delivery = {};
      changed(entry);
    }
    const bool unheard = firing && until == 0 && alert.ack_time_us == 0 &&
                         alert.delivery.state == DeliveryState::kNone;
    if (unheard && !settings_.webhook.empty()) {
      alert.delivery.state = DeliveryState::kPending;
      alert.delivery.next_time_us = now_us;
      changed(entry);
    }
  }
}

void Book::expire(std::int64_t now_us) {
  const auto over = std::erase_if(settings_.silences,
                                  [&](const auto& silence) { return silence.until_us <= now_us; });
  if (over != 0) ++settings_version_;
  apply_silences(now_us);
}

std::optional<model::Alert> Book::alert(const Uuid& id) {
  const Entry* entry = find(id);
  return entry == nullptr ? std::nullopt : std::optional(entry->alert);
}

Book::Entry* Book::find(const Uuid& id) {
  for (auto& [key, entry] : entries_)
    if (entry.alert.id == id) return &entry;
  return nullptr;
}

Result<model::Alert> Book::acknowledge(const Uuid& id, const std::string& by,
                                       const std::string& note, std::int64_t now_us) {
  Entry* entry = find(id);
  if (entry == nullptr)
    return with_reason(absl::NotFoundError("no alert " + id.hex()), "ALERT_UNKNOWN",
                       "List the alerts: odtctl alert list.");
  if (entry->alert.state != AlertState::kFiring)
    return with_reason(
        absl::FailedPreconditionError("alert " + id.hex().substr(0, 16) + " does not fire"),
        "ALERT_RESOLVED", "It is over by itself; there is nothing to acknowledge.");
  entry->alert.ack_time_us = now_us;
  entry->alert.ack_by = by;
  entry->alert.ack_note = note;
  changed(*entry);
  return entry->alert;
}

void Book::unacknowledge(const Uuid& id) {
  Entry* entry = find(id);
  if (entry == nullptr) return;
  entry->alert.ack_time_us = 0;
  entry->alert.ack_by.clear();
  entry->alert.ack_note.clear();
  changed(*entry);
}

void Book::restore_rule(const model::AlertRule& rule) {
  settings_.rules[static_cast<std::size_t>(rule.rule) - 1] = rule;
  ++settings_version_;
}

Result<std::uint32_t> Book::silence(const model::AlertSilence& silence, std::int64_t now_us) {
  if (silence.rule == AlertKind::kAny && silence.board.empty())
    return bad("a silence names a rule or a board", "rule");
  if (silence.rule != AlertKind::kAny && model::alert_rule_info(silence.rule) == nullptr)
    return bad("no such rule", "rule");
  if (silence.until_us <= now_us) return bad("the time is past", "until_time_us");
  if (silence.until_us - now_us > kLongestSilence)
    return bad("the time is over a year off", "until_time_us");
  if (settings_.silences.size() >= kMaxSilences)
    return with_reason(
        absl::ResourceExhaustedError(absl::StrCat("there are ", kMaxSilences, " silences already")),
        "TOO_MANY_SILENCES", "Take some away: odtctl alert unsilence.");
  settings_.silences.push_back(silence);
  ++settings_version_;
  apply_silences(now_us);
  std::uint32_t firing = 0;
  for (const auto& [key, entry] : entries_)
    firing += entry.alert.state == AlertState::kFiring && matches(silence, entry.alert) ? 1 : 0;
  return firing;
}

Status Book::unsilence(const Uuid& id, std::int64_t now_us) {
  if (std::erase_if(settings_.silences, [&](const auto& s) { return s.id == id; }) == 0)
    return with_reason(absl::NotFoundError("no silence " + id.hex()), "SILENCE_UNKNOWN",
                       "List those in force: odtctl alert rules.");
  ++settings_version_;
  apply_silences(now_us);
  return absl::OkStatus();
}

Result<model::AlertRule> Book::update_rule(const model::AlertRule& to, bool reset,
                                           std::int64_t now_us) {
  const auto* info = model::alert_rule_info(to.rule);
  if (info == nullptr) return bad("no such rule", "rule");
  auto& rule = settings_.rules[static_cast<std::size_t>(to.rule) - 1];
  if (to.threshold != rule.threshold && *info->unit == '\0')
    return bad(absl::StrCat("rule ", info->name, " has no threshold"), "threshold");
  if (to.threshold < info->min || to.threshold > info->max)
    return bad(absl::StrCat("threshold of ", info->name, " is ", to.threshold, " ", info->unit,
                            "; allowed ", info->min, " to ", info->max),
               "threshold");
  rule.enabled = to.enabled;
  rule.threshold = to.threshold;
  rule.changed =
      !reset || rule.enabled != rule.default_enabled || rule.threshold != rule.default_threshold;
  ++settings_version_;
  if (!rule.enabled)
    for (auto& [key, entry] : entries_)
      if (key.first == to.rule && entry.alert.state == AlertState::kFiring)
        close(entry, "the rule was switched off", now_us);
  return rule;
}

Book::Unsaved Book::unsaved(std::int64_t mono_us, std::size_t most) const {
  Unsaved out;
  for (const auto& [key, entry] : entries_) {
    if (entry.version == entry.saved || out.alerts.size() == most) continue;
    if (entry.urgent <= entry.saved && mono_us - entry.written < kWriteEvery) continue;
    out.alerts.push_back(entry.alert);
    out.versions.push_back({entry.alert.id, entry.version});
  }
  if (settings_version_ != settings_saved_) {
    out.settings = settings_;
    out.settings_version = settings_version_;
  }
  return out;
}

void Book::saved(const Unsaved& what, const std::vector<model::Alert>& stored,
                 std::int64_t mono_us) {
  for (const Version& v : what.versions) {
    Entry* entry = find(v.id);
    if (entry == nullptr) continue;
    entry->saved = std::max(entry->saved, v.version);
    entry->written = mono_us;
  }
  for (const auto& alert : stored)
    if (Entry* entry = find(alert.id); entry != nullptr) entry->alert.meta = alert.meta;
  if (what.settings) settings_saved_ = std::max(settings_saved_, what.settings_version);
}

std::optional<model::Alert> Book::due(std::int64_t now_us) const {
  const model::Alert* next = nullptr;
  for (const auto& [key, entry] : entries_) {
    const auto& d = entry.alert.delivery;
    if (d.state != DeliveryState::kPending || d.next_time_us > now_us || entry.urgent > entry.saved)
      continue;
    if (next == nullptr || d.next_time_us < next->delivery.next_time_us) next = &entry.alert;
  }
  return next == nullptr ? std::nullopt : std::optional(*next);
}

void Book::failed(Entry& entry, bool never, const std::string& error, std::int64_t now_us) {
  auto& d = entry.alert.delivery;
  ++d.attempts;
  d.error = error;
  d.time_us = now_us;
  const bool dead = never || d.attempts >= kAttempts;
  d.state = dead ? DeliveryState::kDead : DeliveryState::kPending;
  d.next_time_us = dead ? 0 : now_us + backoff(d.attempts);
  changed(entry);
}

void Book::delivered(const model::Alert& sent, Sent how, const std::string& error,
                     std::int64_t now_us) {
  Entry* entry = find(sent.id);
  if (entry == nullptr) return;
  model::Alert& alert = entry->alert;
  const bool same = alert.state == sent.state && alert.fire_time_us == sent.fire_time_us &&
                    alert.delivery.state == DeliveryState::kPending;
  if (!same) return;
  if (how != Sent::kDelivered) return failed(*entry, how == Sent::kNever, error, now_us);
  ++alert.delivery.attempts;
  alert.delivery.state = DeliveryState::kDelivered;
  alert.delivery.error.clear();
  alert.delivery.time_us = now_us;
  alert.delivery.next_time_us = 0;
  changed(*entry);
}

void Book::unreachable(const std::string& error, std::int64_t now_us) {
  for (auto& [key, entry] : entries_) {
    const auto& d = entry.alert.delivery;
    if (d.state == DeliveryState::kPending && d.next_time_us <= now_us)
      failed(entry, false, error, now_us);
  }
}

std::uint32_t Book::retry_dead(std::int64_t now_us) {
  std::uint32_t count = 0;
  for (auto& [key, entry] : entries_) {
    auto& d = entry.alert.delivery;
    if (d.state != DeliveryState::kDead) continue;
    d = {};
    d.state = DeliveryState::kPending;
    d.next_time_us = now_us;
    changed(entry);
    ++count;
  }
  return count;
}

std::pair<std::uint32_t, std::uint32_t> Book::pending_and_dead() const {
  std::pair<std::uint32_t, std::uint32_t> out{0, 0};
  for (const auto& [key, entry] : entries_) {
    out.first += entry.alert.delivery.state == DeliveryState::kPending ? 1 : 0;
    out.second += entry.alert.delivery.state == DeliveryState::kDead ? 1 : 0;
  }
  return out;
}

}  // namespace odt::alerts
