#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace odt::api::v1 {
enum Role : int;
}

// Roles and ends of tokens as words.
namespace odt::cli {

std::string lower_word(std::string text);
std::string role_word(api::v1::Role role);                       // "operator", "none"
Result<api::v1::Role> parse_role_word(const std::string& word);  // INVALID_ARGUMENT
std::string expiry_text(std::int64_t expire_time_us);            // "until 2026-12-30 14:03"

}  // namespace odt::cli
