#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"

// Domain types of the daemon: plain values, no protobuf, no SQL. Field meanings, units and ranges
// are those of the messages of the same name in proto/odt/api/v1/types.proto; only what differs is
// said here.
namespace odt::model {

struct Meta {
  GatewayId gateway_id;
  std::string created_by;
  std::int64_t create_time_us = 0;
  std::int64_t etag = 0;  // event_seq of the last change
};

enum class LossKind : std::uint8_t { kUnspecified = 0, kMse = 1, kCe = 2 };

struct Loss {
  std::int64_t sum = 0;
  std::int8_t exp2 = 0;
  std::uint32_t count = 0;
  LossKind kind = LossKind::kUnspecified;
  bool operator==(const Loss&) const = default;
};

struct Accuracy {
  std::uint32_t correct = 0;
  std::uint32_t total = 0;
  bool operator==(const Accuracy&) const = default;
};

// ODTM: what a model learns.
enum class Task : std::uint8_t { kClassify = 0, kRegress = 1, kAutoencode = 2 };

// What a model gives. Scales: target = output / scale + offset, one for each output or one for all;
// empty: not known.
struct Outputs {
  Task task = Task::kClassify;
  std::uint32_t count = 0;  // classes, or values
  std::vector<float> offset, scale;
  bool has_classes() const { return task == Task::kClassify; }
  bool operator==(const Outputs&) const = default;
};

// Values that stand in place of a sample's label; 0: its label stands there. An autoencoder's are
// its inputs, which frozen outputs do not have.
constexpr std::uint32_t target_count(const Outputs& o, bool frozen = false) {
  const bool targets = o.task == Task::kRegress || (frozen && o.task == Task::kAutoencode);
  return targets ? o.count : 0;
}

struct Reason {
  std::string code;
  std::string text;
  std::string remedy;
  bool operator==(const Reason&) const = default;
};

}  // namespace odt::model
