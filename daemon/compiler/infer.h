#pragma once

#include <vector>

#include "compiler/onnx_graph.h"

namespace odt::compiler {

// Shapes (with the batch) of a node's outputs, from those of its inputs in graph.dims and
// constants. Empty: not known (an operator that is not supported, or shapes that do not fit):
// whoever needs them says so.
std::vector<std::vector<std::int64_t>> infer_dims(const Graph& graph, const Node& node);

}  // namespace odt::compiler
