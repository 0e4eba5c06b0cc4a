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

// Numbers of the model image (ODTM).
enum class LayerKind : std::uint8_t {
  kConv = 2,
  kLinear = 3,
  kFlatten = 4,
  kMaxPool = 5,
  kAvgPool = 6,
  kGap = 7,  // global average pool
  kAdd = 8,
  kConcat = 9,  // along channels or values
  kResize = 10  // nearest, by whole factors
};

// Window of a convolution or pool. Pools have neither dilation nor groups.
struct ConvGeometry {
  std::uint16_t k_h = 1, k_w = 1, stride_h = 1, stride_w = 1;
  std::uint16_t pad_t = 0, pad_l = 0, pad_b = 0, pad_r = 0;
  std::uint16_t dil_h = 1, dil_w = 1, groups = 1;
};

// Tensors are numbered: 0 is what the board receives, n + 1 the output of layer n.
constexpr std::uint16_t kNoTensor = 0xFFFF;

// Rule 1.2, integer: y = clip(floor((acc + offset) * mult * 2^-k), lo, hi), Relu folded into the
// clip; ADD: y = clip(round_half_even((a * m_a + b * m_b) / 2^20), lo, hi). Rule 1.13, DFP16:
// values at exponents, no clips.
struct Layer {
  LayerKind kind = LayerKind::kLinear;
  std::string name;  // of the source node
  // Where the file has its values, for `odtc export`: numbers of nodes (Node::index), -1: none.
  int node = -1;          // Conv, MatMul, Gemm
  int offset_node = -1;   // the Add behind it whose constant is (a part of) the offset
  int norm_node = -1;     // a BatchNormalization, Mul or the like that is folded into the values
  double file_scale = 1;  // weights here by those of the file, where they are scaled as a whole
  std::uint16_t in0 = 0, in1 = kNoTensor;  // tensors in front; in1: kAdd, kConcat
  bool relu = false;
  bool trainable = false;
  bool fixed = false;  // never trainable: a part of an activation that is written as a layer
  std::int32_t clip_lo = 0, clip_hi = 0;
  Shape weight_shape;                 // conv [O,I/g,kH,kW], linear [in,out]
  std::vector<std::int16_t> weights;  // in that order; -128..127 but for DFP16
  // [outputs], accumulator units, rounding folded in; pools [1] or [channels]; ADD {m_a, m_b};
  // DFP16: at e_b.
  std::vector<std::int32_t> offset;
  std::vector<std::uint8_t> mult;  // as offset, 1..255; ADD, DFP16: none
  std::vector<std::uint8_t> k;     // as offset, 0..31; ADD, DFP16: none
  std::int8_t e_w = 0,
              e_b = 0;        // exponents of weights (0: unknown, but for DFP16) and DFP16 offsets
  std::int8_t e_out = 0;      // integer: exponent of the output, 0: unknown
  ConvGeometry conv;          // kConv, kMaxPool, kAvgPool
  Shape in_shape, out_shape;  // of in0, of the output

  std::uint32_t n_out() const { return static_cast<std::uint32_t>(offset.size()); }
  // Has weights: can be trained, unless fixed.
  bool is_compute() const { return kind == LayerKind::kConv || kind == LayerKind::kLinear; }
  bool can_train() const { return is_compute() && !fixed; }
};

// What training needs beside the graph; travels in our ONNX files as metadata (keys "odt.*").
struct Calibration {
  std::uint16_t ce_scale = 0;  // Q8; 0: no cross-entropy
  std::vector<std::int8_t> target_correct, target_wrong;
  std::uint32_t src_correct = 0, src_total = 0;  // total 0: unknown
  // Regressions: target = output / scale + offset, for each output or one for all; empty: as the
  // dataset's targets reach.
  std::vector<float> target_offset, target_scale;
};

enum class Storage : std::uint8_t { kS8 = 1, kU8 = 2, kS16 = 3 };
// Rule 1.2: u8 if 0 <= lo and hi <= 255, s8 if within -128..127, else s16.
Storage storage_of(std::int32_t clip_lo, std::int32_t clip_hi);

enum class Arithmetic : std::uint8_t { kInteger = 0, kDfp16 = 1 };                // ODTM
enum class Task : std::uint8_t { kClassify = 0, kRegress = 1, kAutoencode = 2 };  // ODTM

struct Network {
  std::string name;
  Arithmetic arithmetic = Arithmetic::kInteger;
  Task task = Task::kClassify;
  Shape input_shape;                     // of the ONNX input, per sample
  Storage input_storage = Storage::kS8;  // of what the board receives
  std::int8_t input_exponent = 0;        // DFP16: real value = value * 2^exponent
  std::int8_t target_exponent = 0;       // DFP16 regression
  std::optional<Prequant> prequant;      // DFP16: how the host quantises its floats
  // In topological order; the last one's output is the logits. A leading flatten is dropped: it
  // changes no byte.
  std::vector<Layer> layers;
  Calibration calibration;
  std::vector<std::string> warnings;

  // Values of the last output: classes, or outputs of a regression or autoencoder.
  std::uint32_t n_classes() const {
    return static_cast<std::uint32_t>(count_of(layers.back().out_shape));
  }
};

// Rule 1.2: by the clip of the layer that writes it; MAXPOOL, RESIZE and FLATTEN keep their
// input's. DFP16: s16 behind the input.
Storage storage_of_tensor(const Network& net, std::uint16_t tensor);
// Values that a tensor can take, integer networks: by the same clips; the input's by PREQUANT's
// clip or its storage.
struct ValueRange {
  std::int32_t lo = 0, hi = 0;
  std::int32_t largest() const { return -lo > hi ? -lo : hi; }
};
ValueRange range_of_tensor(const Network& net, std::uint16_t tensor);
// Name of the FLATTEN behind a layer, whatever the file calls it (exports differ).
std::string flatten_name(const Layer& front);
// Every layer reads the one in front of it.
void connect_chain(Network& net);
bool is_chain(const Network& net);

// Text from a file, for errors and terminals: printable ASCII, at most 64 characters.
std::string shown(const std::string& text);

}  // namespace odt::compiler
