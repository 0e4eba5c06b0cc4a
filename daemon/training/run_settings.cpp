#include "training/run_settings.h"

#include <absl/strings/str_cat.h>

#include "model/setting_rules.h"

namespace odt::training {
namespace {

const char* scope_word(model::SettingScope scope) {
  switch (scope) {
    case model::SettingScope::kFleet:
      return "the fleet";
    case model::SettingScope::kBoardType:
      return "board type ";
    case model::SettingScope::kCohort:
      return "cohort ";
    default:
      return "board ";
  }
}

}  // namespace

asio::awaitable<Result<std::vector<model::RunSetting>>> take_settings(
    Env& env, std::shared_ptr<model::RunSpec> spec, Uuid retry_of) {
  using Settings = std::vector<model::Setting>;
  struct Read {
    Settings settings;
    model::Board board;
  };
  std::vector<model::RunSetting> none;
  if (!spec->campaign_id.is_zero()) co_return none;
  if (!retry_of.is_zero()) {
    const auto old = [retry_of](store::ControlStore& s) { return s.run(retry_of); };
    auto run = co_await env.control.call(old);
    if (!run.ok()) co_return run.status();
    co_return run->settings;
  }
  const auto fetch = [uid = spec->board_uid](store::ControlStore& s) -> Result<Read> {
    Read out;
    store::ListQuery query{1000, ""};
    do {
      ODT_ASSIGN(auto page, s.scoped_settings(query));
      for (auto& setting : page.items) out.settings.push_back(std::move(setting));
      query.page_token = page.next_token;
    } while (!query.page_token.empty());
    if (out.settings.empty()) return out;
    ODT_ASSIGN(out.board, s.board(uid));
    return out;
  };
  auto read = co_await env.control.call(fetch);
  // An unknown board is for the checks of the run to tell.
  if (absl::IsNotFound(read.status())) co_return none;
  if (!read.ok()) co_return read.status();
  co_return model::fill_from_settings(read->settings, read->board, *spec);
}

Status name_settings(const Status& status, const std::vector<model::RunSetting>& taken) {
  if (status.ok() || taken.empty()) return status;
  std::string text(status.message());
  text += " (taken from the settings:";
  for (const auto& s : taken)
    absl::StrAppend(&text, &s == &taken.front() ? " " : ", ", s.key, "=", s.value, " of ",
                    scope_word(s.scope), s.target);
  Status out(status.code(), text + ")");
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { out.SetPayload(url, payload); });
  return out;
}

}  // namespace odt::training
