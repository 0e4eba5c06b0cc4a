#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "alerts/book.h"
#include "alerts/webhook.h"
#include "api/access.h"
#include "auth/audit_log.h"
#include "auth/server_tls.h"
#include "fleet/fleet_options.h"
#include "lab/power.h"
#include "link/tls.h"

namespace odt::app {

struct Endpoint {
  std::string address;
  std::uint16_t port = 0;
  std::string text() const;  // "127.0.0.1:8080", "[::1]:8080"
};
// "address:port", "[v6]:port". INVALID_ARGUMENT.
Result<Endpoint> parse_endpoint(const std::string& text);
// The same behind "tls:" or nothing: where boards dial in.
Result<Endpoint> parse_listen(const std::string& text);

// Everything that odtd can be told; keys and defaults: deploy/odtd.toml.
struct Config {
  std::string data_dir, web_dir, worker;
  std::string python_dir;  // the wheel for pip, beside odtd; "": none
  std::string log_level = "info", log_file;
  Endpoint http{"127.0.0.1", 8080};
  std::vector<std::string> allowed_hosts, allowed_origins;
  std::uint32_t max_connections = 512;
  Endpoint grpc{"127.0.0.1", 7421};
  std::string socket;  // unix socket; "" until resolve()
  bool no_socket = false;
  std::optional<bool> auth_required;  // unset: where a port listens beyond this machine
  std::vector<api::ClientRule> auth_clients;
  auth::AuditOptions audit;
  auth::ServerTlsFiles server_tls;  // of the HTTP and the gRPC port
  std::vector<std::string> listen;  // "address:port", "tls:address:port" where boards dial in
  bool insecure_tcp = false;        // also without TLS beyond this machine
  link::TlsFiles tls;
  std::vector<std::uint32_t> bauds;  // of serial ports; empty: LinkOptions::baud_list
  std::vector<fleet::DialTarget> dial;
  std::vector<fleet::SerialRule> serial_allow;
  std::vector<lab::PowerProfile> power;
  std::uint32_t resume_deadline_s = 86'400;
  // Snapshots: the newest of a board and model stay, the rest goes to the trash when it is older
  // (days; 0: never by itself).
  std::uint32_t snapshots_keep = 20, snapshots_days = 30;
  std::uint64_t telemetry_quota_bytes = 0;  // 0: chosen from the free space
  std::uint64_t max_upload_bytes = std::uint64_t{4} << 30;
  std::vector<model::AlertRule> alert_rules = alerts::default_rules();
  alerts::WebhookOptions webhook;
  std::uint32_t jobs_parallel = 2, job_deadline_s = 900;
  std::uint64_t job_memory_bytes = std::uint64_t{4} << 30;
};

// What the command line asks for.
struct CommandLine {
  Config config;
  bool show_version = false, show_help = false;
  std::string help;
};

// TOML under the flags: the file, then every *.toml of the folder <path>.d in order of their names,
// whose keys count where both have them. Errors: INVALID_ARGUMENT, one line: file, line, key, what
// is wrong, what is allowed; NOT_FOUND: no such file.
Result<Config> load_config(const std::string& path);
// The same, but for faults of keys and values: each is one of `faults`, with its remedy.
Result<Config> read_config(const std::string& path, std::vector<Status>& faults);
// odtd check-config [FILE]: says every fault of the file on stderr. The exit code: 0 valid, 2 not.
int check_config(int argc, const char* const* argv);
// Flags override --config FILE.
Result<CommandLine> parse_command_line(int argc, const char* const* argv);
// Fills what depends on the machine: data_dir, web_dir, worker, socket. exe: of odtd.
void resolve(Config& config, const std::string& exe);

}  // namespace odt::app
