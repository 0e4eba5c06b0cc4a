#include "api/filter.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "api/errors.h"
#include "base/ids.h"

namespace odt::api {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::size_t kMaxTerms = 32;

std::string field_names(const Descriptor& resource) {
  std::vector<std::string> names;
  for (int i = 0; i < resource.field_count(); ++i) names.push_back(resource.field(i)->name());
  return absl::StrJoin(names, ", ");
}

// The path in the resource, with `spec` put in where the field is only there.
Result<std::vector<std::string>> resolve(const std::string& key, const Descriptor& resource) {
  std::vector<std::string> path = absl::StrSplit(key, '.');
  if (path.size() >= 2 && path[0] == "label" && resource.FindFieldByName("labels") != nullptr)
    return std::vector<std::string>{"labels", key.substr(6)};
  const auto* spec = resource.FindFieldByName("spec");
  if (resource.FindFieldByName(path[0]) == nullptr && spec != nullptr &&
      spec->message_type()->FindFieldByName(path[0]) != nullptr)
    path.insert(path.begin(), "spec");
  const Descriptor* at = &resource;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto* field = at == nullptr ? nullptr : at->FindFieldByName(path[i]);
    const bool last = i + 1 == path.size();
    if (field == nullptr || field->is_map() ||
        (last == (field->type() == FieldDescriptor::TYPE_MESSAGE)))
      return bad_field("filter", "no field '" + clean_text(key) + "'",
                       "fields: " + field_names(resource));
    at = field->message_type();
  }
  return path;
}

std::string printed(const Message& message, const Reflection& r, const FieldDescriptor& f,
                    int index) {
  const bool many = index >= 0;
  switch (f.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return std::to_string(many ? r.GetRepeatedInt32(message, &f, index)
                                 : r.GetInt32(message, &f));
    case FieldDescriptor::CPPTYPE_INT64:
      return std::to_string(many ? r.GetRepeatedInt64(message, &f, index)
                                 : r.GetInt64(message, &f));
    case FieldDescriptor::CPPTYPE_UINT32:
      return std::to_string(many ? r.GetRepeatedUInt32(message, &f, index)
                                 : r.GetUInt32(message, &f));
    case FieldDescriptor::CPPTYPE_UINT64:
      return std::to_string(many ? r.GetRepeatedUInt64(message, &f, index)
                                 : r.GetUInt64(message, &f));
    case FieldDescriptor::CPPTYPE_BOOL:
      return (many ? r.GetRepeatedBool(message, &f, index) : r.GetBool(message, &f)) ? "true"
                                                                                     : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return (many ? r.GetRepeatedEnum(message, &f, index) : r.GetEnum(message, &f))->name();
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string raw =
          many ? r.GetRepeatedString(message, &f, index) : r.GetString(message, &f);
      if (f.type() != FieldDescriptor::TYPE_BYTES) return raw;
      return to_hex(reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size());
    }
    default:
      return {};
  }
}

bool equal(const FieldDescriptor& f, const std::string& have, const std::string& want) {
  if (f.cpp_type() == FieldDescriptor::CPPTYPE_ENUM)
    return absl::EqualsIgnoreCase(have, want) || absl::EndsWithIgnoreCase(have, "_" + want);
  if (f.type() == FieldDescriptor::TYPE_BYTES) return absl::EqualsIgnoreCase(have, want);
  return have == want;
}

bool label_equals(const Message& resource, const FieldDescriptor& map, const std::string& key,
                  const std::string& want) {
  const auto& r = *resource.GetReflection();
  for (int i = 0; i < r.FieldSize(resource, &map); ++i) {
    const Message& entry = r.GetRepeatedMessage(resource, &map, i);
    const auto& er = *entry.GetReflection();
    if (er.GetString(entry, map.message_type()->map_key()) == key)
      return er.GetString(entry, map.message_type()->map_value()) == want;
  }
  return false;
}

bool holds(const Message& resource, const std::vector<std::string>& path, const std::string& want) {
  const Message* at = &resource;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const FieldDescriptor& field = *at->GetDescriptor()->FindFieldByName(path[i]);
    const Reflection& r = *at->GetReflection();
    if (field.is_map()) return label_equals(*at, field, path[i + 1], want);
    if (field.type() == FieldDescriptor::TYPE_MESSAGE) {
      at = &r.GetMessage(*at, &field);
      continue;
    }
    if (!field.is_repeated()) return equal(field, printed(*at, r, field, -1), want);
    for (int k = 0; k < r.FieldSize(*at, &field); ++k)
      if (equal(field, printed(*at, r, field, k), want)) return true;
    return false;
  }
  return false;
}

}  // namespace

Result<Filter> Filter::parse(std::string_view text, const Descriptor& resource) {
  Filter filter;
  if (text.empty()) return filter;
  const std::vector<std::string> terms = absl::StrSplit(std::string(text), ',');
  if (terms.size() > kMaxTerms)
    return bad_field("filter", std::to_string(terms.size()) + " terms; limit 32");
  for (const auto& raw : terms) {
    const std::string term(absl::StripAsciiWhitespace(raw));
    const auto split = term.find('=');
    if (split == std::string::npos || split == 0)
      return bad_field("filter", "'" + clean_text(term) + "' is not key=value or key!=value");
    Term parsed;
    parsed.exclude = term[split - 1] == '!';
    parsed.value = term.substr(split + 1);
    ODT_ASSIGN(parsed.path, resolve(term.substr(0, split - (parsed.exclude ? 1 : 0)), resource));
    filter.terms_.push_back(std::move(parsed));
  }
  return filter;
}

bool Filter::matches(const Message& resource) const {
  for (const auto& term : terms_)
    if (holds(resource, term.path, term.value) == term.exclude) return false;
  return true;
}

}  // namespace odt::api
