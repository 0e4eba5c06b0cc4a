#include "oracle_loss.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace odt::testing {
namespace {

Values exponentials(const Values& z, int64_t scale) {
  int64_t top = *std::max_element(z.begin(), z.end());
  Values e;
  for (int64_t v : z) {
    int64_t t = (top - v) * scale, ip = std::min<int64_t>(t / 256, 23), fr = t % 256;
    if (fr == 0) {
      e.push_back(65536 / power(static_cast<int>(ip)));
      continue;
    }
    auto entry = static_cast<int64_t>(
        std::lround(256.0 * std::pow(2.0, static_cast<double>((256 - fr) / 16) / 16.0)));
    e.push_back(entry * 256 / power(static_cast<int>(ip) + 1));
  }
  return e;
}

LossResult regression(const LossSettings& s, const Values& z, const Values& target) {
  LossResult r;
  for (size_t c = 0; c < z.size(); c++) {
    int64_t diff = z[c] - target[c];
    r.loss += static_cast<uint64_t>(diff * diff);
    int64_t d = clip<int64_t>(diff, -128, 127);
    r.dy.push_back(std::llabs(d) <= s.dead_zone ? 0 : d);
  }
  return r;
}

}  // namespace

LossResult oracle_loss(const NetSpec& net, const LossSettings& s, const Values& z, int label,
                       const Values& target) {
  if (net.task != 0) return regression(s, z, target);
  LossResult r;
  if (s.cross_entropy) {
    Values e = exponentials(z, net.ce_scale);
    int64_t sum = 0;
    for (int64_t v : e) sum += v;
    for (size_t c = 0; c < z.size(); c++) {
      int64_t d = (127 * e[c] + sum / 2) / sum - (static_cast<int>(c) == label ? 127 : 0);
      r.loss += static_cast<uint64_t>(d * d);
      r.dy.push_back(d);
    }
  } else {
    Values wanted;
    for (size_t c = 0; c < z.size(); c++) {
      wanted.push_back(static_cast<int>(c) == label ? net.target_correct[c] : net.target_wrong[c]);
    }
    r = regression(s, z, wanted);
  }
  for (int64_t& d : r.dy) {
    d = clip<int64_t>(floor_shift(d * s.class_weights[static_cast<size_t>(label)] + 32, 6), -128,
                      127);
  }
  r.correct = std::max_element(z.begin(), z.end()) - z.begin() == label;
  return r;
}

}  // namespace odt::testing
