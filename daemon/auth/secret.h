#pragma once

#include <string>
#include <string_view>

#include "base/ids.h"

// Secrets that callers prove who they are with.
namespace odt::auth {

// "odt_" and 43 characters of base64url: 256 random bits. The prefix lets a scanner of logs and
// repositories find one that has leaked.
std::string new_secret();

// Ten of 32 characters that cannot be misread, "7KQ2M-X4PWT": 50 random bits.
std::string new_login_code();
// Capitals without dashes and blanks, as new_login_code() would have it without its dash.
std::string plain_login_code(std::string_view typed);

// What is kept of a secret: SHA-256, without salt or stretching. That is for passwords, which are
// guessed; 256 random bits are not, and two secrets are never equal. A login code has fewer bits
// and lives 10 minutes.
Hash secret_hash(std::string_view secret);

// The token behind "Bearer " of an authorization header; empty where it is another scheme.
std::string_view bearer_token(std::string_view authorization);

}  // namespace odt::auth
