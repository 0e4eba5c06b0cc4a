#pragma once

#include <string>
#include <vector>

#include "cli/context.h"

namespace odt::cli {

// The whole of odtctl but the process: parses, acts, prints. `arguments` without the program's
// name. Returns the exit code (exit_code.h).
int run_app(Context& context, const std::vector<std::string>& arguments);
// Writes out what is buffered. `code`, or kExitFailed with one line where the output was not taken
// whole (disk full, closed).
int finish_output(Context& context, int code);

}  // namespace odt::cli
