// Model images (ODTM v1) and sample blobs (ODTS v1) from plain descriptions, for tests.
// Writes proto/README.md's layouts; checks nothing, so that bad images can be built too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace odt::testing {

enum class DType : uint8_t { kS8 = 1, kU8 = 2, kS16 = 3 };
enum class OpKind : uint8_t {
  kPrequant = 1,
  kConv2d = 2,
  kLinear = 3,
  kFlatten = 4,
  kMaxPool = 5,
  kAvgPool = 6,
  kGap = 7,
  kAdd = 8,
  kConcat = 9,
  kResize = 10,
};

struct LayerSpec {
  OpKind kind = OpKind::kLinear;
  bool relu = false;
  bool trainable = false;
  bool offsets_only = false;  // with trainable: the weights stay frozen
  // Tensors read: 0 is the network input, i + 1 the output of layer i. in0 -1: the tensor before
  // this layer's output; in1 only for kAdd and kConcat.
  int in0 = -1, in1 = -1;
  int32_t clip_lo = -128, clip_hi = 127;
  // Outputs of a dense layer, filters of a convolution, channels of PREQUANT, 1 or channels of
  // AVGPOOL and GAP, 2 of ADD (offsets m_a, m_b; 0 in DFP16); otherwise unused.
  uint32_t outputs = 0;
  std::vector<int8_t> weights;     // ONNX order: conv [O,I/g,kH,kW], linear [in,out]
  std::vector<int16_t> weights16;  // the same in a DFP16 image
  std::vector<int32_t> offsets;    // [outputs]
  std::vector<int8_t> k;           // [outputs]
  std::vector<uint8_t> mult;       // [outputs] or empty: all 1
  std::vector<int16_t> prequant_mult;
  uint16_t k_h = 1, k_w = 1, stride_h = 1, stride_w = 1;
  uint16_t pad_t = 0, pad_l = 0, pad_b = 0, pad_r = 0, dil_h = 1, dil_w = 1, groups = 1;
  uint16_t out_h = 0, out_w = 0;  // RESIZE
  int8_t e_w = 0, e_b = 0;
  std::string name;
};

// A chain where no layer says otherwise: each reads the one before it.
struct NetSpec {
  DType input_dtype = DType::kS8;
  std::vector<uint16_t> input_dims;  // [N] or [C,H,W]
  std::vector<LayerSpec> layers;
  uint16_t n_classes = 2;
  std::vector<int8_t> target_correct, target_wrong;  // [n_classes], or both empty
  uint16_t ce_scale = 0;
  uint32_t src_correct = 0, src_total = 0;
  uint8_t task = 0, arith = 0;  // as in the header of ODTM
  int8_t input_exponent = 0, target_exponent = 0;
  std::string name = "test";
};

// Storage of a layer's output by rule 1.2.
DType storage(const LayerSpec& layer, DType input);
// Dimensions behind a layer that reads `in` (and `in1`).
std::vector<uint16_t> output_dims(const LayerSpec& layer, const std::vector<uint16_t>& in,
                                  const std::vector<uint16_t>& in1 = {});
// The tensor that layer number i of a net reads first.
size_t first_input(const NetSpec& net, size_t i);
// All tensors of a net: the input, then each layer's output.
std::vector<std::vector<uint16_t>> tensor_dims(const NetSpec& net);
std::vector<DType> tensor_dtypes(const NetSpec& net);
uint32_t count(const std::vector<uint16_t>& dims);

std::vector<uint8_t> build_image(const NetSpec& net);
// data: [labels.size()][sample_len], bit patterns of s8 or u8.
std::vector<uint8_t> build_samples(DType dtype, uint32_t sample_len,
                                   const std::vector<int8_t>& labels,
                                   const std::vector<uint8_t>& data);
// The same with flags; labels: one a sample, or with flag 1 the targets of all samples.
std::vector<uint8_t> build_samples(DType dtype, uint32_t sample_len, uint32_t samples,
                                   uint8_t flags, const std::vector<int8_t>& labels,
                                   const std::vector<uint8_t>& data);

}  // namespace odt::testing
