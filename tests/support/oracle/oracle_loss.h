// Rule 1.3: losses of integer models.
#pragma once

#include <vector>

#include "image_builder.h"
#include "oracle_math.h"

namespace odt::testing {

struct LossSettings {
  bool cross_entropy = false;
  int dead_zone = 0;
  std::vector<int> class_weights;  // Q6
};

struct LossResult {
  Values dy;
  uint64_t loss = 0;
  bool correct = false;
};

// `target`: of regression, or the network input of an autoencoder; unused for classification.
LossResult oracle_loss(const NetSpec& net, const LossSettings& settings, const Values& z, int label,
                       const Values& target);

}  // namespace odt::testing
