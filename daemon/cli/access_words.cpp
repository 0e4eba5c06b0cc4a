#include "cli/access_words.h"

#include <cctype>

#include "cli/text.h"
#include "odt/api/v1/access.pb.h"

namespace odt::cli {

namespace v1 = api::v1;

std::string lower_word(std::string text) {
  for (char& c : text)
    c = c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string role_word(v1::Role role) {
  if (role == v1::ROLE_UNSPECIFIED) return "none";
  return lower_word(without_prefix(v1::Role_Name(role), "ROLE_"));
}

Result<v1::Role> parse_role_word(const std::string& word) {
  for (const v1::Role role : {v1::ROLE_VIEWER, v1::ROLE_OPERATOR, v1::ROLE_ADMIN})
    if (role_word(role) == word) return role;
  return absl::InvalidArgumentError("role '" + clean(word) +
                                    "' is not one of viewer, operator, admin");
}

std::string expiry_text(std::int64_t expire_time_us) {
  return expire_time_us == 0 ? std::string("never expires") : "until " + date_text(expire_time_us);
}

}  // namespace odt::cli
