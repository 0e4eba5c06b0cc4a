#include <algorithm>

#include "api/parse_parts.h"
#include "api/service_helpers.h"
#include "model/hyper_values.h"
#include "model/setting_rules.h"

namespace odt::api {
namespace {

constexpr std::size_t kMostSettings = 10'000;

// Key, value and query belong together, and the value is in the range that a run takes.
Status check(const model::Setting& setting) {
  ODT_TRY(model::check_setting(setting));
  if (setting.key == model::kResumeDeadlineKey) {
    model::RunSpec spec;
    ODT_TRY(model::set_spec(setting.key, setting.value, spec));
    return in_range(spec.resume_deadline_s, 1u, 31u * 86'400u, "setting.value");
  }
  model::HyperParams hyper;
  ODT_TRY(model::set_hyper(setting.key, setting.value, hyper));
  const auto checked = from_proto(to_proto(hyper), "setting.value");
  return checked.status();
}

Result<std::vector<model::Setting>> all_settings(store::ControlStore& store) {
  std::vector<model::Setting> out;
  store::ListQuery query{1000, ""};
  do {
    ODT_ASSIGN(auto page, store.scoped_settings(query));
    for (auto& setting : page.items) out.push_back(std::move(setting));
    query.page_token = page.next_token;
  } while (!query.page_token.empty());
  return out;
}

Result<std::vector<model::Board>> all_boards(store::ControlStore& store) {
  std::vector<model::Board> out;
  store::ListQuery query{1000, ""};
  do {
    ODT_ASSIGN(auto page, store.boards(query));
    for (auto& board : page.items) out.push_back(std::move(board));
    query.page_token = page.next_token;
  } while (!query.page_token.empty());
  return out;
}

Result<v1::SetSettingResponse> set(store::ControlStore& store, const Call& call,
                                   const model::Setting& setting) {
  if (setting.scope == model::SettingScope::kBoard) {
    const auto board = store.board(setting.board);
    if (!board.ok()) return not_found(board.status(), "board", setting.board.hex());
  }
  ODT_ASSIGN(const auto all, all_settings(store));
  const bool known = store.scoped_setting(setting).ok();
  if (!known && all.size() >= kMostSettings)
    return with_reason(absl::ResourceExhaustedError("there are " + std::to_string(kMostSettings) +
                                                    " settings already"),
                       "TOO_MANY_SETTINGS", "unset some first");
  ODT_ASSIGN(const auto events, store.commit(batch_of(call, store::PutScopedSetting{setting})));
  v1::SetSettingResponse response;
  for (const auto& event : events)
    if (const auto* stored = std::get_if<model::Setting>(&event.body))
      *response.mutable_setting() = to_proto(*stored);
  ODT_ASSIGN(const auto boards, all_boards(store));
  response.set_boards(static_cast<std::uint32_t>(
      std::count_if(boards.begin(), boards.end(),
                    [&](const auto& board) { return model::applies(setting, board); })));
  return response;
}

Result<v1::UnsetSettingResponse> unset(store::ControlStore& store, const Call& call,
                                       const model::Setting& which) {
  const auto stored = store.scoped_setting(which);
  if (absl::IsNotFound(stored.status()))
    return with_reason(absl::NotFoundError("no setting " + which.key + " in that scope"),
                       "SETTING_UNKNOWN", "list the settings to see what there is");
  ODT_TRY(stored.status());
  if (which.meta.etag != 0 && which.meta.etag != stored->meta.etag)
    return absl::AbortedError("setting " + which.key +
                              " was changed meanwhile; read it again and repeat");
  ODT_TRY(store.commit(batch_of(call, store::Delete{"setting", store::scoped_setting_key(which)}))
              .status());
  return v1::UnsetSettingResponse();
}

// The newest run of the board that was told its values.
Result<std::optional<model::Run>> last_run(store::ControlStore& store, const BoardUid& board) {
  store::ListQuery query{200, ""};
  do {
    ODT_ASSIGN(auto page, store.runs(query));
    for (auto& run : page.items)
      if (run.spec.board_uid == board && run.effective.batch) return std::optional(std::move(run));
    query.page_token = page.next_token;
  } while (!query.page_token.empty());
  return std::optional<model::Run>();
}

Result<v1::GetEffectiveSettingsResponse> effective(store::ControlStore& store,
                                                   const BoardUid& uid) {
  const auto board = store.board(uid);
  if (!board.ok()) return not_found(board.status(), "board", uid.hex());
  ODT_ASSIGN(const auto all, all_settings(store));
  ODT_ASSIGN(const auto run, last_run(store, uid));
  const auto found = model::settings_of(all, *board);
  model::RunSpec told;
  if (run) {
    told.hyper = run->effective;
    told.resume_deadline_s = run->spec.resume_deadline_s;
  }
  std::vector<std::string> keys{model::kResumeDeadlineKey};
  for (const auto& key : model::hyper_keys()) keys.push_back(key.name);
  std::sort(keys.begin(), keys.end());
  v1::GetEffectiveSettingsResponse response;
  if (run) response.set_run_id(run->id.str());
  for (const auto& key : keys) {
    auto* item = response.add_settings();
    item->set_key(key);
    item->set_reported(model::spec_text(key, told));
    if (run)
      item->set_asked(!model::spec_text(key, run->spec).empty() &&
                      std::none_of(run->settings.begin(), run->settings.end(),
                                   [&](const auto& taken) { return taken.key == key; }));
    const auto it = found.find(key);
    if (it == found.end()) continue;
    item->set_desired(it->second.front().value);
    *item->mutable_source() = to_proto(it->second.front());
    for (std::size_t i = 1; i < it->second.size(); ++i)
      *item->add_overridden() = to_proto(it->second[i]);
  }
  return response;
}

void add_setting_changes(ApiService& service, Deps& deps) {
  service.unary<v1::SetSettingRequest, v1::SetSettingResponse>(
      "SetSetting", [&deps](const Call& call, const v1::SetSettingRequest& request,
                            Reply<v1::SetSettingResponse> reply) {
        ODT_FIELD(const auto setting, from_proto(request.setting()));
        if (const Status status = check(setting); !status.ok()) return reply(status);
        answer_from_store(deps.control, reply, [call, setting](store::ControlStore& store) {
          return set(store, call, setting);
        });
      });
  service.unary<v1::UnsetSettingRequest, v1::UnsetSettingResponse>(
      "UnsetSetting", [&deps](const Call& call, const v1::UnsetSettingRequest& request,
                              Reply<v1::UnsetSettingResponse> reply) {
        ODT_FIELD(const auto setting, from_proto(request.setting()));
        answer_from_store(deps.control, reply, [call, setting](store::ControlStore& store) {
          return unset(store, call, setting);
        });
      });
}

void add_setting_reads(ApiService& service, Deps& deps) {
  service.unary<v1::ListSettingsRequest, v1::ListSettingsResponse>(
      "ListSettings", [&deps](const Call&, const v1::ListSettingsRequest& request,
                              Reply<v1::ListSettingsResponse> reply) {
        ODT_FIELD(auto params, params_of<v1::Setting>(request));
        answer_from_store(deps.control, reply,
                          [params](store::ControlStore& store) -> Result<v1::ListSettingsResponse> {
                            ODT_ASSIGN(
                                auto page,
                                (list_from<v1::Setting, model::Setting>(
                                    params, [&](const auto& q) { return store.scoped_settings(q); },
                                    [](const auto& item) { return to_proto(item); })));
                            v1::ListSettingsResponse response;
                            for (auto& item : page.items)
                              *response.add_settings() = std::move(item);
                            response.set_next_page_token(page.next_token);
                            return response;
                          });
      });
  service.unary<v1::GetEffectiveSettingsRequest, v1::GetEffectiveSettingsResponse>(
      "GetEffectiveSettings", [&deps](const Call&, const v1::GetEffectiveSettingsRequest& request,
                                      Reply<v1::GetEffectiveSettingsResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.board_uid(), "board_uid"));
        answer_from_store(deps.control, reply,
                          [uid](store::ControlStore& store) { return effective(store, uid); });
      });
}

}  // namespace

ServicePtr make_settings_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate,
      *v1::SetSettingRequest::descriptor()->file()->FindServiceByName("SettingsService"));
  add_setting_changes(*service, deps);
  add_setting_reads(*service, deps);
  return service;
}

}  // namespace odt::api
