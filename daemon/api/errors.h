#pragma once

#include <grpcpp/support/status.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace odt::api {

constexpr char kErrorDomain[] = "odt-fleet";

// The gRPC status of an error: same code, clean text, and google.rpc details: ErrorInfo (reason of
// base/result.h's with_reason, else the code's name; metadata "remedy"), BadRequest where a field
// is named, RetryInfo for UNAVAILABLE, ABORTED and RESOURCE_EXHAUSTED.
grpc::Status to_grpc(const Status& status);

// INVALID_ARGUMENT that names the request field: what was got, what is expected.
Status bad_field(std::string_view field, std::string_view problem, std::string_view remedy = {});

// Valid UTF-8 without control characters (a tab stays); what is not becomes '?'. For every text
// that came from a peer or a board.
std::string clean_text(std::string_view text);

// The message of a status, clean.
std::string message_of(const Status& status);

// "NOT_FOUND" of kNotFound.
std::string code_name(absl::StatusCode code);

}  // namespace odt::api
