#pragma once

#include <string>

#include "base/result.h"

namespace odt::cli {

// GET of "http://host[:port]/path", HTTP/1.1. Errors: INVALID_ARGUMENT (not such a URL),
// UNAVAILABLE (cannot connect, cut off), NOT_FOUND (404), INTERNAL (any other answer).
Result<std::string> http_get(const std::string& url);

}  // namespace odt::cli
