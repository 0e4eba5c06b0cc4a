#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace odt::data {

// A sensor shift of u8 images.
struct Transform {
  enum class Kind : std::uint8_t { kNone, kInversion, kRot90, kFlip, kGain };
  Kind kind = Kind::kNone;
  double gain = 1, bias = 0;  // kGain: clip(round(gain * x + bias), 0, 255)
  bool operator==(const Transform&) const = default;
};

// "none" or "", "inversion", "rot90" (clockwise), "flip" (left-right), "gain:A,B". Errors:
// INVALID_ARGUMENT with the list of what is known.
Result<Transform> parse_transform(const std::string& text);

// One image [h, w]; rot90 gives [w, h].
std::vector<std::uint8_t> apply_transform(const Transform& t, const std::uint8_t* image,
                                          std::uint32_t h, std::uint32_t w);

// Area average, half up: every source pixel counts by the area it covers, in exact integers.
std::vector<std::uint8_t> resize_area(const std::uint8_t* image, std::uint32_t h, std::uint32_t w,
                                      std::uint32_t out_h, std::uint32_t out_w);

}  // namespace odt::data
