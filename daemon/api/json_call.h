#pragma once

#include <grpcpp/support/status.h>

#include <string>
#include <string_view>

#include "base/result.h"

// Unary calls as JSON over HTTP, for curl: POST application/json to /odt.api.v1.Service/Method.
// Messages in protobuf's JSON mapping with the field names of the .proto: 64-bit numbers are text,
// bytes are base64; an answer has every field.
namespace odt::api {

// "application/json", parameters apart; a charset other than UTF-8 is none.
bool is_json(std::string_view content_type);

// The serialised request of `path`. An empty body is {}. Errors: NOT_FOUND NO_METHOD; UNIMPLEMENTED
// STREAMING; INVALID_ARGUMENT BAD_JSON (not JSON, an unknown field, a value of another type).
Result<std::string> json_request(std::string_view path, std::string_view body);

// What the body of the answer to a call of `path` is. message: serialised. INTERNAL where it cannot
// be read.
Result<std::string> json_response(std::string_view path, std::string_view message);

// {"error": {"code", "message", "reason", "field", "remedy"}}
std::string json_error(const grpc::Status& status);

// As google.rpc.Code says: 400, 401, 403, 404, 409, 429, 499, 500, 501, 503, 504.
unsigned http_status_of(grpc::StatusCode code);

}  // namespace odt::api
