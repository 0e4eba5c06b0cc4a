#pragma once

#include <string>

#include "base/result.h"

namespace odt::cli {

class Context;

// Sends a file in chunks and gives back its blob (raw SHA-256). What odtd has already is not sent
// again. Errors: NOT_FOUND (the file), those of odtd, 130 where interrupted.
Result<std::string> upload_file(Context& context, const std::string& path);

}  // namespace odt::cli
