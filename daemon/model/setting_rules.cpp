#include "model/setting_rules.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <tuple>

#include "base/label_query.h"
#include "model/hyper_values.h"

namespace odt::model {
namespace {

const char* status_word(BoardStatus status) {
  static constexpr const char* kWords[] = {"UNSPECIFIED", "ONLINE",      "SUSPECT",
                                           "OFFLINE",     "QUARANTINED", "BUSY"};
  const auto i = static_cast<std::size_t>(status);
  return i < std::size(kWords) ? kWords[i] : "";
}

// Terms of a cohort's query.
std::size_t terms_of(const Setting& setting) {
  if (setting.scope != SettingScope::kCohort) return 0;
  return 1 +
         static_cast<std::size_t>(std::count(setting.target.begin(), setting.target.end(), ','));
}

}  // namespace

std::map<std::string, std::string> query_fields(const Board& b) {
  return {{"name", b.name},
          {"place", b.place},
          {"type", b.board_type},
          {"core", b.core},
          {"status", status_word(b.status)}};
}

Status set_spec(const std::string& key, const std::string& value, RunSpec& spec) {
  if (key != kResumeDeadlineKey) return set_hyper(key, value, spec.hyper);
  if (!absl::SimpleAtoi(value, &spec.resume_deadline_s))
    return absl::InvalidArgumentError(
        absl::StrCat("'", value, "' for ", key, "; allowed: a whole number"));
  return absl::OkStatus();
}

Status check_setting(const Setting& setting) {
  if (setting.scope == SettingScope::kCohort) {
    const auto query = LabelQuery::parse(setting.target);
    if (!query.ok())
      return with_reason(absl::InvalidArgumentError(query.status().message()), "BAD_FIELD", "",
                         "setting.target");
  }
  RunSpec spec;
  const Status status = set_spec(setting.key, setting.value, spec);
  if (status.ok()) return status;
  return with_reason(absl::InvalidArgumentError(absl::StrCat("setting: ", status.message())),
                     "BAD_FIELD", "", "setting.value");
}

bool applies(const Setting& setting, const Board& board) {
  switch (setting.scope) {
    case SettingScope::kFleet:
      return true;
    case SettingScope::kBoardType:
      return setting.target == board.board_type;
    case SettingScope::kCohort: {
      const auto query = LabelQuery::parse(setting.target);
      return query.ok() && query->matches(board.labels, query_fields(board));
    }
    case SettingScope::kBoard:
      return setting.board == board.uid;
    default:
      return false;
  }
}

std::map<std::string, std::vector<Setting>> settings_of(const std::vector<Setting>& all,
                                                        const Board& board) {
  std::map<std::string, std::vector<Setting>> out;
  for (const auto& setting : all)
    if (applies(setting, board)) out[setting.key].push_back(setting);
  const auto rank = [](const Setting& s) {
    return std::make_tuple(s.scope, terms_of(s), s.meta.etag);
  };
  for (auto& [key, settings] : out)
    std::sort(settings.begin(), settings.end(),
              [&](const Setting& a, const Setting& b) { return rank(a) > rank(b); });
  return out;
}

std::string spec_text(const std::string& key, const RunSpec& spec) {
  if (key != kResumeDeadlineKey) return hyper_text(key, spec.hyper);
  return spec.resume_deadline_s == 0 ? std::string() : absl::StrCat(spec.resume_deadline_s);
}

std::vector<RunSetting> fill_from_settings(const std::vector<Setting>& all, const Board& board,
                                           RunSpec& spec) {
  std::vector<RunSetting> out;
  for (const auto& [key, settings] : settings_of(all, board)) {
    const Setting& best = settings.front();
    if (!spec_text(key, spec).empty() || !set_spec(key, best.value, spec).ok()) continue;
    const bool own = best.scope == SettingScope::kBoard;
    out.push_back({key, best.value, best.scope, own ? board.name : best.target});
  }
  return out;
}

}  // namespace odt::model
