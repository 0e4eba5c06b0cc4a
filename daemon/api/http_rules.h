#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Decisions of the HTTP port that need no socket.
namespace odt::api {

// Whether a Host header may be answered. An address is; a name only if it is localhost or allowed:
// a page elsewhere can make its own name point here (DNS rebinding), never an address.
bool host_allowed(std::string_view host, const std::vector<std::string>& allowed);

// Whether a page of this Origin may call: the same origin as Host, or one that is allowed.
bool origin_allowed(std::string_view origin, std::string_view host,
                    const std::vector<std::string>& allowed);

// "application/grpc-web" or "application/grpc-web+proto", parameters apart.
bool is_grpc_web(std::string_view content_type);

// One "bytes=first-last" range of a resource of `size` bytes, as [first, end). nullopt: no range,
// send all. OUT_OF_RANGE: not satisfiable. What is malformed or has several ranges counts as none.
struct ByteRange {
  std::uint64_t first = 0, end = 0;
};
Result<std::optional<ByteRange>> parse_range(std::string_view header, std::uint64_t size);

// "/a%20b?c" -> "/a b". INVALID_ARGUMENT: bad escapes, NUL, "..", a backslash.
Result<std::string> parse_target(std::string_view target);

// "ipv4:127.0.0.1:4711" or "ipv6:[::1]:4711", as gRPC prints a peer.
std::string peer_name(const std::string& address, bool v6, std::uint16_t port);

}  // namespace odt::api
