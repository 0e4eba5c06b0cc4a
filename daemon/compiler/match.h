#pragma once

#include "base/result.h"
#include "compiler/ir.h"
#include "compiler/onnx_graph.h"

namespace odt::compiler {

// Matches the blocks of a QAT graph: PREQUANT (Add Mul Mul Floor Clip), Conv / MatMul / Gemm
// followed by Add Mul Mul Floor Clip [Relu] [Clip], Reshape / Flatten. Follows the file's
// constants; relies on no names. Metadata "odt.*" becomes the calibration, or a warning where it is
// absent.
//
// Errors: UNIMPLEMENTED for an unsupported node (file, node, op, position, what was expected there,
// what is supported); INVALID_ARGUMENT for constants out of range, same form.
Result<Network> match(const Graph& graph);

}  // namespace odt::compiler
