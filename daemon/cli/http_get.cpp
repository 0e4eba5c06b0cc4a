#include "cli/http_get.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include "base/asio.h"
#include "cli/text.h"

namespace odt::cli {
namespace {

struct Url {
  std::string host, port = "80", authority, path = "/";
};

Result<Url> parse(const std::string& text) {
  constexpr std::string_view kScheme = "http://";
  const auto bad = absl::InvalidArgumentError("'" + clean(text) + "' is not an http:// address");
  if (!text.starts_with(kScheme)) return bad;
  Url url;
  const std::size_t slash = text.find('/', kScheme.size());
  url.authority = text.substr(kScheme.size(), slash - kScheme.size());
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

Result<std::string> http_get(const std::string& text) {
  ODT_ASSIGN(const Url url, parse(text));
  asio::io_context io;
  boost::system::error_code ec;
  asio::ip::tcp::resolver resolver(io);
  const auto endpoints = resolver.resolve(url.host, url.port, ec);
  asio::ip::tcp::socket socket(io);
  if (!ec) asio::connect(socket, endpoints, ec);
  if (ec) return absl::UnavailableError(clean(text) + ": " + ec.message());
  const std::string request = absl::StrCat("GET ", url.path, " HTTP/1.1\r\nHost: ", url.authority,
                                           "\r\nConnection: close\r\n\r\n");
  asio::write(socket, asio::buffer(request), ec);
  std::string response;
  if (!ec) asio::read(socket, asio::dynamic_buffer(response), ec);
  if (ec && ec != asio::error::eof)
    return absl::UnavailableError(clean(text) + ": " + ec.message());
  return body_of(text, response);
}

}  // namespace odt::cli
