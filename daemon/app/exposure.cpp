#include "app/exposure.h"

#include <boost/asio/ip/address.hpp>

namespace odt::app {
namespace {

bool is_wide(const Endpoint& endpoint) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(endpoint.address, error);
  return !error && !address.is_loopback();
}

}  // namespace

Status check_exposure(Config& config) {
  std::string wide;
  if (is_wide(config.http)) wide = "http.listen " + config.http.text();
  if (is_wide(config.grpc))
    wide += (wide.empty() ? "" : " and ") + ("grpc.listen " + config.grpc.text());
  if (wide.empty()) return absl::OkStatus();
  const std::string port = std::to_string(config.http.port);
  const std::string remedy =
      "run `odtctl setup remote` on this machine, which makes a key, a certificate and the lines "
      "of "
      "the configuration; or stay on 127.0.0.1 and use `ssh -L " +
      port + ":127.0.0.1:" + port + " HOST`";
  if (config.server_tls.cert.empty())
    return with_reason(absl::FailedPreconditionError(
                           wide + " can be reached from other machines, but [tls] names no "
                                  "certificate: tokens would travel in clear text"),
                       "NOT_PROTECTED", remedy);
  if (config.auth_required == false)
    return with_reason(absl::FailedPreconditionError(
                           wide + " can be reached from other machines, but auth.required is "
                                  "false: anybody there could do anything"),
                       "NOT_PROTECTED", "remove that line; then callers need a token");
  config.auth_required = true;
  return absl::OkStatus();
}

}  // namespace odt::app
