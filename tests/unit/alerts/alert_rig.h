#pragma once

#include <gtest/gtest.h>

#include <map>

#include "alerts/book.h"

namespace odt::test {

using alerts::kSecondUs;

inline BoardUid uid(int n) {
  return BoardUid::from_bytes(std::string("\x62\0\0\0\0\0\0", 7) + static_cast<char>(n)).value();
}

// A book, time, and what of it would be stored.
struct BookRig {
  explicit BookRig(const std::string& webhook = "") : book(alerts::default_rules(), webhook) {
    save();
  }
  alerts::Book book;
  std::int64_t now = 1'700'000'000 * kSecondUs, mono = 1000 * kSecondUs;
  std::map<std::string, model::Alert> stored;  // by "rule number/subject"

  void pass(std::int64_t seconds) {
    now += seconds * kSecondUs;
    mono += seconds * kSecondUs;
  }
  std::size_t save() {
    const auto what = book.unsaved(mono, 1000);
    for (const auto& alert : what.alerts)
      stored[std::to_string(static_cast<int>(alert.rule)) + "/" + alert.subject] = alert;
    book.saved(what, what.alerts, mono);
    return what.alerts.size();
  }
  void judge(alerts::Seen seen) { book.judge(seen, now, mono); }
  alerts::Seen seen(model::AlertKind rule, alerts::Verdict verdict, int board = 1,
                    bool occurrence = false) const {
    alerts::Seen s;
    s.rule = rule;
    s.board = uid(board);
    s.subject = "b" + std::to_string(board);
    s.verdict = verdict;
    s.text = verdict == alerts::Verdict::kGood ? "fine" : "bad";
    s.occurrence = occurrence;
    return s;
  }
  const model::Alert& alert(model::AlertKind rule, const std::string& subject) {
    save();
    return stored[std::to_string(static_cast<int>(rule)) + "/" + subject];
  }
  bool fires(model::AlertKind rule, const std::string& subject) {
    return alert(rule, subject).state == model::AlertState::kFiring;
  }
};

}  // namespace odt::test
