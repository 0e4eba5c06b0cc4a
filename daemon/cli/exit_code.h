#pragma once

#include "base/result.h"

namespace odt::cli {

// What odtctl ends with; documented in daemon/README.md and in `odtctl --help`.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,       // the operation failed
  kExitUsage = 2,        // wrong command line or arguments
  kExitUnreachable = 3,  // no odtd answers
  kExitNotFound = 4,
  kExitRefused = 5,    // the state of things does not allow it
  kExitRunFailed = 6,  // a run or job ended FAILED or CANCELLED
  kExitInterrupted = 130,
};

// Fixes the exit code of an error.
Status with_exit(Status status, ExitCode code);
int exit_code_of(const Status& status);

}  // namespace odt::cli
