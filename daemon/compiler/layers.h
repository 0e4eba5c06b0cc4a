#pragma once

#include <optional>

#include "base/result.h"
#include "compiler/ir.h"
#include "compiler/onnx_graph.h"

// Single nodes of a graph read into the IR; used by the matcher.
namespace odt::compiler {

// Conv (also of one axis), or MatMul / Gemm, on a tensor of shape dims (with batch): weights,
// geometry, shapes; offset = its bias (0 without). Errors: INVALID_ARGUMENT, UNIMPLEMENTED naming
// the node.
Result<Layer> read_conv(const Graph& graph, const Node& node,
                        const std::vector<std::int64_t>& dims);
Result<Layer> read_linear(const Graph& graph, const Node& node,
                          const std::vector<std::int64_t>& dims);

// Metadata "odt.*"; what is absent becomes a default with a warning. logit_scale: of an output Mul,
// 0: none. Needs net.task, and layers.
Status read_calibration(const Graph& graph, double logit_scale, Network& net);
// Metadata "odt.target_offset" and "odt.target_scale" of a regression, where they are there.
Status read_target_scales(const Graph& graph, Network& net);

// What the board receives in files without PREQUANT: metadata "odt.input_dtype", u8 or i8.
Status read_input_storage(const Graph& graph, Network& net);
// `asked`, else metadata "odt.task", else by shapes: as the input: autoencode; one output: regress;
// otherwise classify.
Result<Task> read_task(const Graph& graph, std::optional<Task> asked,
                       const std::vector<std::int64_t>& output);

}  // namespace odt::compiler
