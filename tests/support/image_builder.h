// Model images (ODTM v1) and sample blobs (ODTS v1) from plain descriptions, for tests.
// Writes proto/README.md's layouts; checks nothing, so that bad images can be built too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace odt::testing {

enum class DType : uint8_t { kS8 = 1, kU8 = 2, kS16 = 3 };
enum class OpKind : uint8_t { kPrequant = 1, kConv2d = 2, kLinear = 3, kFlatten = 4 };

struct LayerSpec {
  OpKind kind = OpKind::kLinear;
  bool relu = false;
  bool trainable = false;
  int32_t clip_lo = -128, clip_hi = 127;
  // Outputs of a dense layer, filters of a convolution, channels of PREQUANT; FLATTEN: unused.
  uint32_t outputs = 0;
  std::vector<int8_t> weights;   // ONNX order: conv [O,I/g,kH,kW], linear [in,out]
  std::vector<int32_t> offsets;  // [outputs]
  std::vector<int8_t> k;         // [outputs]
  std::vector<uint8_t> mult;     // [outputs] or empty: all 1
  std::vector<int16_t> prequant_mult;
  uint16_t k_h = 1, k_w = 1, stride_h = 1, stride_w = 1;
  uint16_t pad_t = 0, pad_l = 0, pad_b = 0, pad_r = 0, dil_h = 1, dil_w = 1, groups = 1;
  std::string name;
};

// A chain: each layer reads the one before it.
struct NetSpec {
  DType input_dtype = DType::kS8;
  std::vector<uint16_t> input_dims;  // [N] or [C,H,W]
  std::vector<LayerSpec> layers;
  uint16_t n_classes = 2;
  std::vector<int8_t> target_correct, target_wrong;  // [n_classes], or both empty
  uint16_t ce_scale = 0;
  uint32_t src_correct = 0, src_total = 0;
  std::string name = "test";
};

// Storage of a layer's output by rule 1.2.
DType storage(const LayerSpec& layer, DType input);
// Dimensions behind a layer that reads `in`.
std::vector<uint16_t> output_dims(const LayerSpec& layer, const std::vector<uint16_t>& in);
uint32_t count(const std::vector<uint16_t>& dims);

std::vector<uint8_t> build_image(const NetSpec& net);
// data: [labels.size()][sample_len], bit patterns of s8 or u8.
std::vector<uint8_t> build_samples(DType dtype, uint32_t sample_len,
                                   const std::vector<int8_t>& labels,
                                   const std::vector<uint8_t>& data);

}  // namespace odt::testing
