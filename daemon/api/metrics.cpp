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

void add_calls(std::ostream& out, const Gate& gate) {
  const auto methods = gate.methods();
  out << "# HELP odt_api_calls_total Calls that were answered or refused.\n"
         "# TYPE odt_api_calls_total counter\n";
  for (const auto* m : methods)
    out << "odt_api_calls_total{method=\"" << m->path << "\"} " << m->calls.load() << "\n";
  out << "# HELP odt_api_errors_total Calls that ended in an error.\n"
         "# TYPE odt_api_errors_total counter\n";
  for (const auto* m : methods)
    out << "odt_api_errors_total{method=\"" << m->path << "\"} " << m->errors.load() << "\n";
  out << "# HELP odt_api_microseconds_total Time until the answer, summed.\n"
         "# TYPE odt_api_microseconds_total counter\n";
  for (const auto* m : methods)
    out << "odt_api_microseconds_total{method=\"" << m->path << "\"} " << m->microseconds.load()
        << "\n";
}

}  // namespace

std::string metrics_text(const Deps& deps, std::size_t http_connections) {
  std::ostringstream out;
  const SystemInfo info = deps.info();
  out << "# TYPE odt_build_info gauge\nodt_build_info{version=\"" << info.version << "\"} 1\n"
      << "# TYPE odt_watch_streams gauge\nodt_watch_streams " << deps.hub.streams() << "\n"
      << "# TYPE odt_http_connections gauge\nodt_http_connections " << http_connections << "\n"
      << "# TYPE odt_control_db_bytes gauge\nodt_control_db_bytes " << info.control_db_bytes << "\n"
      << "# TYPE odt_telemetry_db_bytes gauge\nodt_telemetry_db_bytes " << info.telemetry_db_bytes
      << "\n# TYPE odt_disk_free_bytes gauge\nodt_disk_free_bytes " << info.disk_free_bytes
      << "\n# TYPE odt_telemetry_dropped_total counter\nodt_telemetry_dropped_total "
      << deps.telemetry.dropped() << "\n";
  std::map<std::string, int> boards;
  std::uint64_t crc_errors = 0, retries = 0;
  if (const auto view = deps.fleet.view()) {
    for (const auto& board : view->boards) {
      ++boards[status_name(board.status)];
      crc_errors += board.link.crc_errors;
      retries += board.link.retries;
    }
  }
  out << "# TYPE odt_boards gauge\n";
  for (const auto& [status, count] : boards)
    out << "odt_boards{status=\"" << status << "\"} " << count << "\n";
  out << "# TYPE odt_link_crc_errors gauge\nodt_link_crc_errors " << crc_errors
      << "\n# TYPE odt_link_retries gauge\nodt_link_retries " << retries << "\n";
  add_calls(out, deps.gate);
  return out.str();
}

}  // namespace odt::api
