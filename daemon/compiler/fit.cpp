#include "compiler/fit.h"

#include <algorithm>

#include "compiler/plan.h"
#include "data/batcher.h"

namespace odt::compiler {
namespace {

std::uint64_t align8(std::uint64_t n) { return (n + 7) & ~std::uint64_t{7}; }

// An ODTS blob (proto/README.md): labels, or targets of a regression.
std::uint64_t samples_bytes(const Network& net, std::uint64_t count) {
  const std::uint64_t each = storage_of_tensor(net, 0) == Storage::kS16 ? 2 : 1;
  return align8(data::samples_bytes(count, count_of(net.input_shape) * each,
                                    net.task == Task::kRegress ? net.n_classes() : 1));
}

bool guarded(const FitRequest& r) { return r.guard && r.heldout > 0; }

// As training::ram_need() counts it.
Result<FitRam> ram_of(const Compiled& c, const std::string& file, const FitRequest& r,
                      const FitWay& way) {
  const Network& net = c.network;
  MemoryPlan plan, alone;
  ODT_ASSIGN(plan, plan_memory(c.image, file, static_cast<std::uint8_t>(way.k), way.batch));
  FitRam ram;
  ram.image = align8(c.image.size());
  ram.weights = plan.weights_bytes;
  ram.best = guarded(r) && !way.best_on_host ? plan.best_bytes : 0;
  ram.activations = plan.activation_bytes;
  ram.gradients = plan.total_bytes - plan.weights_bytes - plan.best_bytes - plan.activation_bytes;
  const bool measured = r.heldout > 0;
  const std::uint64_t confusion =
      net.task == Task::kClassify ? align8(4ull * net.n_classes() * net.n_classes()) : 0;
  if (way.streamed)
    ram.samples = samples_bytes(net, way.batch) + (measured ? confusion : 0);
  else
    ram.samples = samples_bytes(net, r.train) + align8(2ull * r.train) +
                  (measured ? samples_bytes(net, r.heldout) : 0);
  // Before training the held-out samples are evaluated, one at a time.
  ODT_ASSIGN(alone, plan_memory(c.image, file, 8, 1));
  const std::uint64_t first = ram.image + alone.weights_bytes + alone.activation_bytes +
                              alone.gradient_bytes + confusion + samples_bytes(net, 1);
  if (measured && ram.total() < first) ram.samples += first - ram.total();
  return ram;
}

// The same model with other trainable layers.
Result<Compiled> with_trainable(const Compiled& c, const std::string& file, std::uint32_t n) {
  return compile_network(c.network, std::string(), file, {c.network.name, n});
}

// In the order of training::placements(): k 15 before 8, resident before streamed; the guard's best
// on the board before on the host, and both before batches below 8, which go with the last k.
std::vector<FitWay> ways_of(const Network& net, const FitRequest& r) {
  std::vector<std::uint32_t> ks = {15, 8};
  if (net.arithmetic == Arithmetic::kDfp16)
    ks = {16};
  else if (r.k != 0)
    ks = {r.k};
  std::vector<std::uint16_t> large = {r.batch}, small;
  if (r.batch == 0) {
    large = {8};
    small = {4, 2, 1};
  }
  std::vector<FitWay> out;
  const auto add = [&](const std::vector<std::uint32_t>& precisions,
                       const std::vector<std::uint16_t>& batches) {
    for (const bool host : {false, true})
      for (const auto k : precisions)
        for (const auto batch : batches)
          for (const bool streamed : {false, true})
            if (!host || guarded(r)) out.push_back({k, batch, streamed, host, {}});
  };
  add(ks, large);
  add({ks.back()}, small);
  return out;
}

Result<FitReport> find_way(const Compiled& c, const std::string& file, const BoardFigures& board,
                           const FitRequest& r) {
  FitReport out;
  for (FitWay& way : ways_of(c.network, r)) {
    if (out.chosen && out.ways.size() >= 2) break;
    ODT_ASSIGN(way.ram, ram_of(c, file, r, way));
    out.ways.push_back(way);
    if (!out.chosen && way.ram.total() <= board.arena_bytes) out.chosen = way;
  }
  return out;
}

Result<std::vector<FitChoice>> choices(const Compiled& c, const std::string& file,
                                       const BoardFigures& board, const FitRequest& r) {
  FitRequest any = r;
  any.k = 0;
  any.batch = 0;
  std::vector<FitChoice> out;
  for (std::uint32_t n = trainable_layers(c.network); n >= 1; --n) {
    Compiled other;
    ODT_ASSIGN(other, with_trainable(c, file, n));
    FitReport found;
    for (const FitRequest& request : {r, any}) {
      ODT_ASSIGN(found, find_way(other, file, board, request));
      if (found.chosen) break;
    }
    if (!found.chosen) continue;
    out.push_back({n, *found.chosen});
    const FitWay best = ways_of(other.network, r).front();
    if (found.chosen->batch == best.batch && found.chosen->k == best.k)
      return out;  // all that was asked for, but for layers
  }
  return out;
}

}  // namespace

std::uint32_t trainable_layers(const Network& net) {
  return static_cast<std::uint32_t>(std::count_if(net.layers.begin(), net.layers.end(),
                                                  [](const Layer& l) { return l.trainable; }));
}

const FitWay& shown_way(const FitReport& report) {
  return report.chosen ? *report.chosen : report.ways.front();
}

Result<FitReport> fit(const Compiled& compiled, const std::string& file, const BoardFigures& board,
                      const FitRequest& request) {
  FitReport out;
  ODT_ASSIGN(out, find_way(compiled, file, board, request));
  const FitWay& way = shown_way(out);
  out.cost = step_cost(compiled.network, board.kernels, way.k, way.batch);
  if (board.clock_hz > 0) {
    const double steps = (request.train + way.batch - 1u) / way.batch;
    out.step_s =
        out.cost.training_step * board.cycles_per_instruction / static_cast<double>(board.clock_hz);
    out.epoch_s = steps * out.step_s + request.heldout * out.cost.inference *
                                           board.cycles_per_instruction /
                                           static_cast<double>(board.clock_hz);
  }
  if (!out.chosen) {
    ODT_ASSIGN(out.would_fit, choices(compiled, file, board, request));
  }
  return out;
}

}  // namespace odt::compiler
