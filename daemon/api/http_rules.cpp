#include "api/http_rules.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <arpa/inet.h>

#include <algorithm>

namespace odt::api {
namespace {

std::string lower(std::string_view text) {
  return absl::AsciiStrToLower(absl::string_view(text.data(), text.size()));
}

// "[::1]:80" -> "[::1]", "a:80" -> "a".
std::string_view without_port(std::string_view host) {
  if (!host.empty() && host.front() == '[') {
    const auto end = host.find(']');
    return end == std::string_view::npos ? host : host.substr(0, end + 1);
  }
  return host.substr(0, host.find(':'));
}

bool is_address(const std::string& name) {
  in6_addr raw{};
  if (name.size() > 2 && name.front() == '[' && name.back() == ']')
    return inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), &raw) == 1;
  return inet_pton(AF_INET, name.c_str(), &raw) == 1;
}

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& item) { return lower(item) == name; });
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool read_number(std::string_view text, std::uint64_t* value) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         absl::SimpleAtoi(absl::string_view(text.data(), text.size()), value);
}

}  // namespace

bool host_allowed(std::string_view host, const std::vector<std::string>& allowed) {
  const std::string name = lower(without_port(host));
  return name == "localhost" || absl::EndsWith(name, ".localhost") || is_address(name) ||
         contains(allowed, name);
}

bool origin_allowed(std::string_view origin, std::string_view host,
                    const std::vector<std::string>& allowed) {
  const std::string from = lower(origin), here = lower(host);
  return from == "http://" + here || from == "https://" + here || contains(allowed, from);
}

bool is_grpc_web(std::string_view content_type) {
  const std::string type = lower(content_type.substr(0, content_type.find_first_of("; ")));
  return type == "application/grpc-web" || type == "application/grpc-web+proto";
}

Result<std::optional<ByteRange>> parse_range(std::string_view header, std::uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  const std::optional<ByteRange> none;
  if (header.substr(0, kUnit.size()) != kUnit) return none;
  header.remove_prefix(kUnit.size());
  const auto dash = header.find('-');
  if (dash == std::string_view::npos || header.find(',') != std::string_view::npos) return none;
  const auto head = header.substr(0, dash), tail = header.substr(dash + 1);
  std::uint64_t first = 0, last = 0;
  ByteRange range;
  if (head.empty()) {  // the last n bytes
    if (!read_number(tail, &last)) return none;
    if (last == 0 || size == 0) return absl::OutOfRangeError("empty range");
    range = {size - std::min(size, last), size};
  } else {
    if (!read_number(head, &first) || (!tail.empty() && !read_number(tail, &last))) return none;
    if (!tail.empty() && last < first) return none;
    if (first >= size)
      return absl::OutOfRangeError("range begins at " + std::to_string(first) + " of " +
                                   std::to_string(size) + " bytes");
    range = {first, tail.empty() ? size : std::min(size, last + 1)};
  }
  return std::optional<ByteRange>(range);
}

Result<std::string> parse_target(std::string_view target) {
  const auto bad = [] { return absl::InvalidArgumentError("the path is malformed"); };
  target = target.substr(0, target.find_first_of("?#"));
  if (target.empty() || target.front() != '/') return bad();
  std::string path;
  for (std::size_t i = 0; i < target.size(); ++i) {
    char c = target[i];
    if (c == '%') {
      if (i + 2 >= target.size()) return bad();
      const int high = hex_value(target[i + 1]), low = hex_value(target[i + 2]);
      if (high < 0 || low < 0) return bad();
      c = static_cast<char>(high << 4 | low);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == '\\') return bad();
    path += c;
  }
  if ((path + "/").find("/../") != std::string::npos) return bad();
  return path;
}

std::string peer_name(const std::string& address, bool v6, std::uint16_t port) {
  return v6 ? "ipv6:[" + address + "]:" + std::to_string(port)
            : "ipv4:" + address + ":" + std::to_string(port);
}

}  // namespace odt::api
