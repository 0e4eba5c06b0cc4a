#include "api/metrics.h"

#include <map>
#include <sstream>

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

void metric_head(std::ostream& out, const char* name, const char* type, const char* help) {
  out << "# HELP " << name << " " << help << "\n# TYPE " << name << " " << type << "\n";
}

void add_metric(std::ostream& out, const char* name, const char* type, const char* help,
                std::uint64_t value) {
  metric_head(out, name, type, help);
  out << name << " " << value << "\n";
}

void add_calls(std::ostream& out, const Gate& gate) {
  const auto methods = gate.methods();
  const auto each = [&](const char* name, const char* help, auto value) {
    metric_head(out, name, "counter", help);
    for (const auto* m : methods)
      out << name << "{method=\"" << m->path << "\"} " << value(*m).load() << "\n";
  };
  each(
      "odt_api_calls_total", "Calls that were answered or refused.",
      [](const MethodInfo& m) -> const auto& { return m.calls; });
  each(
      "odt_api_errors_total", "Calls that ended in an error.",
      [](const MethodInfo& m) -> const auto& { return m.errors; });
  each(
      "odt_api_microseconds_total", "Time until the answer, summed.",
      [](const MethodInfo& m) -> const auto& { return m.microseconds; });
}

}  // namespace

std::string metrics_text(const Deps& deps, std::size_t http_connections) {
  std::ostringstream out;
  const SystemInfo info = deps.info();
  metric_head(out, "odt_build_info", "gauge", "The version of odtd; always 1.");
  out << "odt_build_info{version=\"" << info.version << "\"} 1\n";
  add_metric(out, "odt_watch_streams", "gauge", "Watch streams that are open.", deps.hub.streams());
  add_metric(out, "odt_http_connections", "gauge", "HTTP connections that are open.",
             http_connections);
  add_metric(out, "odt_control_db_bytes", "gauge", "Size of control.db.", info.control_db_bytes);
  add_metric(out, "odt_telemetry_db_bytes", "gauge", "Size of telemetry.db.",
             info.telemetry_db_bytes);
  add_metric(out, "odt_disk_free_bytes", "gauge", "Free on the disk of the data directory.",
             info.disk_free_bytes);
  add_metric(out, "odt_telemetry_dropped_total", "counter",
             "Step records that were not stored: the disk was full, or they came too fast.",
             deps.telemetry.dropped());
  std::map<std::string, int> boards;
  std::uint64_t crc_errors = 0, retries = 0;
  if (const auto view = deps.fleet.view()) {
    for (const auto& board : view->boards) {
      ++boards[status_name(board.status)];
      crc_errors += board.link.crc_errors;
      retries += board.link.retries;
    }
  }
  metric_head(out, "odt_boards", "gauge", "Boards that are known, by status.");
  for (const auto& [status, count] : boards)
    out << "odt_boards{status=\"" << status << "\"} " << count << "\n";
  add_metric(out, "odt_link_crc_errors", "gauge", "Bad frames in the boards' sessions, summed.",
             crc_errors);
  add_metric(out, "odt_link_retries", "gauge", "Requests that were sent again, summed.", retries);
  add_calls(out, deps.gate);
  return out.str();
}

}  // namespace odt::api
