#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace odt::api {

// A search as people write it: words that must be there, and -words that must not. Lower case
// (a to z only).
struct SearchWords {
  std::vector<std::string> with, without;
};
constexpr std::size_t kMaxSearchBytes = 200;
// INVALID_ARGUMENT: longer than that. Control characters are spaces.
Result<SearchWords> search_words(const std::string& text);

}  // namespace odt::api
