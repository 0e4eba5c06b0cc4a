#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/ir.h"
#include "compiler/onnx_graph.h"

// A float32 graph between its nodes and the IR: what float_match.cpp reads, folds and quantises.
namespace odt::compiler {

// kAffine: y = scale * x + shift per channel (BatchNormalization, Mul and Add by constants).
enum class FloatKind {
  kConv,
  kLinear,
  kAffine,
  kRelu,
  kMaxPool,
  kAvgPool,
  kGap,
  kAdd,
  kConcat,
  kResize,
  kFlatten
};

constexpr int kFloatInput = -1, kFloatNone = -2;

struct FloatOp {
  FloatKind kind = FloatKind::kRelu;
  const Node* node = nullptr;              // for names and errors
  int in0 = kFloatNone, in1 = kFloatNone;  // numbers of ops, or kFloatInput
  Shape out;                               // [N] or [C,H,W]
  ConvGeometry geometry;
  Shape weight_shape;           // conv [O,I/g,kH,kW], linear [in,out]
  std::vector<double> weights;  // in that order; kAffine: scale of each channel
  std::vector<double> bias;     // of each output; kAffine: shift
  bool relu = false;
  bool gone = false;   // folded into another
  bool fixed = false;  // part of an activation: never trained
  // As in ir.h: the Add whose constant is in the bias; what else is folded in; scale of the
  // weights.
  int offset_node = -1, norm_node = -1;
  double file_scale = 1;

  bool is_compute() const { return kind == FloatKind::kConv || kind == FloatKind::kLinear; }
};

struct FloatGraph {
  Shape input;               // as the first op reads it
  std::vector<FloatOp> ops;  // in topological order
  int output = kFloatInput;
  std::vector<std::int64_t> output_dims;  // in the file, with the batch
  // Of the input, before it is quantised: scale and shift of each channel; empty: none.
  std::vector<double> scale, shift;

  const Shape& shape_of(int id) const {
    return id == kFloatInput ? input : ops[static_cast<std::size_t>(id)].out;
  }
  // Ops that read `id`; the graph's output counts as one.
  int readers(int id) const;
};

// Nodes -> ops. Errors: UNIMPLEMENTED, INVALID_ARGUMENT naming the node.
Result<FloatGraph> read_float_graph(const Graph& graph);
// The parts of it: ops with weights.
Result<FloatOp> read_float_conv(const Graph& graph, const Node& node, const Shape& in,
                                std::size_t spatial);
Result<FloatOp> read_float_linear(const Graph& graph, const Node& node, const Shape& in);
Result<FloatOp> read_batch_norm(const Graph& graph, const Node& node, const Shape& in);

// Affine ops go into the layer in front, the input stage (where scale_input) or the layers behind;
// what stays becomes a 1x1 depthwise convolution. Relu goes into what makes its tensor. Ops that do
// not lead to the output go. Errors: UNIMPLEMENTED naming the node.
Status fold_float_graph(const Graph& graph, bool scale_input, FloatGraph& g);

}  // namespace odt::compiler
