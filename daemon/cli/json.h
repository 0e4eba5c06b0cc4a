#pragma once

#include <nlohmann/json_fwd.hpp>

namespace google::protobuf {
class Message;
}

namespace odt::cli {

// Stable JSON of an API message: field names as in the .proto, every field present, bytes as lower
// hex, 64-bit numbers as numbers, enums by name without their prefix, an absent message as null.
nlohmann::ordered_json to_json(const google::protobuf::Message& message);

}  // namespace odt::cli
