#include "api/lists.h"

#include <absl/strings/numbers.h>

namespace odt::api {

std::string list_token(std::size_t skip, const std::string& store_token) {
  return std::to_string(skip) + "." + store_token;
}

Result<ListParams> list_params(std::uint32_t page_size, const std::string& token,
                               const std::string& filter,
                               const google::protobuf::Descriptor& resource) {
  ListParams params;
  if (page_size > 1000)
    return bad_field("page_size", std::to_string(page_size) + "; limit 1000",
                     "ask for less and follow next_page_token");
  if (page_size != 0) params.page_size = page_size;
  if (!token.empty()) {
    const auto dot = token.find('.');
    if (dot == std::string::npos || !absl::SimpleAtoi(token.substr(0, dot), &params.skip))
      return bad_field("page_token", "not a token of this list",
                       "pass next_page_token as it was given, or nothing");
    params.store_token = token.substr(dot + 1);
  }
  ODT_ASSIGN(params.filter, Filter::parse(filter, resource));
  return params;
}

}  // namespace odt::api
