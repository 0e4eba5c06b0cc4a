#pragma once

#include <grpcpp/support/status.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

// The bytes of gRPC-Web (doc/PROTOCOL-WEB.md of gRPC): in each direction frames of one flag byte, a
// big-endian length and the bytes; the answer ends with a frame of flag 0x80 that holds the
// trailers.
namespace odt::api {

constexpr std::size_t kWebFrameHeader = 5;

// The one message of a request body. Errors: INVALID_ARGUMENT (not exactly one frame),
// UNIMPLEMENTED (compressed), RESOURCE_EXHAUSTED (over `limit` bytes).
Result<std::string> parse_web_request(std::string_view body, std::size_t limit);

// Appends the header of a message frame.
void append_web_header(std::string& out, std::size_t length);

// The last frame. Each key once; "-bin" values in base64.
std::string web_trailer(const grpc::Status& status,
                        const std::multimap<std::string, std::string>& trailing);

// grpc-timeout: up to 8 digits and a unit of H M S m u n. INVALID_ARGUMENT.
Result<std::chrono::nanoseconds> parse_grpc_timeout(std::string_view text);

std::string percent_encode(std::string_view text);  // as grpc-message wants it
std::string base64(std::string_view bytes);

}  // namespace odt::api
