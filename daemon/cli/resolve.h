#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace odt::cli {

// A thing that a person may mean.
struct Candidate {
  std::string key;                   // raw bytes: id, hash, uid
  std::string name;                  // may be empty
  std::vector<std::string> aliases;  // other exact names
};

inline constexpr std::size_t kLeastPrefix = 6;

// Index of the one meant by `word`: its name or alias (of several with one name the first: lists
// give the newest first), its hex key, or a unique prefix of at least 6 hex digits; dashes of a
// UUID are ignored. `what`: "board", "run", ... Errors: NOT_FOUND with near names;
// INVALID_ARGUMENT: ambiguous (names the candidates).
Result<std::size_t> resolve(const std::string& what, const std::string& word,
                            const std::vector<Candidate>& candidates);

// Those that have the name: the one that `word` means first. Empty where it is no name.
std::vector<std::size_t> all_named(const std::string& word,
                                   const std::vector<Candidate>& candidates);
// "2 datasets are called 'wine': wine (1a2b3c), wine (4d5e6f)"
std::string several_text(const std::string& what, const std::string& word,
                         const std::vector<std::size_t>& found,
                         const std::vector<Candidate>& candidates);

// INVALID_ARGUMENT where several have the name `word`: for what must not take the newest unasked.
Status only_one_named(const std::string& what, const std::string& word,
                      const std::vector<Candidate>& candidates);

// Shortest prefix of at least 6 hex digits of `key` that no other key begins with.
std::string short_key(const std::string& key, const std::vector<std::string>& keys);

}  // namespace odt::cli
