#pragma once

#include <string>

#include "base/result.h"
#include "compiler/ir.h"

namespace odt::worker {

// The same function as a DFP16 image (rule 1.13): int16 weights at one exponent a layer, biases at
// one, real values instead of clips; ReLU stays. Logits are in units of the softmax, so that
// cross-entropy needs no scale. Errors: INVALID_ARGUMENT (no cross-entropy scale), UNIMPLEMENTED
// (layers other than dense, convolution and flatten; a model that firmware/odt refuses).
Result<std::string> dfp_image(const compiler::Network& net);

}  // namespace odt::worker
