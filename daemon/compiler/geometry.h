#pragma once

#include <vector>

#include "base/result.h"
#include "compiler/ir.h"
#include "compiler/onnx_graph.h"

// Attributes that say where windows lie, how far a resize goes, over which axes a reduction sums.
namespace odt::compiler {

struct Window {
  ConvGeometry geometry;
  std::uint32_t out_h = 0, out_w = 0;
};

// Conv, MaxPool or AveragePool over `in` [C,H,W]; kernel {h, w} of a Conv's weights, else empty:
// kernel_shape. spatial: axes of the attributes, 2, or 1 (they are those of H; W is 1). auto_pad
// becomes pads; ceil_mode of a MaxPool padding behind. Errors: INVALID_ARGUMENT, UNIMPLEMENTED
// naming the node (ceil_mode that changes an AveragePool; dilated pools).
Result<Window> read_window(const Graph& graph, const Node& node, const Shape& in,
                           const std::vector<std::int64_t>& kernel, std::size_t spatial = 2);

// Output shape of Resize or Upsample, nearest, over `in` [C,H,W]: whole factors of H and W whose
// mapping is input = floor(output / factor). spatial as above. Errors: UNIMPLEMENTED naming the
// node.
Result<Shape> read_resize(const Graph& graph, const Node& node, const Shape& in,
                          std::size_t spatial = 2);

// Axes of ReduceMean or ReduceSum on `rank` dimensions, ascending, from the attribute or the second
// input; none: all. Errors: INVALID_ARGUMENT naming the node.
Result<std::vector<std::int64_t>> read_axes(const Graph& graph, const Node& node, std::size_t rank);

}  // namespace odt::compiler
