#pragma once

#include <string>

#include "compiler/ir.h"

namespace odt::compiler {

// A network as QAT ONNX (opset 17, float32 holding integers, batch 1) in the node pattern that the
// reader accepts, calibration as metadata "odt.*". The same network gives the same bytes.
std::string write_onnx(const Network& net);

}  // namespace odt::compiler
