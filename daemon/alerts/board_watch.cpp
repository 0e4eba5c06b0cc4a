#include "alerts/board_watch.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace odt::alerts {
namespace {

using model::AlertKind;
using model::BoardStatus;

constexpr std::int64_t kSampleEvery = 10 * kSecondUs, kWindow = 60 * kSecondUs;
constexpr std::uint64_t kLeastErrors = 5;

bool is_there(const model::Board& board) {
  return board.status == BoardStatus::kOnline || board.status == BoardStatus::kBusy;
}

Seen seen_of(AlertKind rule, const model::Board& board) {
  Seen out;
  out.rule = rule;
  out.board = board.uid;
  out.subject = board.name.empty() ? board.uid.hex() : board.name;
  out.run_id = board.run_id;
  return out;
}

// "0.10.1" is over "0.9"; what is no number compares as text.
bool newer(const std::string& a, const std::string& b) {
  std::size_t i = 0, j = 0;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      std::uint64_t x = 0, y = 0;
      for (; i < a.size() && digit(a[i]); ++i) x = x * 10 + static_cast<unsigned>(a[i] - '0');
      for (; j < b.size() && digit(b[j]); ++j) y = y * 10 + static_cast<unsigned>(b[j] - '0');
      if (x != y) return x > y;
    } else {
      if (a[i] != b[j]) return a[i] > b[j];
      ++i, ++j;
    }
  }
  return a.size() - i > b.size() - j;
}

}  // namespace

std::string BoardWatch::name(const BoardUid& board) const {
  const auto it = boards_.find(board);
  return it == boards_.end() || it->second.name.empty() ? board.hex() : it->second.name;
}

void BoardWatch::judge_presence(const model::Board& board, Watched& w, std::int64_t now_us,
                                std::int64_t mono_us) {
  Seen s = seen_of(AlertKind::kOffline, board);
  if (board.status == BoardStatus::kOffline) {
    if (w.away_since < 0) w.away_since = mono_us;
    s.value = (mono_us - w.away_since) / kSecondUs;
    s.verdict =
        s.value >= book_.rule(AlertKind::kOffline).threshold ? Verdict::kBad : Verdict::kBetween;
    s.text = absl::StrCat("board ", s.subject, " has not answered for ", s.value, " s");
    s.remedy =
        "See that it has power and its cable; odtctl port list and odtctl doctor say what its port "
        "does.";
  } else if (is_there(board)) {
    w.away_since = -1;
    s.text = "the board is back";
  } else {
    s.verdict = Verdict::kBetween;
  }
  book_.judge(s, now_us, mono_us);
}

void BoardWatch::judge_link(const model::Board& board, Watched& w, std::int64_t now_us,
                            std::int64_t mono_us) {
  const Sample is{mono_us, board.link.rx_frames, board.link.crc_errors};
  // Counters begin anew with a link.
  if (!w.link.empty() && (is.frames < w.link.back().frames || is.errors < w.link.back().errors))
    w.link.clear();
  if (!w.link.empty() && mono_us - w.link.back().mono_us < kSampleEvery) return;
  w.link.push_back(is);
  while (w.link.size() > 2 && mono_us - w.link[1].mono_us >= kWindow) w.link.pop_front();
  if (w.link.size() < 2) return;
  const std::uint64_t errors = is.errors - w.link.front().errors;
  const std::uint64_t frames = is.frames - w.link.front().frames + errors;
  Seen s = seen_of(AlertKind::kCrcRate, board);
  s.value = frames == 0 ? 0 : static_cast<std::int64_t>(errors * 1'000'000 / frames);
  const auto threshold = book_.rule(AlertKind::kCrcRate).threshold;
  s.verdict = s.value >= threshold && errors >= kLeastErrors ? Verdict::kBad
              : s.value * 2 >= threshold && errors != 0      ? Verdict::kBetween
                                                             : Verdict::kGood;
  s.text = s.verdict == Verdict::kGood
               ? "the link has few errors again"
               : absl::StrCat(errors, " of ", frames, " frames from board ", s.subject,
                              " came damaged in the last ",
                              (mono_us - w.link.front().mono_us) / kSecondUs, " s");
  s.remedy =
      "Shorten or change the cable, lower the port's speed, or use a hub with its own power.";
  book_.judge(s, now_us, mono_us);
}

void BoardWatch::judge_firmware(const std::vector<model::Board>& boards, std::int64_t now_us,
                                std::int64_t mono_us) {
  std::map<std::string, std::map<std::string, std::size_t>> counts;
  for (const auto& board : boards)
    if (is_there(board)) ++counts[board.board_type][board.fw_version];
  std::map<std::string, std::string> usual;
  for (const auto& [type, versions] : counts) {
    auto most = versions.begin();
    for (auto it = versions.begin(); it != versions.end(); ++it)
      if (it->second > most->second ||
          (it->second == most->second && newer(it->first, most->first)))
        most = it;
    usual[type] = most->first;
  }
  for (const auto& board : boards) {
    if (!is_there(board)) continue;
    Seen s = seen_of(AlertKind::kFirmwareSkew, board);
    const std::string& most = usual[board.board_type];
    const bool rules = board.rules_version != 0 && board.rules_version != rules_version_;
    if (rules)
      s.text = absl::StrCat("board ", s.subject, " trains by rules ", board.rules_version,
                            ", odtd by ", rules_version_);
    else if (board.fw_version != most)
      s.text = absl::StrCat("board ", s.subject, " has firmware ", board.fw_version, "; most of ",
                            board.board_type, " have ", most);
    s.verdict = s.text.empty() ? Verdict::kGood : Verdict::kBad;
    s.remedy = "Flash the same release on all boards of a type before you compare them.";
    if (s.text.empty()) s.text = "the firmware is that of the others";
    book_.judge(s, now_us, mono_us);
  }
}

void BoardWatch::look(const std::vector<model::Board>& boards, std::int64_t now_us,
                      std::int64_t mono_us) {
  for (const auto& board : boards) {
    Watched& w = boards_[board.uid];
    w.name = board.name;
    judge_presence(board, w, now_us, mono_us);
    judge_link(board, w, now_us, mono_us);
  }
  judge_firmware(boards, now_us, mono_us);
}

}  // namespace odt::alerts
