#include "api/search_words.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_split.h>

#include "api/errors.h"

namespace odt::api {

Result<SearchWords> search_words(const std::string& text) {
  if (text.size() > kMaxSearchBytes)
    return bad_field("search", std::to_string(text.size()) + " bytes; limit 200",
                     "search for fewer words");
  SearchWords words;
  for (const auto& word : absl::StrSplit(absl::AsciiStrToLower(clean_text(text)),
                                         absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
    const bool without = word.size() > 1 && word.front() == '-';
    (without ? words.without : words.with).emplace_back(word.substr(without ? 1 : 0));
  }
  return words;
}

}  // namespace odt::api
