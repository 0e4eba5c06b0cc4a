#pragma once

#include <grpcpp/impl/service_type.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "alerts/alert_control.h"
#include "api/gate.h"
#include "api/uploads.h"
#include "api/watch_hub.h"
#include "base/clock.h"
#include "campaign/campaign_control.h"
#include "jobs/job_control.h"
#include "store/console_book.h"
#include "store/disk_guard.h"
#include "store/store_thread.h"
#include "training/fleet_control.h"
#include "training/retention.h"

namespace odt::api {

// What SystemService and /metrics say of the daemon.
struct SystemInfo {
  std::string version, data_dir, http_url, listen_boards;
  std::int64_t start_time_us = 0;
  std::uint32_t rules_version = 0;
  std::uint64_t control_db_bytes = 0, telemetry_db_bytes = 0, disk_free_bytes = 0;
  store::DiskReport disk;
};

// What the services work on; everything outlives the server.
struct Deps {
  Gate& gate;
  store::ControlThread& control;
  store::TelemetryThread& telemetry;
  store::BlobStore& blobs;
  training::FleetControl& fleet;
  jobs::JobControl& jobs;
  campaign::CampaignControl& campaigns;
  alerts::AlertControl& alerts;
  Uploads& uploads;
  WatchHub& hub;
  const Clock& clock;
  std::function<SystemInfo()> info;  // any thread
  training::RetentionRules retention = {};
  store::ConsoleBook* console = nullptr;  // null: what boards print is not kept
};

using ServicePtr = std::unique_ptr<grpc::Service>;

// One file a service, named after it.
ServicePtr make_fleet_service(Deps& deps);
ServicePtr make_auth_service(Deps& deps);
ServicePtr make_capture_service(Deps& deps);
ServicePtr make_upload_service(Deps& deps);
ServicePtr make_model_service(Deps& deps);
ServicePtr make_dataset_service(Deps& deps);
ServicePtr make_run_service(Deps& deps);
ServicePtr make_campaign_service(Deps& deps);
ServicePtr make_alert_service(Deps& deps);
ServicePtr make_settings_service(Deps& deps);
ServicePtr make_lab_service(Deps& deps);
ServicePtr make_weights_service(Deps& deps);
ServicePtr make_job_service(Deps& deps);
ServicePtr make_console_service(Deps& deps);
ServicePtr make_evaluation_service(Deps& deps);
ServicePtr make_event_service(Deps& deps);
ServicePtr make_watch_service(Deps& deps);
ServicePtr make_storage_service(Deps& deps);
ServicePtr make_system_service(Deps& deps);

class ApiService;
void add_storage_reads(ApiService& service, Deps& deps);  // the rest of make_storage_service

// All of odt.api.v1. `deps` outlives them.
std::vector<ServicePtr> make_services(Deps& deps);

}  // namespace odt::api
