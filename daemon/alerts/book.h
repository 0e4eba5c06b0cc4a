#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/alert.h"

namespace odt::alerts {

inline constexpr std::int64_t kSecondUs = 1'000'000;

enum class Verdict : std::uint8_t { kBad, kBetween, kGood };

// What a watcher says of a rule and a subject.
struct Seen {
  model::AlertKind rule = model::AlertKind::kAny;
  BoardUid board;       // empty: of no board
  std::string subject;  // for people
  Uuid run_id;
  Verdict verdict = Verdict::kGood;
  std::int64_t value = 0;  // in the threshold's unit
  // kBad: what is wrong, and what to do. kGood: `text` is why it is over.
  std::string text, remedy;
  bool occurrence = false;  // each kBad counts (an epoch), not only the first
};

// odtd's own.
std::vector<model::AlertRule> default_rules();

// All alerts and their settings: one alert for each rule and subject, fires at once, is over when
// the condition was good for the rule's time or times in a row. Pure: time comes from the caller
// (now_us: UTC; mono_us: any steady clock).
class Book {
 public:
  Book(std::vector<model::AlertRule> rules, std::string webhook);
  // As stored, before anything else. A rule that a person changed keeps that.
  void load(std::vector<model::Alert> alerts, const model::AlertSettings& stored);

  const model::AlertRule& rule(model::AlertKind kind) const;
  const model::AlertSettings& settings() const { return settings_; }
  std::optional<model::Alert> alert(const Uuid& id);

  void judge(const Seen& seen, std::int64_t now_us, std::int64_t mono_us);
  // What is judged of these boards is not heard.
  void mute(std::set<BoardUid> boards) { muted_ = std::move(boards); }
  // Over, whatever the time: those of the rule (kAny: all) and the board.
  void resolve(model::AlertKind kind, const BoardUid& board, const std::string& text,
               std::int64_t now_us);
  // Drops silences that are over, and sends what was silenced and still fires.
  void expire(std::int64_t now_us);

  // By a person. Errors: as AlertControl.
  Result<model::Alert> acknowledge(const Uuid& id, const std::string& by, const std::string& note,
                                   std::int64_t now_us);
  // Takes it back: it could not be stored.
  void unacknowledge(const Uuid& id);
  void restore_rule(const model::AlertRule& rule);
  // How many alerts fire that it matches.
  Result<std::uint32_t> silence(const model::AlertSilence& silence, std::int64_t now_us);
  Status unsilence(const Uuid& id, std::int64_t now_us);
  Result<model::AlertRule> update_rule(const model::AlertRule& to, bool reset, std::int64_t now_us);

  // What is to be stored now, as it is; saved() when it is durable, with what the store completed.
  struct Version {
    Uuid id;
    std::uint64_t version = 0;
  };
  struct Unsaved {
    std::vector<model::Alert> alerts;
    std::vector<Version> versions;
    std::optional<model::AlertSettings> settings;
    std::uint64_t settings_version = 0;
    bool empty() const { return alerts.empty() && !settings; }
  };
  // At most `most` alerts. Counts alone wait until 10 s after the last write.
  Unsaved unsaved(std::int64_t mono_us, std::size_t most) const;
  void saved(const Unsaved& what, const std::vector<model::Alert>& stored, std::int64_t mono_us);

  // The next message for the webhook that is due and whose alert is stored.
  std::optional<model::Alert> due(std::int64_t now_us) const;
  enum class Sent : std::uint8_t { kDelivered, kTryAgain, kNever };
  // sent: as due() gave it; dropped where the alert has changed since.
  void delivered(const model::Alert& sent, Sent how, const std::string& error, std::int64_t now_us);
  // Nobody answered: all that is due has failed with it.
  void unreachable(const std::string& error, std::int64_t now_us);
  std::uint32_t retry_dead(std::int64_t now_us);
  std::pair<std::uint32_t, std::uint32_t> pending_and_dead() const;

 private:
  using Key = std::pair<model::AlertKind, BoardUid>;
  struct Entry {
    model::Alert alert;
    std::uint32_t good_times = 0;
    std::int64_t good_since = -1;
    std::uint64_t version = 0, saved = 0;
    std::uint64_t urgent = 0;  // version that must not wait
    std::int64_t written = 0;
  };
  void fire(Entry& entry, std::int64_t now_us);
  void close(Entry& entry, const std::string& text, std::int64_t now_us);
  void changed(Entry& entry, bool urgent = true);
  void failed(Entry& entry, bool never, const std::string& error, std::int64_t now_us);
  std::int64_t silenced_until(const model::Alert& alert, std::int64_t now_us) const;
  void apply_silences(std::int64_t now_us);
  Entry* find(const Uuid& id);

  std::map<Key, Entry> entries_;
  std::set<BoardUid> muted_;
  model::AlertSettings settings_;
  std::uint64_t settings_version_ = 0, settings_saved_ = 0;
};

}  // namespace odt::alerts
