#pragma once

#include <optional>

#include "base/result.h"
#include "compiler/ir.h"
#include "compiler/onnx_graph.h"

namespace odt::compiler {

// Whether the file is quantisation-aware trained: its data goes through a Floor.
bool is_qat(const Graph& graph);

// Recognises the blocks of a QAT graph (compiler/README.md), in any order, with branches. Names are
// never relied on. task: overrides that of the file. Errors: INVALID_ARGUMENT, UNIMPLEMENTED naming
// file, node, operator, position, what was expected and what is supported.
Result<Network> match(const Graph& graph, std::optional<Task> task = std::nullopt);

}  // namespace odt::compiler
