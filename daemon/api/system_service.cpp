#include "api/service_helpers.h"

namespace odt::api {

ServicePtr make_system_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate, *v1::GetInfoRequest::descriptor()->file()->FindServiceByName("SystemService"));
  service->unary<v1::GetInfoRequest, v1::GetInfoResponse>(
      "GetInfo", [&deps](const Call&, const v1::GetInfoRequest&, Reply<v1::GetInfoResponse> reply) {
        answer_from_store(
            deps.control, reply,
            [&deps](store::ControlStore& store) -> Result<v1::GetInfoResponse> {
              const SystemInfo info = deps.info();
              const store::Identity identity = store.identity();
              v1::GetInfoResponse response;
              response.set_version(info.version);
              response.set_gateway_id(identity.gateway_id.str());
              response.set_store_epoch(identity.store_epoch);
              response.set_start_time_us(info.start_time_us);
              response.set_rules_version(info.rules_version);
              response.set_control_db_bytes(info.control_db_bytes);
              response.set_telemetry_db_bytes(info.telemetry_db_bytes);
              response.set_disk_free_bytes(info.disk_free_bytes);
              response.set_data_dir(info.data_dir);
              response.set_disk_state(static_cast<v1::DiskState>(info.disk.state));
              response.set_disk_text(info.disk.text);
              response.set_http_url(info.http_url);
              response.set_listen_boards(info.listen_boards);
              response.set_next_event_seq(store.next_seq());
              const auto view = deps.fleet.view();
              response.set_boards_known(static_cast<std::uint32_t>(view->boards.size()));
              std::uint32_t online = 0;
              for (const auto& board : view->boards)
                if (board.status == model::BoardStatus::kOnline ||
                    board.status == model::BoardStatus::kBusy)
                  ++online;
              response.set_boards_online(online);
              return response;
            });
      });
  return service;
}

std::vector<ServicePtr> make_services(Deps& deps) {
  std::vector<ServicePtr> services;
  services.push_back(make_fleet_service(deps));
  services.push_back(make_auth_service(deps));
  services.push_back(make_capture_service(deps));
  services.push_back(make_upload_service(deps));
  services.push_back(make_model_service(deps));
  services.push_back(make_dataset_service(deps));
  services.push_back(make_run_service(deps));
  services.push_back(make_campaign_service(deps));
  services.push_back(make_alert_service(deps));
  services.push_back(make_settings_service(deps));
  services.push_back(make_lab_service(deps));
  services.push_back(make_weights_service(deps));
  services.push_back(make_job_service(deps));
  services.push_back(make_console_service(deps));
  services.push_back(make_evaluation_service(deps));
  services.push_back(make_event_service(deps));
  services.push_back(make_watch_service(deps));
  services.push_back(make_storage_service(deps));
  services.push_back(make_system_service(deps));
  return services;
}

}  // namespace odt::api
