// Edge Impulse recordings are hostile bytes. First byte: JSON or CBOR. What is accepted is whole
// steps of finite or missing values.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "data/edge_impulse.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view file(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto clip = odt::data::read_edge_impulse(file, (data[0] & 1) != 0, "fuzz.json");
  if (!clip.ok()) {
    require(clip.status().message().size() < 400);
    require(clip.status().message().find('\n') == std::string_view::npos);
    return 0;
  }
  require(clip->interval_ms > 0 && !clip->sensors.empty());
  require(clip->sensors.size() <= odt::data::kMaxSensors);
  require(clip->units.size() == clip->sensors.size());
  require(clip->steps() > 0 && clip->values.size() == clip->steps() * clip->sensors.size());
  for (const float v : clip->values) require(!std::isinf(v));
  return 0;
}
