#include "cli/resolve.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "cli/exit_code.h"
#include "cli/text.h"

namespace odt::cli {
namespace {

std::string as_hex_word(const std::string& word) {
  std::string out;
  for (char c : word) {
    if (c == '-') continue;
    out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return out.find_first_not_of("0123456789abcdef") == std::string::npos ? out : std::string();
}

std::string shown(const Candidate& candidate, const std::vector<std::string>& keys) {
  const std::string key = short_key(candidate.key, keys);
  return candidate.name.empty() ? key : clean(candidate.name) + " (" + key + ")";
}

// " a (1a2b3c), b (4d5e6f), ..."
std::string listed(const std::vector<std::size_t>& found,
                   const std::vector<Candidate>& candidates) {
  std::vector<std::string> keys;
  for (const Candidate& c : candidates) keys.push_back(c.key);
  std::string text;
  for (std::size_t k = 0; k < found.size() && k < 8; ++k)
    text += (k == 0 ? " " : ", ") + shown(candidates[found[k]], keys);
  return found.size() > 8 ? text + ", ..." : text;
}

Status unknown(const std::string& what, const std::string& word,
               const std::vector<Candidate>& candidates) {
  std::vector<std::string> names;
  for (const Candidate& c : candidates) {
    if (!c.name.empty()) names.push_back(c.name);
    names.insert(names.end(), c.aliases.begin(), c.aliases.end());
  }
  std::string text = absl::StrCat("no ", what, " '", clean(word), "'.", did_you_mean(word, names));
  if (candidates.empty()) text += absl::StrCat(" There is no ", what, " yet.");
  const std::string digits = as_hex_word(word);
  if (!digits.empty() && digits.size() < kLeastPrefix)
    text += absl::StrCat(" A prefix needs at least ", kLeastPrefix, " digits.");
  return absl::NotFoundError(text);
}

}  // namespace

std::string short_key(const std::string& key, const std::vector<std::string>& keys) {
  const std::string mine = hex(key);
  std::size_t length = kLeastPrefix;
  for (const std::string& other : keys) {
    if (other == key) continue;
    const std::string theirs = hex(other);
    const auto differs = std::mismatch(mine.begin(), mine.end(), theirs.begin(), theirs.end());
    length = std::max(length, static_cast<std::size_t>(differs.first - mine.begin()) + 1);
  }
  return mine.substr(0, length);
}

std::vector<std::size_t> all_named(const std::string& word,
                                   const std::vector<Candidate>& candidates) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (!word.empty() && candidates[i].name == word) found.push_back(i);
  return found;
}

std::string several_text(const std::string& what, const std::string& word,
                         const std::vector<std::size_t>& found,
                         const std::vector<Candidate>& candidates) {
  return absl::StrCat(found.size(), " ", what, "s are called '", clean(word),
                      "':", listed(found, candidates));
}

Status only_one_named(const std::string& what, const std::string& word,
                      const std::vector<Candidate>& candidates) {
  const auto found = all_named(word, candidates);
  if (found.size() < 2) return {};
  return with_exit(absl::InvalidArgumentError(several_text(what, word, found, candidates) +
                                              ", the newest first; give the digits of one"),
                   kExitUsage);
}

Result<std::size_t> resolve(const std::string& what, const std::string& word,
                            const std::vector<Candidate>& candidates) {
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& c = candidates[i];
    if ((!word.empty() && c.name == word) ||
        std::find(c.aliases.begin(), c.aliases.end(), word) != c.aliases.end())
      return i;
  }
  const std::string digits = as_hex_word(word);
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < candidates.size() && digits.size() >= kLeastPrefix; ++i) {
    const std::string key = hex(candidates[i].key);
    if (key == digits) return i;
    if (key.starts_with(digits)) found.push_back(i);
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) return unknown(what, word, candidates);
  const std::string text = absl::StrCat("'", clean(word), "' is the beginning of ", found.size(),
                                        " ", what, "s:", listed(found, candidates));
  return with_exit(absl::InvalidArgumentError(text + "; give more digits"), kExitUsage);
}

}  // namespace odt::cli
