#include "cli/http_get.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include "base/asio.h"
// After Asio.
#include <boost/asio/ssl.hpp>

#include "cli/text.h"

namespace odt::cli {
namespace {

struct Url {
  bool tls = false;
  std::string host, port = "80", authority, path = "/";
};

Result<Url> parse(const std::string& text) {
  const auto bad =
      absl::InvalidArgumentError("'" + clean(text) + "' is not an http:// or https:// address");
  Url url;
  url.tls = text.starts_with("https://");
  if (!url.tls && !text.starts_with("http://")) return bad;
  if (url.tls) url.port = "443";
  const std::size_t begin = text.find("://") + 3;
  const std::size_t slash = text.find('/', begin);
  url.authority = text.substr(begin, slash - begin);
  if (slash != std::string::npos) url.path = text.substr(slash);
  url.host = url.authority;
  const std::size_t colon = url.authority.rfind(':');
  if (colon != std::string::npos && url.authority.find(']', colon) == std::string::npos) {
    url.host = url.authority.substr(0, colon);
    url.port = url.authority.substr(colon + 1);
  }
  if (url.host.starts_with('[') && url.host.ends_with(']'))
    url.host = url.host.substr(1, url.host.size() - 2);
  if (url.host.empty() || url.port.empty()) return bad;
  return url;
}

// The body of a whole response that the server ended by closing.
Result<std::string> body_of(const std::string& url, const std::string& response) {
  const std::size_t end = response.find("\r\n\r\n");
  if (end == std::string::npos) return absl::UnavailableError(clean(url) + ": no HTTP answer");
  const std::vector<std::string> lines = absl::StrSplit(response.substr(0, end), "\r\n");
  const std::vector<std::string> status = absl::StrSplit(lines[0], absl::MaxSplits(' ', 2));
  if (status.size() < 2 || status[1] != "200") {
    const std::string text = absl::StrCat(clean(url), ": ", clean(lines[0]));
    if (status.size() >= 2 && status[1] == "401")
      return with_reason(absl::UnauthenticatedError(text), "TOKEN_NEEDED",
                         "odtd gives files over HTTP only to a token: --token-file, $ODT_TOKEN");
    return status.size() >= 2 && status[1] == "404" ? absl::NotFoundError(text)
                                                    : absl::InternalError(text);
  }
  std::string body = response.substr(end + 4);
  for (const std::string& line : lines) {
    const std::pair<std::string, std::string> header =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    std::uint64_t length = 0;
    if (absl::EqualsIgnoreCase(header.first, "content-length") &&
        absl::SimpleAtoi(header.second, &length) && body.size() != length)
      return absl::UnavailableError(
          absl::StrCat(clean(url), ": cut off after ", body.size(), " of ", length, " bytes"));
    if (absl::EqualsIgnoreCase(header.first, "transfer-encoding"))
      return absl::InternalError(clean(url) + ": a chunked answer is not understood");
  }
  return body;
}

}  // namespace

namespace {

// Sends the request and reads until the server closes.
template <typename Stream>
std::string exchange(Stream& stream, const std::string& request, boost::system::error_code& ec) {
  std::string response;
  asio::write(stream, asio::buffer(request), ec);
  if (!ec) asio::read(stream, asio::dynamic_buffer(response), ec);
  if (ec == asio::error::eof || ec == asio::ssl::error::stream_truncated) ec = {};
  return response;
}

std::string exchange_tls(asio::ip::tcp::socket& socket, const Url& url, const std::string& ca_pem,
                         const std::string& request, boost::system::error_code& ec) {
  asio::ssl::context context(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_3_VERSION);
  context.add_certificate_authority(asio::buffer(ca_pem), ec);
  if (ec) return {};
  asio::ssl::stream<asio::ip::tcp::socket&> stream(socket, context);
  stream.set_verify_mode(asio::ssl::verify_peer);
  stream.set_verify_callback(asio::ssl::host_name_verification(url.host));
  stream.handshake(asio::ssl::stream_base::client, ec);
  return ec ? std::string() : exchange(stream, request, ec);
}

}  // namespace

Result<std::string> http_get(const std::string& text, const Credentials& own) {
  ODT_ASSIGN(const Url url, parse(text));
  asio::io_context io;
  boost::system::error_code ec;
  asio::ip::tcp::resolver resolver(io);
  const auto endpoints = resolver.resolve(url.host, url.port, ec);
  asio::ip::tcp::socket socket(io);
  if (!ec) asio::connect(socket, endpoints, ec);
  if (ec) return absl::UnavailableError(clean(text) + ": " + ec.message());
  const std::string request = absl::StrCat("GET ", url.path, " HTTP/1.1\r\nHost: ", url.authority,
                                           own.token.empty() ? "" : "\r\nAuthorization: Bearer ",
                                           own.token, "\r\nConnection: close\r\n\r\n");
  const std::string response =
      url.tls ? exchange_tls(socket, url, own.ca_pem, request, ec) : exchange(socket, request, ec);
  if (ec) return absl::UnavailableError(clean(text) + ": " + ec.message());
  return body_of(text, response);
}

}  // namespace odt::cli
