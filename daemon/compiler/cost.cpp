#include "compiler/cost.h"

#include <algorithm>

#include "compiler/manifest.h"

namespace odt::compiler {
namespace {

// Instructions: forward, delta and gradient per multiplication; update per weight and step, with
// what each eight samples add to it. Counted on 147->160->2 at batches 1 to 16, convolutions of
// 3x(16x2) and 16x16x(3x3).
struct Rates {
  double forward, delta, gradient, update, update_per_8;
};
struct Table {
  Rates dense, dense_wide, conv, dfp_dense, dfp_conv;  // wide: k > 8
  double per_step;  // whatever the model is: counted on small tails
};

const Table kTables[] = {
    // Plain C.
    {{4.8, 16, 0.0, 74, 65},
     {4.8, 16, 1.1, 92, 66},
     {9.8, 13.5, 11.9, 74, 65},
     {6.0, 6.0, 6.5, 0, 0},
     {11, 11, 12, 0, 0},
     22000},
    // DSP.
    {{1.15, 3.4, 0.42, 3, 20},
     {1.15, 3.4, 1.35, 98, 15},
     {3.2, 4.6, 4.4, 3, 20},
     {1.0, 1.7, 1.76, 0, 0},
     {11, 11, 12, 0, 0},
     14000},
    // Helium.
    {{0.33, 4.2, 0.41, 0, 18},
     {0.33, 4.2, 0.2, 97, 13},
     {2.8, 4.6, 3.9, 0, 18},
     {6.0, 6.0, 6.5, 0, 0},
     {11, 11, 12, 0, 0},
     14000},
};

constexpr double kPerOutput = 6;    // shift, clip, store, mask
constexpr std::uint64_t kTile = 4;  // outputs that a dense layer computes together
constexpr double kPerElement = 5;   // layers without weights: each value that they read

const Rates& rates_of(const Network& net, const Layer& l, Kernels kernels, std::uint32_t k) {
  const Table& t = kTables[static_cast<std::size_t>(kernels)];
  const bool conv = l.kind == LayerKind::kConv;
  if (net.arithmetic == Arithmetic::kDfp16) return conv ? t.dfp_conv : t.dfp_dense;
  return conv ? t.conv : k > 8 ? t.dense_wide : t.dense;
}

// Is there a trainable layer in front of tensor `tensor`?
bool trains_before(const Network& net, std::uint16_t tensor) {
  if (tensor == 0 || tensor == kNoTensor) return false;
  const Layer& l = net.layers[tensor - 1u];
  return l.trainable || trains_before(net, l.in0) || trains_before(net, l.in1);
}

}  // namespace

LayerCost layer_cost(const Network& net, std::size_t index, Kernels kernels, std::uint32_t k,
                     std::uint32_t batch) {
  const Layer& l = net.layers[index];
  const Rates& r = rates_of(net, l, kernels, k);
  LayerCost cost;
  const auto outputs = static_cast<double>(count_of(l.out_shape));
  const bool passes_delta = trains_before(net, l.in0) || trains_before(net, l.in1);
  if (!l.is_compute()) {
    const double read = static_cast<double>(count_of(l.in_shape)) * (l.in1 == kNoTensor ? 1 : 2);
    cost.forward = l.kind == LayerKind::kFlatten ? 0 : kPerElement * std::max(read, outputs);
    cost.backward = passes_delta ? cost.forward : 0;
    return cost;
  }
  cost.macs = macs_of(l);
  const auto macs = static_cast<double>(cost.macs);
  cost.forward = r.forward * macs + kPerOutput * outputs;
  if (l.kind == LayerKind::kLinear) {
    const std::uint64_t n = count_of(l.out_shape), tiles = (n + kTile - 1) / kTile;
    cost.forward += r.forward * macs * static_cast<double>(tiles * kTile - n) / outputs;
  }
  if (passes_delta) cost.backward += r.delta * macs + kPerOutput * outputs;
  if (l.trainable) {
    cost.backward += r.gradient * macs;
    cost.update =
        static_cast<double>(l.weights.size()) * (r.update + r.update_per_8 * ((batch + 7) / 8));
  }
  return cost;
}

std::size_t first_trainable(const Network& net) {
  const auto first = std::find_if(net.layers.begin(), net.layers.end(),
                                  [](const Layer& l) { return l.trainable; });
  return static_cast<std::size_t>(first - net.layers.begin());
}

StepCost step_cost(const Network& net, Kernels kernels, std::uint32_t k, std::uint32_t batch,
                   bool frozen_outputs) {
  StepCost out;
  out.training_step = kTables[static_cast<std::size_t>(kernels)].per_step;
  for (std::size_t n = frozen_outputs ? first_trainable(net) : 0; n < net.layers.size(); ++n) {
    const LayerCost c = layer_cost(net, n, kernels, k, batch);
    out.inference += c.forward;
    out.training_step += batch * (c.forward + c.backward) + c.update;
  }
  return out;
}

std::vector<BoardTime> board_times(const Network& net) {
  std::vector<BoardTime> out;
  for (const BoardFigures& board : boards()) {
    if (board.clock_hz == 0) continue;
    const auto ns = [&](double instructions) {
      return static_cast<std::uint64_t>(instructions * board.cycles_per_instruction * 1e9 /
                                        static_cast<double>(board.clock_hz));
    };
    const auto step = [&](std::uint32_t k, std::uint32_t batch) {
      return step_cost(net, board.kernels, k, batch);
    };
    out.push_back({board.name, ns(step(8, 1).inference), ns(step(8, 1).training_step),
                   ns(step(8, 8).training_step), ns(step(15, 1).training_step),
                   ns(step(15, 8).training_step)});
  }
  return out;
}

}  // namespace odt::compiler
