#include "api/request_text.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <set>
#include <vector>

#include "api/errors.h"
#include "base/ids.h"

namespace odt::api {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr std::size_t kMostText = 400, kMostValue = 80, kMostBytes = 32;
constexpr int kMostRepeated = 8, kMostDepth = 3;

bool is_secret(const std::string& name) {
  static const std::set<std::string> kSecret = {"code",  "secret", "password",
                                                "token", "psk",    "key_pem"};
  return kSecret.contains(name);
}

std::string text_of_bytes(const std::string& raw) {
  if (raw.size() > kMostBytes) return absl::StrCat("(", raw.size(), " bytes)");
  return to_hex(reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size());
}

std::string text_of(const std::string& value) {
  std::string text = clean_text(value.substr(0, kMostValue));
  return value.size() > kMostValue ? text + "..." : text;
}

void append_fields(const Message& message, const std::string& prefix, int depth, std::string& out);

// One value; index < 0: of a field that is not repeated.
std::string value_of(const Message& m, const FieldDescriptor& f, int index) {
  const auto& r = *m.GetReflection();
  const bool many = index >= 0;
  switch (f.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string raw = many ? r.GetRepeatedString(m, &f, index) : r.GetString(m, &f);
      return f.type() == FieldDescriptor::TYPE_BYTES ? text_of_bytes(raw) : text_of(raw);
    }
    case FieldDescriptor::CPPTYPE_ENUM:
      return (many ? r.GetRepeatedEnum(m, &f, index) : r.GetEnum(m, &f))->name();
    case FieldDescriptor::CPPTYPE_BOOL:
      return (many ? r.GetRepeatedBool(m, &f, index) : r.GetBool(m, &f)) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(many ? r.GetRepeatedInt32(m, &f, index) : r.GetInt32(m, &f));
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(many ? r.GetRepeatedInt64(m, &f, index) : r.GetInt64(m, &f));
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(many ? r.GetRepeatedUInt32(m, &f, index) : r.GetUInt32(m, &f));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(many ? r.GetRepeatedUInt64(m, &f, index) : r.GetUInt64(m, &f));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return absl::StrCat(many ? r.GetRepeatedDouble(m, &f, index) : r.GetDouble(m, &f));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return absl::StrCat(many ? r.GetRepeatedFloat(m, &f, index) : r.GetFloat(m, &f));
    default:
      return {};
  }
}

void append_field(const Message& m, const FieldDescriptor& f, const std::string& prefix, int depth,
                  std::string& out) {
  const auto& r = *m.GetReflection();
  const std::string name = prefix + f.name();
  if (is_secret(f.name())) {
    absl::StrAppend(&out, name, "=(secret) ");
    return;
  }
  const bool message = f.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (!f.is_repeated()) {
    if (message)
      append_fields(r.GetMessage(m, &f), name + ".", depth + 1, out);
    else
      absl::StrAppend(&out, name, "=", value_of(m, f, -1), " ");
    return;
  }
  const int size = r.FieldSize(m, &f);
  if (message || size > kMostRepeated) {
    absl::StrAppend(&out, name, "=(", size, " of them) ");
    return;
  }
  for (int i = 0; i < size; ++i)
    absl::StrAppend(&out, i == 0 ? name + "=" : ",", value_of(m, f, i));
  out += ' ';
}

void append_fields(const Message& message, const std::string& prefix, int depth, std::string& out) {
  if (depth > kMostDepth) return;
  std::vector<const FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  for (const auto* field : set) {
    if (out.size() > kMostText) return;
    if (field->name() != "request_id") append_field(message, *field, prefix, depth, out);
  }
}

}  // namespace

std::string request_text(const Message& request) {
  std::string out;
  append_fields(request, "", 0, out);
  if (!out.empty() && out.back() == ' ') out.pop_back();
  if (out.size() <= kMostText) return out;
  return clean_text(out.substr(0, kMostText)) + "...";
}

}  // namespace odt::api
