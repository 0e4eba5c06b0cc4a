#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace odt {

// A cohort: terms joined by ',', all of which must hold. "site=lab", "site!=lab" (also holds where
// there is no such label), "broken" (has the label), "!broken" (has it not); or "*": all. Blanks
// around terms and values are ignored.
class LabelQuery {
 public:
  // INVALID_ARGUMENT naming the term: empty, without a key, longer than 128 characters.
  static Result<LabelQuery> parse(std::string_view text);
  // Fields (name, place, type, core, status) are looked up before labels; "label.site" is always a
  // label.
  bool matches(const std::map<std::string, std::string>& labels,
               const std::map<std::string, std::string>& fields = {}) const;
  bool empty() const { return terms_.empty() && !all_; }

 private:
  struct Term {
    std::string key, value;
    bool exclude = false, presence = false;
  };
  std::vector<Term> terms_;
  bool all_ = false;
};

}  // namespace odt
