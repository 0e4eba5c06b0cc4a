#include "cli/exit_code.h"

#include <cstdlib>
#include <string>

namespace odt::cli {

Status with_exit(Status status, ExitCode code) {
  status.SetPayload("odt/exit", absl::Cord(std::to_string(code)));
  return status;
}

int exit_code_of(const Status& status) {
  if (const auto fixed = status.GetPayload("odt/exit"))
    return std::atoi(std::string(*fixed).c_str());
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return kExitUsage;
    case absl::StatusCode::kNotFound:
      return kExitNotFound;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kResourceExhausted:
      return kExitRefused;
    default:
      return kExitFailed;
  }
}

}  // namespace odt::cli
