#pragma once

#include <optional>

#include "base/result.h"
#include "compiler/ir.h"
#include "compiler/onnx_graph.h"

namespace odt::compiler {

// What the board receives for a float32 model; absent: metadata odt.input_exponent and
// odt.input_dtype, else s16 at -12 (u8: -8, i8: -7), with a warning.
struct FloatInput {
  std::optional<std::int32_t> exponent = {};  // -15..7: real value = value * 2^exponent
  std::optional<Storage> dtype = {};
};

// A float32 graph as a DFP16 network (rule 1.13): every weight and bias rounded to its layer's
// exponent, nothing else changed. A BatchNormalization, Mul or Add by constants goes into the layer
// beside it or the input stage, or becomes a 1x1 depthwise convolution; Softmax at the end is
// dropped. task: overrides that of the file.
//
// Errors: UNIMPLEMENTED and INVALID_ARGUMENT naming the node, or the metadata key.
Result<Network> match_float(const Graph& graph, const FloatInput& input,
                            std::optional<Task> task = std::nullopt);

}  // namespace odt::compiler
