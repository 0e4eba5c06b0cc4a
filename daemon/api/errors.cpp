#include "api/errors.h"

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace odt::api {
namespace {

std::string payload(const Status& status, std::string_view key) {
  const auto value = status.GetPayload({key.data(), key.size()});
  return value ? std::string(*value) : std::string();
}

// Bytes of the UTF-8 sequence that starts at text[i]; 0: not valid there.
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(i);
  std::size_t length = 0;
  std::uint32_t code = 0;
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) length = 2, code = lead & 0x1Fu;
  if (lead >= 0xE0 && lead < 0xF0) length = 3, code = lead & 0x0Fu;
  if (lead >= 0xF0 && lead < 0xF5) length = 4, code = lead & 0x07u;
  if (length == 0 || i + length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0u) != 0x80u) return 0;
    code = code << 6 | (byte(i + k) & 0x3Fu);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  const bool control = code >= 0x80 && code < 0xA0;
  return overlong || surrogate || control || code > 0x10FFFF ? 0 : length;
}

}  // namespace

std::string clean_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text, i);
    const auto byte = static_cast<unsigned char>(text[i]);
    if (length == 0 || (length == 1 && ((byte < 0x20 && byte != '\t') || byte == 0x7F))) {
      out += '?';
      ++i;
      continue;
    }
    out.append(text.substr(i, length));
    i += length;
  }
  return out;
}

std::string message_of(const Status& status) {
  // It travels in gRPC's metadata: a client refuses more than 8 KB there, and people read less.
  constexpr std::size_t kMost = 1000;
  std::string text = clean_text({status.message().data(), status.message().size()});
  if (text.size() <= kMost) return text;
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
  return text.substr(0, end) + "...";
}

std::string code_name(absl::StatusCode code) { return absl::StatusCodeToString(code); }

Status bad_field(std::string_view field, std::string_view problem, std::string_view remedy) {
  return with_reason(absl::InvalidArgumentError(std::string(field) + ": " + std::string(problem)),
                     "INVALID_FIELD", remedy, field);
}

grpc::Status to_grpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string text = message_of(status);
  google::rpc::Status envelope;
  envelope.set_code(static_cast<int>(status.code()));
  envelope.set_message(text);

  google::rpc::ErrorInfo info;
  const std::string reason = clean_text(payload(status, "odt/reason"));
  info.set_reason(reason.empty() ? code_name(status.code()) : reason);
  info.set_domain(kErrorDomain);
  if (const auto remedy = payload(status, "odt/remedy"); !remedy.empty())
    (*info.mutable_metadata())["remedy"] = clean_text(remedy);
  envelope.add_details()->PackFrom(info);

  if (const auto field = payload(status, "odt/field"); !field.empty()) {
    google::rpc::BadRequest bad;
    auto* violation = bad.add_field_violations();
    violation->set_field(clean_text(field));
    violation->set_description(text);
    envelope.add_details()->PackFrom(bad);
  }
  if (status.code() == absl::StatusCode::kUnavailable ||
      status.code() == absl::StatusCode::kAborted ||
      status.code() == absl::StatusCode::kResourceExhausted) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(
        status.code() == absl::StatusCode::kResourceExhausted ? 10 : 1);
    envelope.add_details()->PackFrom(retry);
  }
  return {static_cast<grpc::StatusCode>(status.code()), text, envelope.SerializeAsString()};
}

}  // namespace odt::api
