#include "app/endpoints.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace odt::app {
namespace {
std::string file_of(const std::string& data_dir) { return data_dir + "/endpoints.json"; }
}  // namespace

Status write_endpoints(const std::string& data_dir, const Endpoints& endpoints) {
  nlohmann::json json;
  json["http"] = (endpoints.tls ? "https://" : "http://") + endpoints.http.text();
  json["http_port"] = endpoints.http.port;
  json["grpc"] = endpoints.grpc.text();
  json["grpc_port"] = endpoints.grpc.port;
  json["socket"] = endpoints.socket;
  json["listen"] = endpoints.listen;
  if (!endpoints.listen.empty()) {
    ODT_ASSIGN(const Endpoint first, parse_listen(endpoints.listen.front()));
    json["listen_port"] = first.port;
  }
  json["pid"] = ::getpid();
  const std::string path = file_of(data_dir), temporary = path + ".new";
  std::ofstream out(temporary);
  out << json.dump(2) << "\n";
  out.close();
  if (!out || std::rename(temporary.c_str(), path.c_str()) != 0)
    return absl::FailedPreconditionError(path + " cannot be written");
  return absl::OkStatus();
}

void remove_endpoints(const std::string& data_dir) {
  // Another odtd's file stays.
  std::ifstream in(file_of(data_dir));
  const auto json = nlohmann::json::parse(in, nullptr, false);
  if (json.is_object() && json.value("pid", 0) == ::getpid()) ::unlink(file_of(data_dir).c_str());
}

Result<std::string> free_board_port(const std::string& where) {
  ODT_ASSIGN(Endpoint endpoint, parse_listen(where));
  boost::system::error_code error;
  asio::io_context io;
  asio::ip::tcp::acceptor probe(io);
  const asio::ip::tcp::endpoint address(asio::ip::make_address(endpoint.address), endpoint.port);
  probe.open(address.protocol(), error);
  if (!error) probe.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) probe.bind(address, error);
  if (!error) probe.listen(1, error);
  if (error == asio::error::address_in_use)
    return with_reason(absl::AlreadyExistsError("board port " + where + " is in use"),
                       "PORT_IN_USE",
                       "stop what listens there (ss -ltnp shows it), or choose another with "
                       "--listen");
  if (error) return absl::UnavailableError("board port " + where + ": " + error.message());
  endpoint.port = probe.local_endpoint().port();
  return (where.starts_with("tls:") ? "tls:" : "") + endpoint.text();
}

}  // namespace odt::app
