#pragma once

#include "base/result.h"
#include "compiler/ir.h"
#include "compiler/onnx_graph.h"

// Single nodes of a graph read into the IR; used by match.cpp only.
namespace odt::compiler {

// Conv, or MatMul / Gemm, on a tensor of shape dims (with batch): weights, geometry, shapes;
// offset = its bias (0 without). Errors: INVALID_ARGUMENT, UNIMPLEMENTED naming the node.
Result<Layer> read_conv(const Graph& graph, const Node& node,
                        const std::vector<std::int64_t>& dims);
Result<Layer> read_linear(const Graph& graph, const Node& node,
                          const std::vector<std::int64_t>& dims);

// Output shape of Reshape, Flatten or Squeeze; the batch stays 1.
Result<std::vector<std::int64_t>> reshaped(const Graph& graph, const Node& node,
                                           const std::vector<std::int64_t>& dims);

// Metadata "odt.*"; what is absent becomes a default with a warning. logit_scale: of an output Mul,
// 0: none.
Status read_calibration(const Graph& graph, double logit_scale, Network& net);

}  // namespace odt::compiler
