#include "base/label_query.h"

namespace odt {
namespace {

constexpr std::size_t kMaxTerm = 128;
constexpr std::string_view kLabel = "label.";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Status bad(std::string_view term, const char* why) {
  return with_reason(
      absl::InvalidArgumentError("boards: '" + std::string(term.substr(0, kMaxTerm)) + "' " + why),
      "BAD_QUERY", "Terms joined by ',': site=lab, site!=lab, broken, !broken.");
}

}  // namespace

Result<LabelQuery> LabelQuery::parse(std::string_view text) {
  LabelQuery query;
  query.all_ = trimmed(text) == "*";
  if (trimmed(text).empty() || query.all_) return query;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view term = trimmed(text.substr(0, comma));
    if (term.empty()) return bad(text, "has an empty term");
    if (term.size() > kMaxTerm) return bad(term, "is longer than 128 characters");
    Term out;
    const std::size_t equals = term.find('=');
    if (equals == std::string_view::npos) {
      out.presence = true;
      out.exclude = term.front() == '!';
      if (out.exclude) term = trimmed(term.substr(1));
      out.key = term;
    } else {
      out.exclude = equals > 0 && term[equals - 1] == '!';
      out.key = trimmed(term.substr(0, equals - (out.exclude ? 1 : 0)));
      out.value = trimmed(term.substr(equals + 1));
      if (out.key.starts_with('!')) return bad(term, "mixes '!' and '='");
    }
    if (out.key.empty() || out.key == kLabel) return bad(term, "has no key");
    query.terms_.push_back(std::move(out));
    if (comma == std::string_view::npos) return query;
    text.remove_prefix(comma + 1);
  }
}

bool LabelQuery::matches(const std::map<std::string, std::string>& labels,
                         const std::map<std::string, std::string>& fields) const {
  for (const Term& term : terms_) {
    std::string key = term.key;
    const std::string* value = nullptr;
    if (key.starts_with(kLabel)) {
      key.erase(0, kLabel.size());
    } else if (const auto it = fields.find(key); it != fields.end()) {
      value = &it->second;
    }
    if (value == nullptr)
      if (const auto it = labels.find(key); it != labels.end()) value = &it->second;
    const bool holds = value != nullptr && (term.presence || *value == term.value);
    if (holds == term.exclude) return false;
  }
  return true;
}

}  // namespace odt
