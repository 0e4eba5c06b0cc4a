#pragma once

#include <string>

#include "base/result.h"
#include "compiler/ir.h"

namespace odt::compiler {

// The model image (ODTM v1, proto/README.md) of everything behind PREQUANT. Errors: OUT_OF_RANGE
// (more than 64 operators, 65,535 values in a tensor).
Result<std::string> write_image(const Network& net);

}  // namespace odt::compiler
