#pragma once

#include "base/result.h"
#include "compiler/ir.h"
#include "compiler/onnx_graph.h"

namespace odt::compiler {

// Exponents of an integer network, for reports in real units (Gavg); what is not known stays 0, as
// without metadata. Lists have one integer for each Conv, MatMul, Gemm in the order of the layers,
// "?" where nobody knows.
inline constexpr char kInputExponentKey[] = "odt.input_exponent";      // of what the board receives
inline constexpr char kWeightExponentsKey[] = "odt.weight_exponents";  // outputs differ: the middle
// Of a layer's output. Without it e_in + e_w + k - log2(mult), where that is one number.
inline constexpr char kOutputExponentsKey[] = "odt.output_exponents";

// Errors: INVALID_ARGUMENT naming the key.
Status read_exponents(const Graph& graph, Network& net);

}  // namespace odt::compiler
