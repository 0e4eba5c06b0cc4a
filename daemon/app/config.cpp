#include "app/config.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "app/exposure.h"

namespace odt::app {
namespace {

namespace fs = std::filesystem;

std::string home_data_dir() {
  if (::geteuid() == 0) return "/var/lib/odt-fleet";
  if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && *data == '/')
    return std::string(data) + "/odt-fleet";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : ".") + "/.local/share/odt-fleet";
}

// Where odtctl looks by itself.
std::string default_socket(const std::string& data_dir) {
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && *runtime == '/')
    return std::string(runtime) + "/odt-fleet.sock";
  return ::geteuid() == 0 ? "/run/odt-fleet/odtd.sock" : data_dir + "/odtd.sock";
}

std::string first_there(const std::vector<fs::path>& candidates, const char* file) {
  std::error_code error;
  for (const auto& path : candidates)
    if (fs::exists(path / file, error)) return fs::weakly_canonical(path, error).string();
  return candidates.front().lexically_normal().string();
}

struct Flags {
  std::string config, data_dir, http, grpc, socket, web, worker, log_level, log_file;
  std::vector<std::string> listen, dial;
  bool insecure_tcp = false;
};

void declare(CLI::App& app, Flags& flags, bool& version) {
  app.add_option("--config", flags.config, "TOML file; flags override it")->type_name("FILE");
  app.add_option("--data-dir", flags.data_dir, "databases, blobs, uploads")->type_name("DIR");
  app.add_option("--http", flags.http, "dashboard and gRPC-Web, default 127.0.0.1:8080")
      ->type_name("ADDR:PORT");
  app.add_option("--grpc", flags.grpc, "gRPC, default 127.0.0.1:7421")->type_name("ADDR:PORT");
  app.add_option("--socket", flags.socket, "unix socket, default where odtctl looks; none: without")
      ->type_name("PATH");
  app.add_option("--listen", flags.listen, "boards dial in here (repeatable); tls:ADDR:PORT: TLS")
      ->allow_extra_args(false)
      ->type_name("ADDR:PORT");
  app.add_option("--dial", flags.dial, "board to dial (repeatable)")
      ->allow_extra_args(false)
      ->type_name("HOST:PORT");
  app.add_flag("--insecure-tcp", flags.insecure_tcp,
               "let boards dial in from other machines without TLS: anybody there could");
  app.add_option("--web", flags.web, "the dashboard's files")->type_name("DIR");
  app.add_option("--worker", flags.worker, "odt-worker, default beside odtd")->type_name("FILE");
  app.add_option("--log-level", flags.log_level, "trace, debug, info, warn, error")
      ->type_name("LEVEL");
  app.add_option("--log-file", flags.log_file, "also log to this file (rotated)")
      ->type_name("FILE");
  app.add_flag("--version", version, "print the version");
}

Status flag_error(const char* flag, const Status& why) {
  return absl::InvalidArgumentError(std::string(flag) + ": " + std::string(why.message()));
}

Status apply(const Flags& flags, Config& config) {
  const auto text = [](const std::string& from, std::string& to) {
    if (!from.empty()) to = from;
  };
  text(flags.data_dir, config.data_dir);
  text(flags.web, config.web_dir);
  text(flags.worker, config.worker);
  text(flags.log_level, config.log_level);
  text(flags.log_file, config.log_file);
  if (flags.socket == "none") {
    config.no_socket = true;
  } else if (!flags.socket.empty()) {
    config.socket = flags.socket;
    config.no_socket = false;
  }
  for (const auto& [flag, from, to] : {std::tuple("--http", &flags.http, &config.http),
                                       std::tuple("--grpc", &flags.grpc, &config.grpc)}) {
    if (from->empty()) continue;
    Result<Endpoint> endpoint = parse_endpoint(*from);
    if (!endpoint.ok()) return flag_error(flag, endpoint.status());
    *to = *endpoint;
  }
  if (!flags.listen.empty()) config.listen = flags.listen;
  for (const auto& where : config.listen)
    if (const auto endpoint = parse_listen(where); !endpoint.ok())
      return flag_error("--listen", endpoint.status());
  config.insecure_tcp |= flags.insecure_tcp;
  if (!flags.dial.empty()) config.dial.clear();
  for (const auto& where : flags.dial) {
    const auto colon = where.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == where.size())
      return absl::InvalidArgumentError("--dial: '" + where + "' is not HOST:PORT");
    config.dial.push_back({where, {}, {}, false, false});
  }
  static const std::vector<std::string> kLevels = {"trace", "debug", "info", "warn", "error"};
  if (std::find(kLevels.begin(), kLevels.end(), config.log_level) == kLevels.end())
    return absl::InvalidArgumentError("--log-level: '" + config.log_level +
                                      "' is not one of trace, debug, info, warn, error");
  return absl::OkStatus();
}

}  // namespace

std::string Endpoint::text() const {
  const bool v6 = address.find(':') != std::string::npos;
  return (v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

Result<Endpoint> parse_endpoint(const std::string& text) {
  const auto colon = text.rfind(':');
  Endpoint endpoint;
  if (colon != std::string::npos) {
    endpoint.address = text.substr(0, colon);
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, endpoint.port);
    if (error == std::errc() && rest == end && !endpoint.address.empty()) {
      if (endpoint.address.front() == '[' && endpoint.address.back() == ']')
        endpoint.address = endpoint.address.substr(1, endpoint.address.size() - 2);
      if (endpoint.address == "localhost") endpoint.address = "127.0.0.1";
      boost::system::error_code bad;
      asio::ip::make_address(endpoint.address, bad);
      if (!bad) return endpoint;
    }
  }
  return absl::InvalidArgumentError("'" + text +
                                    "' is not ADDRESS:PORT, such as 127.0.0.1:8080 (port 0: any "
                                    "free one)");
}

Result<Endpoint> parse_listen(const std::string& text) {
  return parse_endpoint(text.starts_with("tls:") ? text.substr(4) : text);
}

Result<CommandLine> parse_command_line(int argc, const char* const* argv) {
  CLI::App app{"odtd: trains neural networks on fleets of microcontroller boards", "odtd"};
  CommandLine line;
  Flags flags;
  declare(app, flags, line.show_version);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    line.show_help = true;
    line.help = app.help();
    return line;
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(std::string(error.what()) + "; odtd --help lists the flags");
  }
  if (line.show_version) return line;
  if (!flags.config.empty()) {
    ODT_ASSIGN(line.config, load_config(flags.config));
  }
  ODT_TRY(apply(flags, line.config));
  ODT_TRY(check_exposure(line.config));
  return line;
}

void resolve(Config& config, const std::string& exe) {
  const fs::path bin = fs::path(exe).parent_path();
  if (config.data_dir.empty()) config.data_dir = home_data_dir();
  config.data_dir = fs::absolute(config.data_dir).lexically_normal().string();
  if (config.web_dir.empty())
    config.web_dir = first_there(
        {bin / "../share/odt-fleet/web", bin / "../../web/dist", bin / "../../../web/dist"},
        "index.html");
  config.python_dir =
      first_there({bin / "../share/odt-fleet/python", bin / "../python"}, "simple/index.html");
  if (config.worker.empty()) config.worker = (bin / "odt-worker").string();
  if (config.socket.empty() && !config.no_socket) config.socket = default_socket(config.data_dir);
  if (config.no_socket) config.socket.clear();
}

}  // namespace odt::app
