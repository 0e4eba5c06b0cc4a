// The training state (ODTT v1) read by its layout in proto/README.md.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle_math.h"

namespace odt::testing {

struct LayerView {
  int k = 0, dtype = 0, b_prev = 0, k_off = 0;
  uint64_t a = 0, n = 0, a_off = 0, n_off = 0;
  Values m, off;
  Values exponents;  // blocked DFP16
};

struct StateView {
  int rule_set = 0, rounding = 0, n_layers = 0;
  uint32_t step = 0, epoch = 0, position = 0, extension = 0;
  uint64_t epoch_loss = 0;
  uint32_t epoch_correct = 0;
  std::vector<LayerView> layers;
  bool whole = false;  // the bytes end where the last layer ends
};

StateView read_state(const std::vector<uint8_t>& bytes);

}  // namespace odt::testing
