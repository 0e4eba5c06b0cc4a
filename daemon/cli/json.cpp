#include "cli/json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/text.h"

namespace odt::cli {
namespace {

namespace pb = google::protobuf;
using Json = nlohmann::ordered_json;

// Longest prefix, up to an underscore, that all values of the enum share.
std::string enum_prefix(const pb::EnumDescriptor& type) {
  std::string prefix = type.value(0)->name();
  for (int i = 1; i < type.value_count(); ++i) {
    const std::string& name = type.value(i)->name();
    const auto end = std::mismatch(prefix.begin(), prefix.end(), name.begin(), name.end()).first;
    prefix.erase(end, prefix.end());
  }
  prefix.erase(prefix.find_last_of('_') + 1);
  return prefix;
}

std::string enum_name(const pb::EnumDescriptor& type, int number) {
  const pb::EnumValueDescriptor* value = type.FindValueByNumber(number);
  if (value == nullptr) return std::to_string(number);
  return without_prefix(value->name(), enum_prefix(type));
}

// One value: of a repeated field at `index`, of a single one where index is -1.
class Value {
 public:
  Value(const pb::Message& message, const pb::FieldDescriptor& field, int index)
      : m_(message), r_(*message.GetReflection()), f_(&field), i_(index) {}

  Json json() const {
    using F = pb::FieldDescriptor;
    const bool one = i_ < 0;
    switch (f_->cpp_type()) {
      case F::CPPTYPE_INT32:
        return one ? r_.GetInt32(m_, f_) : r_.GetRepeatedInt32(m_, f_, i_);
      case F::CPPTYPE_INT64:
        return one ? r_.GetInt64(m_, f_) : r_.GetRepeatedInt64(m_, f_, i_);
      case F::CPPTYPE_UINT32:
        return one ? r_.GetUInt32(m_, f_) : r_.GetRepeatedUInt32(m_, f_, i_);
      case F::CPPTYPE_UINT64:
        return one ? r_.GetUInt64(m_, f_) : r_.GetRepeatedUInt64(m_, f_, i_);
      case F::CPPTYPE_BOOL:
        return one ? r_.GetBool(m_, f_) : r_.GetRepeatedBool(m_, f_, i_);
      case F::CPPTYPE_DOUBLE:
        return one ? r_.GetDouble(m_, f_) : r_.GetRepeatedDouble(m_, f_, i_);
      case F::CPPTYPE_FLOAT:
        return one ? r_.GetFloat(m_, f_) : r_.GetRepeatedFloat(m_, f_, i_);
      case F::CPPTYPE_ENUM:
        return enum_name(*f_->enum_type(),
                         one ? r_.GetEnumValue(m_, f_) : r_.GetRepeatedEnumValue(m_, f_, i_));
      case F::CPPTYPE_STRING: {
        const std::string text = one ? r_.GetString(m_, f_) : r_.GetRepeatedString(m_, f_, i_);
        return f_->type() == F::TYPE_BYTES ? hex(text) : clean(text);
      }
      case F::CPPTYPE_MESSAGE:
        return to_json(one ? r_.GetMessage(m_, f_) : r_.GetRepeatedMessage(m_, f_, i_));
    }
    return nullptr;
  }

 private:
  const pb::Message& m_;
  const pb::Reflection& r_;
  const pb::FieldDescriptor* f_;
  int i_;
};

Json map_json(const pb::Message& message, const pb::FieldDescriptor& field) {
  std::map<std::string, Json> sorted;  // the order in a message is arbitrary
  const pb::Reflection& r = *message.GetReflection();
  for (int i = 0; i < r.FieldSize(message, &field); ++i) {
    const pb::Message& entry = r.GetRepeatedMessage(message, &field, i);
    const Json key = Value(entry, *field.message_type()->map_key(), -1).json();
    sorted[key.is_string() ? key.get<std::string>() : key.dump()] =
        Value(entry, *field.message_type()->map_value(), -1).json();
  }
  Json out = Json::object();
  for (auto& [key, value] : sorted) out[key] = std::move(value);
  return out;
}

}  // namespace

Json to_json(const pb::Message& message) {
  Json out = Json::object();
  const pb::Reflection& r = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const pb::FieldDescriptor& field = *message.GetDescriptor()->field(i);
    Json& value = out[field.name()];
    if (field.is_map()) {
      value = map_json(message, field);
    } else if (field.is_repeated()) {
      value = Json::array();
      for (int k = 0; k < r.FieldSize(message, &field); ++k)
        value.push_back(Value(message, field, k).json());
    } else if (field.has_presence() && !r.HasField(message, &field)) {
      if (field.real_containing_oneof() != nullptr)
        out.erase(field.name());  // of a oneof only the member that is set
      else
        value = nullptr;
    } else {
      value = Value(message, field, -1).json();
    }
  }
  return out;
}

}  // namespace odt::cli
