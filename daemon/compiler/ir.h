#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// A model between its two outer forms, ONNX and model image: layers in the order of the data, every
// constant as the file has it. Shapes are per sample.
namespace odt::compiler {

using Shape = std::vector<std::uint32_t>;  // [N] or [C,H,W]
std::uint64_t count_of(const Shape& shape);

// y = clip(floor((x + offset) * mult * 2^-k), lo, hi), applied by the host (data/quantize.h).
struct Prequant {
  std::string name;
  std::vector<float> offset;       // [1], [channels] or [values]
  std::vector<std::int16_t> mult;  // same length; may be negative
  std::vector<std::uint8_t> k;     // same length, 0..31
  std::int32_t clip_lo = -128, clip_hi = 127;
};

enum class LayerKind : std::uint8_t { kConv, kLinear, kFlatten };

struct ConvGeometry {
  std::uint16_t k_h = 1, k_w = 1, stride_h = 1, stride_w = 1;
  std::uint16_t pad_t = 0, pad_l = 0, pad_b = 0, pad_r = 0;
  std::uint16_t dil_h = 1, dil_w = 1, groups = 1;
};

// y = clip(floor((acc + offset) * mult * 2^-k), lo, hi); Relu is folded into the clip.
struct Layer {
  LayerKind kind = LayerKind::kLinear;
  std::string name;  // of the source node
  bool relu = false;
  bool trainable = false;
  std::int32_t clip_lo = 0, clip_hi = 0;
  Shape weight_shape;                // conv [O,I/g,kH,kW], linear [in,out]
  std::vector<std::int8_t> weights;  // in that order
  std::vector<std::int32_t> offset;  // [outputs], accumulator units, rounding folded in
  std::vector<std::uint8_t> mult;    // [outputs], 1..255
  std::vector<std::uint8_t> k;       // [outputs], 0..31
  ConvGeometry conv;
  Shape in_shape, out_shape;

  std::uint32_t n_out() const { return static_cast<std::uint32_t>(offset.size()); }
  bool is_compute() const { return kind != LayerKind::kFlatten; }
};

// What training needs beside the graph; travels in our ONNX files as metadata (keys "odt.*").
struct Calibration {
  std::uint16_t ce_scale = 0;  // Q8; 0: no cross-entropy
  std::vector<std::int8_t> target_correct, target_wrong;
  std::uint32_t src_correct = 0, src_total = 0;  // total 0: unknown
};

enum class Storage : std::uint8_t { kS8 = 1, kU8 = 2, kS16 = 3 };
// Rule 1.2: u8 if 0 <= lo and hi <= 255, s8 if within -128..127, else s16.
Storage storage_of(std::int32_t clip_lo, std::int32_t clip_hi);

struct Network {
  std::string name;
  Shape input_shape;                     // of the ONNX input, per sample
  Storage input_storage = Storage::kS8;  // of what the board receives
  std::optional<Prequant> prequant;
  std::vector<Layer> layers;  // a leading flatten is dropped: it changes no byte
  Calibration calibration;
  std::vector<std::string> warnings;

  std::uint32_t n_classes() const { return layers.back().out_shape[0]; }
};

// Text from a file, for errors and terminals: printable ASCII, at most 64 characters.
std::string shown(const std::string& text);

}  // namespace odt::compiler
