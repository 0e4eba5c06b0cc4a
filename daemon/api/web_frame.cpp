#include "api/web_frame.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>

#include <algorithm>
#include <cstdint>

namespace odt::api {
namespace {

constexpr unsigned kCompressed = 0x01, kTrailers = 0x80;

std::uint32_t read_length(std::string_view body) {
  std::uint32_t length = 0;
  for (std::size_t i = 1; i < kWebFrameHeader; ++i)
    length = length << 8 | static_cast<unsigned char>(body[i]);
  return length;
}

void append_header(std::string& out, unsigned flag, std::size_t length) {
  out += static_cast<char>(flag);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(length >> shift & 0xFFu);
}

}  // namespace

Result<std::string> parse_web_request(std::string_view body, std::size_t limit) {
  if (body.size() < kWebFrameHeader)
    return absl::InvalidArgumentError("body of " + std::to_string(body.size()) +
                                      " bytes holds no gRPC-Web frame");
  const auto flag = static_cast<unsigned char>(body[0]);
  if (flag & kCompressed) return absl::UnimplementedError("compressed messages are not taken");
  if (flag != 0)
    return absl::InvalidArgumentError("frame flag " + std::to_string(flag) + " in a request");
  const std::size_t length = read_length(body);
  if (length > limit)
    return absl::ResourceExhaustedError("message of " + std::to_string(length) + " bytes; limit " +
                                        std::to_string(limit));
  if (body.size() != kWebFrameHeader + length)
    return absl::InvalidArgumentError("frame of " + std::to_string(length) +
                                      " bytes in a body of " + std::to_string(body.size()) +
                                      "; exactly one frame is taken");
  return std::string(body.substr(kWebFrameHeader));
}

void append_web_header(std::string& out, std::size_t length) { append_header(out, 0, length); }

std::string base64(std::string_view bytes) {
  std::string out;
  absl::Base64Escape(absl::string_view(bytes.data(), bytes.size()), &out);
  while (!out.empty() && out.back() == '=') out.pop_back();
  return out;
}

std::string percent_encode(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte <= 0x7E && c != '%') {
      out += c;
      continue;
    }
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 0xF];
  }
  return out;
}

std::string web_trailer(const grpc::Status& status,
                        const std::multimap<std::string, std::string>& trailing) {
  std::map<std::string, std::string> fields;
  for (const auto& [key, value] : trailing) {
    const bool binary = key.size() > 4 && key.compare(key.size() - 4, 4, "-bin") == 0;
    fields.insert({absl::AsciiStrToLower(key), binary ? base64(value) : value});
  }
  fields["grpc-status"] = std::to_string(static_cast<int>(status.error_code()));
  if (!status.error_message().empty())
    fields["grpc-message"] = percent_encode(status.error_message());
  if (!status.error_details().empty())
    fields["grpc-status-details-bin"] = base64(status.error_details());
  std::string text;
  for (const auto& [key, value] : fields) {
    // A value with a line end could forge a trailer.
    if (value.find_first_of("\r\n") != std::string::npos) continue;
    text += key + ": " + value + "\r\n";
  }
  std::string frame;
  append_header(frame, kTrailers, text.size());
  return frame + text;
}

constexpr std::int64_t kLongestHours = 100 * 365 * 24;  // a century

Result<std::chrono::nanoseconds> parse_grpc_timeout(std::string_view text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError("grpc-timeout '" + std::string(text.substr(0, 16)) +
                                      "': 1 to 8 digits and one of H M S m u n");
  };
  if (text.size() < 2 || text.size() > 9) return bad();
  std::int64_t value = 0;
  for (const char c : text.substr(0, text.size() - 1)) {
    if (c < '0' || c > '9') return bad();
    value = value * 10 + (c - '0');
  }
  switch (text.back()) {
    case 'H':  // 8 digits of hours are more than int64 nanoseconds hold
      return std::chrono::hours(std::min(value, kLongestHours));
    case 'M':
      return std::chrono::minutes(value);
    case 'S':
      return std::chrono::seconds(value);
    case 'm':
      return std::chrono::milliseconds(value);
    case 'u':
      return std::chrono::microseconds(value);
    case 'n':
      return std::chrono::nanoseconds(value);
    default:
      return bad();
  }
}

}  // namespace odt::api
