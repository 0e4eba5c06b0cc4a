#pragma once

#include <string>

#include "base/result.h"

namespace odt {

// Where a file that replaces `path` has to be put: links are followed. Errors: INVALID_ARGUMENT (a
// device, a pipe or a folder stands there, which a rename would replace).
Result<std::string> output_path(const std::string& path);

}  // namespace odt
