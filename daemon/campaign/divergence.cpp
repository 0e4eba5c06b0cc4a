#include "campaign/divergence.h"

#include <algorithm>

#include "campaign/epochs.h"

namespace odt::campaign {
namespace {

using What = model::TwinResult::What;

struct Difference {
  What what = What::kEqual;
  std::uint32_t layer = 0;
  std::int64_t a = 0, b = 0;
};

Difference differ(const model::TelemetryFrame& x, const model::TelemetryFrame& y) {
  const auto layers = std::min(x.layers.size(), y.layers.size());
  for (std::uint32_t n = 0; n < layers; ++n) {
    const model::LayerStep &p = x.layers[n], &q = y.layers[n];
    if (p.k != q.k) return {What::kPrecision, n, p.k, q.k};
    if (p.bits != q.bits) return {What::kBits, n, p.bits, q.bits};
    if (p.shift != q.shift) return {What::kShift, n, p.shift, q.shift};
  }
  if (x.loss.sum != y.loss.sum || x.loss.exp2 != y.loss.exp2)
    return {What::kLoss, 0, x.loss.sum, y.loss.sum};
  return {};
}

}  // namespace

model::TwinResult compare(const Recorded& a, const Recorded& b) {
  model::TwinResult out;
  out.what = What::kEqual;
  const auto ea = newest_epochs(a.epochs), eb = newest_epochs(b.epochs);
  std::uint32_t state_step = 0;
  for (const auto& [number, epoch] : ea) {
    const auto it = eb.find(number);
    if (it == eb.end() || it->second->state_hash == epoch->state_hash) continue;
    out.first_state_epoch = number + 1;
    state_step = epoch->step;
    break;
  }
  auto x = a.frames.begin();
  auto y = b.frames.begin();
  while (x != a.frames.end() && y != b.frames.end()) {
    if (x->gap != 0 || (y->gap == 0 && x->step < y->step)) {
      ++x;
    } else if (y->gap != 0 || y->step < x->step) {
      ++y;
    } else {
      ++out.steps_compared;
      if (const Difference d = differ(*x, *y); d.what != What::kEqual) {
        out.what = d.what;
        out.step = x->step;
        out.layer = d.layer;
        out.a = d.a;
        out.b = d.b;
        return out;
      }
      ++x, ++y;
    }
  }
  if (out.first_state_epoch != 0) {
    out.what = What::kState;
    out.step = state_step;
  } else if (ea.size() != eb.size()) {
    out.what = What::kLength;
    out.a = static_cast<std::int64_t>(ea.size());
    out.b = static_cast<std::int64_t>(eb.size());
  }
  return out;
}

}  // namespace odt::campaign
