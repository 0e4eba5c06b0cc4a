#include "data/image_ops.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>

namespace odt::data {

Result<Transform> parse_transform(const std::string& text) {
  using Kind = Transform::Kind;
  if (text.empty() || text == "none") return Transform{};
  if (text == "inversion") return Transform{Kind::kInversion};
  if (text == "rot90") return Transform{Kind::kRot90};
  if (text == "flip") return Transform{Kind::kFlip};
  if (text.substr(0, 5) == "gain:") {
    const std::vector<std::string> parts = absl::StrSplit(text.substr(5), ',');
    Transform t{Kind::kGain};
    if (parts.size() == 2 && absl::SimpleAtod(parts[0], &t.gain) &&
        absl::SimpleAtod(parts[1], &t.bias) && std::abs(t.gain) <= 1000 &&
        std::abs(t.bias) <= 100000)
      return t;
  }
  return absl::InvalidArgumentError(absl::StrCat("transform '", text,
                                                 "' is not known; use none, inversion, rot90, "
                                                 "flip or gain:A,B (A * x + B), e.g. gain:0.4,60"));
}

std::vector<std::uint8_t> apply_transform(const Transform& t, const std::uint8_t* image,
                                          std::uint32_t h, std::uint32_t w) {
  std::vector<std::uint8_t> out(image, image + std::size_t{h} * w);
  switch (t.kind) {
    case Transform::Kind::kNone:
      break;
    case Transform::Kind::kInversion:
      for (auto& v : out) v = static_cast<std::uint8_t>(255 - v);
      break;
    case Transform::Kind::kRot90:
      for (std::uint32_t y = 0; y < h; ++y)
        for (std::uint32_t x = 0; x < w; ++x)
          out[std::size_t{x} * h + (h - 1 - y)] = image[std::size_t{y} * w + x];
      break;
    case Transform::Kind::kFlip:
      for (std::uint32_t y = 0; y < h; ++y)
        std::reverse(out.begin() + std::size_t{y} * w, out.begin() + std::size_t{y + 1} * w);
      break;
    case Transform::Kind::kGain:
      for (auto& v : out)
        v = static_cast<std::uint8_t>(
            std::clamp(std::floor(t.gain * v + t.bias + 0.5), 0.0, 255.0));
      break;
  }
  return out;
}

namespace {

// Overlap of source cell i and output cell j on a line of src * out units.
std::uint64_t overlap(std::uint32_t i, std::uint32_t j, std::uint32_t src, std::uint32_t out) {
  const std::uint64_t lo = std::max(std::uint64_t{i} * out, std::uint64_t{j} * src);
  const std::uint64_t hi = std::min(std::uint64_t{i + 1} * out, std::uint64_t{j + 1} * src);
  return hi > lo ? hi - lo : 0;
}

}  // namespace

std::vector<std::uint8_t> resize_area(const std::uint8_t* image, std::uint32_t h, std::uint32_t w,
                                      std::uint32_t out_h, std::uint32_t out_w) {
  std::vector<std::uint8_t> out(std::size_t{out_h} * out_w);
  const std::uint64_t area = std::uint64_t{h} * w;
  for (std::uint32_t oy = 0; oy < out_h; ++oy)
    for (std::uint32_t ox = 0; ox < out_w; ++ox) {
      std::uint64_t sum = 0;
      const std::uint64_t last_y = (std::uint64_t{oy + 1} * h - 1) / out_h;
      const std::uint64_t last_x = (std::uint64_t{ox + 1} * w - 1) / out_w;
      for (auto y = static_cast<std::uint32_t>(std::uint64_t{oy} * h / out_h); y <= last_y; ++y)
        for (auto x = static_cast<std::uint32_t>(std::uint64_t{ox} * w / out_w); x <= last_x; ++x)
          sum +=
              overlap(y, oy, h, out_h) * overlap(x, ox, w, out_w) * image[std::size_t{y} * w + x];
      out[std::size_t{oy} * out_w + ox] = static_cast<std::uint8_t>((sum + area / 2) / area);
    }
  return out;
}

}  // namespace odt::data
