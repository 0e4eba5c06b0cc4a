#pragma once

#include <string>
#include <vector>

#include "app/config.h"

namespace odt::app {

struct Endpoints {
  Endpoint http, grpc;
  bool tls = false;  // both
  std::string socket;
  std::vector<std::string> listen;  // where boards dial in
};

// <data_dir>/endpoints.json, for scripts that start odtd with port 0: {"http": "http://..",
// "http_port", "grpc": "addr:port", "grpc_port", "socket", "listen": ["addr:port"], "listen_port",
// "pid"}. Whole or not at all.
Status write_endpoints(const std::string& data_dir, const Endpoints& endpoints);
void remove_endpoints(const std::string& data_dir);

// "addr:port" with a free port in place of 0. ALREADY_EXISTS: the port is in use.
Result<std::string> free_board_port(const std::string& where);

}  // namespace odt::app
