#pragma once

#include "base/result.h"
#include "compiler/ir.h"
#include "compiler/onnx_graph.h"

namespace odt::compiler {

// Exponents of an integer network, for reports in real units (Gavg): metadata odt.input_exponent
// (of what the board receives) and odt.weight_exponents (one integer for each Conv, MatMul, Gemm in
// the order of the layers, "?" where nobody knows). A layer's output has e_in + e_w + k -
// log2(mult) where that is one number for all its outputs; what is not known stays 0, as without
// metadata. Errors: INVALID_ARGUMENT naming the key.
Status read_exponents(const Graph& graph, Network& net);

}  // namespace odt::compiler
