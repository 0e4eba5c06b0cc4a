#include "api/metrics.h"

#include <prometheus/text_serializer.h>

#include <map>

namespace odt::api {
namespace {

const char* status_name(model::BoardStatus status) {
  switch (status) {
    case model::BoardStatus::kOnline:
      return "online";
    case model::BoardStatus::kSuspect:
      return "suspect";
    case model::BoardStatus::kOffline:
      return "offline";
    case model::BoardStatus::kQuarantined:
      return "quarantined";
    case model::BoardStatus::kBusy:
      return "busy";
    default:
      return "unknown";
  }
}

void add_calls(MetricList& out, const Gate& gate) {
  const auto methods = gate.methods();
  out.begin_counter("odt_api_calls_total", "Calls that were answered or refused.");
  for (const auto* m : methods) out.value(m->calls, {{"method", m->path}});
  out.begin_counter("odt_api_errors_total", "Calls that ended in an error.");
  for (const auto* m : methods) out.value(m->errors, {{"method", m->path}});
  out.begin_counter("odt_api_microseconds_total", "Time until the answer, summed.");
  for (const auto* m : methods) out.value(m->microseconds, {{"method", m->path}});
}

void add_boards(MetricList& out, const training::FleetView& view) {
  std::map<std::string, std::uint64_t> boards;
  std::uint64_t crc_errors = 0, retries = 0, reserved = 0, maintenance = 0;
  for (const auto& board : view.boards) {
    ++boards[status_name(board.status)];
    crc_errors += board.link.crc_errors;
    retries += board.link.retries;
    reserved += board.reservation.owner.empty() ? 0 : 1;
    maintenance += board.maintenance.on() ? 1 : 0;
  }
  out.begin_gauge("odt_boards", "Boards that are known, by status.");
  for (const auto& [status, count] : boards) out.value(count, {{"status", status}});
  out.gauge("odt_boards_reserved", "Boards that are reserved for somebody.", reserved);
  out.gauge("odt_boards_in_maintenance", "Boards that are out of service.", maintenance);
  out.gauge("odt_link_crc_errors", "Bad frames in the boards' sessions, summed.", crc_errors);
  out.gauge("odt_link_retries", "Requests that were sent again, summed.", retries);
}

}  // namespace

void MetricList::begin_gauge(const char* name, const char* help) {
  families_.push_back({name, help, prometheus::MetricType::Gauge, {}});
}
void MetricList::begin_counter(const char* name, const char* help) {
  families_.push_back({name, help, prometheus::MetricType::Counter, {}});
}
void MetricList::value(std::uint64_t value, const Labels& labels) {
  auto& family = families_.back();
  auto& metric = family.metric.emplace_back();
  for (const auto& [name, text] : labels) metric.label.push_back({name, text});
  const auto number = static_cast<double>(value);
  if (family.type == prometheus::MetricType::Counter)
    metric.counter.value = number;
  else
    metric.gauge.value = number;
}
std::string MetricList::text() const { return prometheus::TextSerializer().Serialize(families_); }

std::string metrics_text(const Deps& deps, std::size_t http_connections) {
  MetricList out;
  const SystemInfo info = deps.info();
  out.begin_gauge("odt_build_info", "The version of odtd; always 1.");
  out.value(1, {{"version", info.version}});
  out.gauge("odt_watch_streams", "Watch streams that are open.", deps.hub.streams());
  out.gauge("odt_http_connections", "HTTP connections that are open.", http_connections);
  out.gauge("odt_control_db_bytes", "Size of control.db.", info.control_db_bytes);
  out.gauge("odt_telemetry_db_bytes", "Size of telemetry.db.", info.telemetry_db_bytes);
  out.gauge("odt_disk_free_bytes", "Free on the disk of the data directory.", info.disk_free_bytes);
  out.counter("odt_telemetry_dropped_total",
              "Step records that were not stored: the disk was full, or they came too fast.",
              deps.telemetry.dropped());
  add_boards(out, *deps.fleet.view());
  add_calls(out, deps.gate);
  return out.text();
}

}  // namespace odt::api
