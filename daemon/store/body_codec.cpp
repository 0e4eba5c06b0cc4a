#include "store/body_codec.h"

#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "store/access_fields.h"
#include "store/alert_fields.h"
#include "store/body_fields.h"
#include "store/campaign_fields.h"
#include "store/lab_fields.h"

namespace odt::store {
namespace {

using Json = nlohmann::json;

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <typename T>
struct IsFixedId : std::false_type {};
template <typename Tag, std::size_t N>
struct IsFixedId<FixedId<Tag, N>> : std::true_type {};

// Integers, strings, ids and lists whose value is zero or empty are left out: all of them default
// to that. Enums and flags may have another default, so they are always written.
class Writer {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) {
    if constexpr (std::is_enum_v<T>) {
      json[name] = static_cast<int>(value);
    } else if constexpr (std::is_same_v<T, bool>) {
      json[name] = value;
    } else if constexpr (std::is_integral_v<T>) {
      if (value != 0) json[name] = value;
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!value.empty()) json[name] = value;
    } else if constexpr (IsFixedId<T>::value) {
      if (!value.is_zero()) json[name] = value.hex();
    } else if constexpr (std::is_same_v<T, BoardUid>) {
      if (!value.empty()) json[name] = value.hex();
    } else if constexpr (std::is_same_v<T, Bytes>) {
      if (!value.empty()) json[name] = to_hex(value.data(), value.size());
    } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
      if (!value.empty()) json[name] = value;
    } else if constexpr (IsOptional<T>::value) {
      if (!value) return;
      if constexpr (std::is_class_v<typename T::value_type>)
        json[name] = object(*value);
      else
        json[name] = *value;
    } else if constexpr (IsVector<T>::value) {
      if (!value.empty()) json[name] = list(value);
    } else {
      json[name] = object(value);
    }
  }
  template <typename T>
  static Json object(const T& value) {
    Writer writer;
    // The description of fields is one for both directions; a writer does not change them.
    fields(writer, const_cast<T&>(value));
    return std::move(writer.json);
  }
  template <typename T>
  static Json list(const std::vector<T>& values) {
    Json out = Json::array();
    for (const T& value : values) {
      if constexpr (std::is_integral_v<T> || std::is_same_v<T, std::string>)
        out.push_back(value);
      else if constexpr (std::is_same_v<T, float>)
        out.push_back(std::bit_cast<std::uint32_t>(value));  // exactly, and no floats in the store
      else if constexpr (IsFixedId<T>::value || std::is_same_v<T, BoardUid>)
        out.push_back(value.hex());
      else
        out.push_back(object(value));
    }
    return out;
  }

  Json json = Json::object();
};

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    const auto it = json_.find(name);
    if (it != json_.end() && !read(*it, value)) ok = false;
  }

  bool ok = true;

 private:
  template <typename T>
  static bool read_integer(const Json& json, T& value) {
    if (!json.is_number_integer()) return false;
    if (json.is_number_unsigned()) {
      const auto v = json.get<std::uint64_t>();
      if (v > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return false;
      value = static_cast<T>(v);
      return true;
    }
    const auto v = json.get<std::int64_t>();
    if (std::is_unsigned_v<T> || v < static_cast<std::int64_t>(std::numeric_limits<T>::min()))
      return false;
    value = static_cast<T>(v);
    return true;
  }
  static bool read_string(const Json& json, std::string& value) {
    if (!json.is_string()) return false;
    value = json.get<std::string>();
    return true;
  }
  static bool read_hex(const Json& json, std::string& raw) {
    if (!json.is_string()) return false;
    const auto bytes = from_hex(json.get<std::string>());
    if (!bytes.ok()) return false;
    raw.assign(bytes->begin(), bytes->end());
    return true;
  }
  template <typename T>
  static bool read_list(const Json& json, std::vector<T>& values) {
    if (!json.is_array()) return false;
    values.clear();
    for (const Json& item : json)
      if (!read(item, values.emplace_back())) return false;
    return true;
  }
  static bool read_map(const Json& json, std::map<std::string, std::string>& values) {
    if (!json.is_object()) return false;
    values.clear();
    for (const auto& [key, item] : json.items())
      if (!read_string(item, values[key])) return false;
    return true;
  }
  template <typename T>
  static bool read_id(const Json& json, T& value) {
    std::string raw;
    if (!read_hex(json, raw)) return false;
    auto id = T::from_bytes(raw);
    if (id.ok()) value = *id;
    return id.ok();
  }

  template <typename T>
  static bool read(const Json& json, T& value) {
    if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> number{};
      if (!read_integer(json, number)) return false;
      value = static_cast<T>(number);
      return true;
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) return false;
      value = json.get<bool>();
      return true;
    } else if constexpr (std::is_integral_v<T>) {
      return read_integer(json, value);
    } else if constexpr (std::is_same_v<T, float>) {
      std::uint32_t bits = 0;
      if (!read_integer(json, bits)) return false;
      value = std::bit_cast<float>(bits);
      return true;
    } else if constexpr (std::is_same_v<T, std::string>) {
      return read_string(json, value);
    } else if constexpr (IsFixedId<T>::value || std::is_same_v<T, BoardUid>) {
      return read_id(json, value);
    } else if constexpr (std::is_same_v<T, Bytes>) {
      std::string raw;
      if (!read_hex(json, raw)) return false;
      value.assign(raw.begin(), raw.end());
      return true;
    } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
      return read_map(json, value);
    } else if constexpr (IsOptional<T>::value) {
      return read(json, value.emplace());
    } else if constexpr (IsVector<T>::value) {
      return read_list(json, value);
    } else {
      if (!json.is_object()) return false;
      Reader reader(json);
      fields(reader, value);
      return reader.ok;
    }
  }

  const Json& json_;
};

}  // namespace

template <typename T>
std::string to_body(const T& value) {
  // Text of boards need not be UTF-8; what is not becomes U+FFFD.
  return Writer::object(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename T>
Result<T> from_body(std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object())
    return absl::DataLossError("control.db: a body of " + std::to_string(body.size()) +
                               " bytes is not a JSON object");
  T value;
  Reader reader(json);
  fields(reader, value);
  if (!reader.ok)
    return absl::DataLossError("control.db: a body has a field of the wrong type: " +
                               std::string(body.substr(0, 200)));
  return value;
}

#define ODT_STORE_BODY(T)                       \
  template std::string to_body(const T& value); \
  template Result<T> from_body(std::string_view body);
ODT_STORE_BODY(model::Board)
ODT_STORE_BODY(model::Port)
ODT_STORE_BODY(model::Model)
ODT_STORE_BODY(model::Dataset)
ODT_STORE_BODY(model::DerivedSamples)
ODT_STORE_BODY(model::Snapshot)
ODT_STORE_BODY(model::Evaluation)
ODT_STORE_BODY(model::Job)
ODT_STORE_BODY(model::Upload)
ODT_STORE_BODY(model::Run)
ODT_STORE_BODY(model::RunEvent)
ODT_STORE_BODY(model::EpochResult)
ODT_STORE_BODY(model::Warning)
ODT_STORE_BODY(model::BoardCommand)
ODT_STORE_BODY(TrashRecord)
ODT_STORE_BODY(model::Campaign)
ODT_STORE_BODY(model::CampaignEvent)
ODT_STORE_BODY(model::CampaignUnit)
ODT_STORE_BODY(model::CampaignRound)
ODT_STORE_BODY(model::Alert)
ODT_STORE_BODY(model::AlertSettings)
ODT_STORE_BODY(model::Setting)
ODT_STORE_BODY(model::LabEvent)
ODT_STORE_BODY(model::Credential)
ODT_STORE_BODY(model::AuditEntry)
#undef ODT_STORE_BODY

}  // namespace odt::store
