#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace odt::data {

constexpr std::size_t kMaxSensors = 64;

// One file of Edge Impulse's data acquisition format: its payload object.
struct EdgeImpulseClip {
  double interval_ms = 0;
  std::vector<std::string> sensors, units;  // printable
  std::vector<float> values;                // [steps][sensors]; NaN: null in the file
  std::size_t steps() const { return values.size() / sensors.size(); }
};

// JSON, or CBOR where cbor is set. payload.values: [[a, b, ..], ..], or [a, ..] of one sensor.
// Signatures are not checked. Errors: INVALID_ARGUMENT with `name` (not JSON, a field missing or
// out of range, a step with another number of values, a value that is no number, limits).
Result<EdgeImpulseClip> read_edge_impulse(std::string_view bytes, bool cbor,
                                          const std::string& name);

}  // namespace odt::data
