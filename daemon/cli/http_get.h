#pragma once

#include <string>

#include "base/result.h"
#include "cli/credentials.h"

namespace odt::cli {

// GET of "http://host[:port]/path", or https with own.ca_pem, HTTP/1.1, with own.token. Errors:
// INVALID_ARGUMENT (not such a URL), UNAVAILABLE (cannot connect, cut off), NOT_FOUND (404),
// INTERNAL (any other answer).
Result<std::string> http_get(const std::string& url, const Credentials& own = {});

}  // namespace odt::cli
