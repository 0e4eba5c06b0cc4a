// DFP16 layers (rule 1.13) of a NetSpec from float weights and biases, and back.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "image_builder.h"

namespace odt::testing {

// Smallest e with max|v| <= top * 2^e, within DFP16's +-100; 0 where all are 0.
inline int8_t dfp_exponent(const std::vector<float>& v, double top) {
  double largest = 0;
  for (float x : v) largest = std::max(largest, std::abs(static_cast<double>(x)));
  if (largest == 0) return 0;
  int e = std::max(-100, static_cast<int>(std::ceil(std::log2(largest / top))) - 1);
  while (largest > std::ldexp(top, e)) e++;
  return static_cast<int8_t>(std::min(e, 100));
}

// weights in ONNX order (conv [O,I/g,kH,kW], linear [in,out]); bias: one an output, or empty: 0.
// e_b leaves the offsets 7 bits to grow over the largest bias, and 8 over the largest weight.
inline void set_dfp_layer(LayerSpec* layer, const std::vector<float>& weights,
                          std::vector<float> bias, uint32_t outputs) {
  bias.resize(outputs);
  layer->outputs = outputs;
  layer->e_w = dfp_exponent(weights, 32767);
  int e_b = std::max<int>(layer->e_w - 8, -100);
  if (*std::max_element(bias.begin(), bias.end()) != 0 ||
      *std::min_element(bias.begin(), bias.end()) != 0) {
    e_b = std::max<int>(e_b, dfp_exponent(bias, 1 << 24));
  }
  layer->e_b = static_cast<int8_t>(e_b);
  layer->weights16.clear();
  layer->offsets.clear();
  for (float w : weights) {
    layer->weights16.push_back(
        static_cast<int16_t>(std::nearbyint(std::ldexp(static_cast<double>(w), -layer->e_w))));
  }
  for (float b : bias) {
    layer->offsets.push_back(
        static_cast<int32_t>(std::nearbyint(std::ldexp(static_cast<double>(b), -e_b))));
  }
  layer->clip_lo = layer->relu ? 0 : -32767;
  layer->clip_hi = 32767;
}

inline double dfp_value(int64_t v, int e) { return std::ldexp(static_cast<double>(v), e); }

// Rate as lr_m * 2^-lr_s on the sum of a batch's gradients: 15 bits where lr_s allows it.
struct DfpRate {
  uint16_t m = 1;
  uint8_t s = 0;
};
inline DfpRate dfp_rate(double rate) {
  DfpRate r;
  int s = 0;
  while (s < 40 && std::nearbyint(std::ldexp(rate, s + 1)) <= 32767) s++;
  r.s = static_cast<uint8_t>(s);
  r.m = static_cast<uint16_t>(std::max(1.0, std::nearbyint(std::ldexp(rate, s))));
  return r;
}

}  // namespace odt::testing
