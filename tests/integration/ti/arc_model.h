// The arc-fault example's shapes: input 64x2, CONV_RELU 3 filters 16x2 -> 49x1x3 = 147, LINEAR_RELU
// 147 -> 160, LINEAR 160 -> 2, random weights; and two classes of made-up currents.
#pragma once

#include <string>

namespace odt::test {

std::string arc_onnx();
// CSV: 128 values and the column "label", `samples` rows of both classes.
std::string arc_csv(int samples);

}  // namespace odt::test
