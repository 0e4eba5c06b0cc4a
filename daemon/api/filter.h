#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace google::protobuf {
class Descriptor;
class Message;
}  // namespace google::protobuf

namespace odt::api {

// The filter of a List: "key=value" terms joined by ',', "key!=value" excludes; all must hold. Keys
// are field names of the resource ("state", "spec.name"; fields of `spec` also without it), or
// "label.<name>". Values: text, decimal numbers, true/false, hex for bytes, enum names with or
// without their prefix, any case. A repeated field holds where one element equals.
class Filter {
 public:
  // INVALID_ARGUMENT: no '=' in a term, or no such field (names those there are).
  static Result<Filter> parse(std::string_view text, const google::protobuf::Descriptor& resource);
  bool empty() const { return terms_.empty(); }
  bool matches(const google::protobuf::Message& resource) const;

 private:
  struct Term {
    std::vector<std::string> path;
    std::string value;
    bool exclude = false;
  };
  std::vector<Term> terms_;
};

}  // namespace odt::api
