#pragma once

#include <string>

#include "api/errors.h"

// Checks that the ways in share. For the *_parse.cpp and *_convert.cpp files.
namespace odt::api {

template <typename Enum, typename ProtoEnum>
Result<Enum> enum_field(ProtoEnum value, bool valid, const std::string& field) {
  if (!valid) return bad_field(field, "unknown value " + std::to_string(static_cast<int>(value)));
  return static_cast<Enum>(value);
}

template <typename T>
Status in_range(T value, T low, T high, const std::string& field) {
  if (value >= low && value <= high) return absl::OkStatus();
  return bad_field(field, std::to_string(value) + "; allowed " + std::to_string(low) + " to " +
                              std::to_string(high));
}

}  // namespace odt::api
