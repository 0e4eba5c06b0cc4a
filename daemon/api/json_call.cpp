#include "api/json_call.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <memory>

#include "api/errors.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace odt::api {
namespace {

namespace pb = google::protobuf;

constexpr std::string_view kApiPackage = "/odt.api.v1.";

Result<const pb::MethodDescriptor*> unary_method(std::string_view path) {
  std::string name(path.substr(path.empty() ? 0 : 1));
  std::replace(name.begin(), name.end(), '/', '.');
  const pb::MethodDescriptor* method = nullptr;
  // Only with its one slash: a method's name has none.
  if (path.starts_with(kApiPackage) && std::count(path.begin(), path.end(), '/') == 2)
    method = pb::DescriptorPool::generated_pool()->FindMethodByName(name);
  if (method == nullptr)
    return with_reason(absl::NotFoundError("no method '" + clean_text(path.substr(0, 200)) + "'"),
                       "NO_METHOD",
                       "POST to /odt.api.v1.SERVICE/METHOD, as services.proto has it.");
  if (method->server_streaming() || method->client_streaming())
    return with_reason(
        absl::UnimplementedError(std::string(method->name()) + " streams; JSON takes unary calls"),
        "STREAMING", "Use gRPC or gRPC-Web.");
  return method;
}

std::unique_ptr<pb::Message> new_message(const pb::Descriptor* type) {
  return std::unique_ptr<pb::Message>(
      pb::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

std::string quoted_json(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : clean_text(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15u];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

bool is_json(std::string_view content_type) {
  const std::string lower =
      absl::AsciiStrToLower(absl::string_view(content_type.data(), content_type.size()));
  const auto end = std::min(lower.find(';'), lower.size());
  if (absl::StripAsciiWhitespace(lower.substr(0, end)) != "application/json") return false;
  const auto charset = lower.find("charset=", end);
  if (charset == std::string::npos) return true;
  const std::string name = lower.substr(charset + 8);
  return absl::StartsWith(name, "utf-8") || absl::StartsWith(name, "\"utf-8\"");
}

Result<std::string> json_request(std::string_view path, std::string_view body) {
  ODT_ASSIGN(const pb::MethodDescriptor* method, unary_method(path));
  const auto message = new_message(method->input_type());
  const absl::string_view text =
      absl::StripAsciiWhitespace(absl::string_view(body.data(), body.size()));
  if (!text.empty()) {
    const auto read = pb::util::JsonStringToMessage({text.data(), text.size()}, message.get());
    if (!read.ok()) {
      const std::string why(read.message().data(), read.message().size());
      return with_reason(
          absl::InvalidArgumentError(
              absl::StrCat(std::string(method->input_type()->name()), ": ", why)),
          "BAD_JSON",
          "The body is the request in protobuf's JSON: field names as in the .proto, bytes in "
          "base64.");
    }
  }
  return message->SerializeAsString();
}

Result<std::string> json_response(std::string_view path, std::string_view message) {
  ODT_ASSIGN(const pb::MethodDescriptor* method, unary_method(path));
  const auto parsed = new_message(method->output_type());
  pb::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string out;
  if (!parsed->ParseFromArray(message.data(), static_cast<int>(message.size())) ||
      !pb::util::MessageToJsonString(*parsed, &out, options).ok())
    return absl::InternalError("the answer cannot be written as JSON");
  return out + "\n";
}

std::string json_error(const grpc::Status& status) {
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest bad;
  google::rpc::Status envelope;
  if (envelope.ParseFromString(status.error_details())) {
    for (const auto& detail : envelope.details()) {
      if (detail.Is<google::rpc::ErrorInfo>()) detail.UnpackTo(&info);
      if (detail.Is<google::rpc::BadRequest>()) detail.UnpackTo(&bad);
    }
  }
  const auto remedy = info.metadata().find("remedy");
  const std::string code =
      code_name(static_cast<absl::StatusCode>(static_cast<int>(status.error_code())));
  return absl::StrCat(
      R"({"error": {"code": )", quoted_json(code), R"(, "message": )",
      quoted_json(status.error_message()), R"(, "reason": )", quoted_json(info.reason()),
      R"(, "field": )",
      quoted_json(bad.field_violations().empty() ? "" : bad.field_violations(0).field()),
      R"(, "remedy": )", quoted_json(remedy == info.metadata().end() ? "" : remedy->second),
      "}}\n");
}

unsigned http_status_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
      return 200;
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::OUT_OF_RANGE:
      return 400;
    case grpc::StatusCode::UNAUTHENTICATED:
      return 401;
    case grpc::StatusCode::PERMISSION_DENIED:
      return 403;
    case grpc::StatusCode::NOT_FOUND:
      return 404;
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::ABORTED:
      return 409;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return 429;
    case grpc::StatusCode::CANCELLED:
      return 499;
    case grpc::StatusCode::UNIMPLEMENTED:
      return 501;
    case grpc::StatusCode::UNAVAILABLE:
      return 503;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return 504;
    default:
      return 500;
  }
}

}  // namespace odt::api
