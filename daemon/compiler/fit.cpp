#include "compiler/fit.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/manifest.h"
#include "compiler/plan.h"
#include "data/batcher.h"

namespace odt::compiler {
namespace {

using nlohmann::json;

std::uint64_t align8(std::uint64_t n) { return (n + 7) & ~std::uint64_t{7}; }

// An ODTS blob (proto/README.md): labels, or targets of a regression.
std::uint64_t samples_bytes(const Network& net, std::uint64_t count) {
  const std::uint64_t each = storage_of_tensor(net, 0) == Storage::kS16 ? 2 : 1;
  return align8(data::samples_bytes(count, count_of(net.input_shape) * each,
                                    net.task == Task::kRegress ? net.n_classes() : 1));
}

Result<std::pair<FitRam, FitRam>> ram_of(const Compiled& c, const std::string& file,
                                         const FitRequest& r) {
  const Network& net = c.network;
  MemoryPlan plan;
  ODT_ASSIGN(plan, plan_memory(c.image, file, static_cast<std::uint8_t>(r.k), r.batch));
  FitRam streamed;
  streamed.image = align8(c.image.size());
  streamed.weights = plan.weights_bytes;
  streamed.best = r.guard && r.heldout > 0 ? plan.best_bytes : 0;
  streamed.activations = plan.activation_bytes;
  streamed.gradients =
      plan.total_bytes - plan.weights_bytes - plan.best_bytes - plan.activation_bytes;
  FitRam resident = streamed;
  // Counts of an evaluation, and one sample or batch at a time.
  const std::uint64_t confusion =
      net.task == Task::kClassify ? align8(4ull * net.n_classes() * net.n_classes()) : 0;
  streamed.samples = confusion + samples_bytes(net, r.batch);
  resident.samples = confusion + samples_bytes(net, r.train) + align8(2ull * r.train) +
                     (r.heldout > 0 ? samples_bytes(net, r.heldout) : 0);
  return std::pair{resident, streamed};
}

// The same model with other trainable layers.
Result<Compiled> with_trainable(const Compiled& c, const std::string& file, std::uint32_t n) {
  return compile_network(c.network, std::string(), file, {c.network.name, n});
}

std::uint32_t trainable_layers(const Network& net) {
  return static_cast<std::uint32_t>(std::count_if(net.layers.begin(), net.layers.end(),
                                                  [](const Layer& l) { return l.trainable; }));
}

// The largest batch at precision r.k with which the samples fit in one way or the other.
Result<std::optional<FitChoice>> choice(const Compiled& c, const std::string& file,
                                        const BoardFigures& board, FitRequest r) {
  for (; r.batch >= 1; r.batch = static_cast<std::uint16_t>(r.batch / 2)) {
    std::pair<FitRam, FitRam> ram;
    ODT_ASSIGN(ram, ram_of(c, file, r));
    for (const bool streamed : {false, true}) {
      const std::uint64_t bytes = (streamed ? ram.second : ram.first).total();
      if (bytes <= board.arena_bytes)
        return FitChoice{trainable_layers(c.network), r.k, r.batch, streamed, bytes};
    }
  }
  return std::optional<FitChoice>();
}

Result<std::vector<FitChoice>> choices(const Compiled& c, const std::string& file,
                                       const BoardFigures& board, FitRequest r) {
  std::vector<std::uint32_t> precisions = {r.k};
  if (r.k > 8 && c.network.arithmetic == Arithmetic::kInteger) precisions.push_back(8);
  std::vector<FitChoice> out;
  for (std::uint32_t n = trainable_layers(c.network); n >= 1; --n) {
    Compiled other;
    ODT_ASSIGN(other, with_trainable(c, file, n));
    for (const std::uint32_t k : precisions) {
      FitRequest at = r;
      at.k = k;
      std::optional<FitChoice> found;
      ODT_ASSIGN(found, choice(other, file, board, at));
      if (!found) continue;
      out.push_back(*found);
      if (found->batch == r.batch && found->k == r.k)
        return out;  // all that was asked for, but for layers
    }
  }
  return out;
}

std::string choice_text(const FitChoice& c, bool dfp16) {
  return absl::StrCat("--trainable ", c.trainable_layers, " --batch ", c.batch,
                      dfp16 ? "" : absl::StrCat(" --k ", c.k), c.streamed ? " (streamed)" : "",
                      ": ", c.bytes, " bytes");
}

std::string ram_line(const char* label, const FitRam& ram, std::uint64_t arena) {
  return absl::StrFormat(
      "%-9s %9d %9d %9d %11d %9d %9d %9d  %s\n", label, ram.image, ram.weights, ram.best,
      ram.activations, ram.gradients, ram.samples, ram.total(),
      ram.total() <= arena ? "fits" : absl::StrCat("needs ", ram.total() - arena, " more"));
}

std::string shape_text(const Shape& shape) { return absl::StrJoin(shape, "x"); }

std::string layers_text(const Compiled& c, const BoardFigures& board, const FitRequest& r) {
  const Network& net = c.network;
  std::string out =
      absl::StrFormat("%-3s %-14s %-12s %9s %10s %7s %13s  %s\n", "", "layer", "output", "weights",
                      "MACs", "k", "|acc| <=", "instructions a step");
  for (std::size_t n = 0; n < net.layers.size(); ++n) {
    const Layer& l = net.layers[n];
    const LayerCost cost = layer_cost(net, n, board.kernels, r.k, r.batch);
    std::string k, bound;
    if (!l.k.empty()) {
      const auto [lo, hi] = std::minmax_element(l.k.begin(), l.k.end());
      k = *lo == *hi ? absl::StrCat(*lo) : absl::StrCat(*lo, "..", *hi);
    }
    if (l.is_compute() && net.arithmetic == Arithmetic::kInteger)
      bound = absl::StrCat(accumulator_bound(net, l));
    absl::StrAppendFormat(&out, "%-3d %-14s %-12s %9d %10d %7s %13s  %.3g%s\n", n, kind_name(l),
                          shape_text(l.out_shape), l.weights.size(), cost.macs, k, bound,
                          r.batch * (cost.forward + cost.backward) + cost.update,
                          l.is_compute() && !l.trainable ? "  frozen" : "");
  }
  return out;
}

json ram_json(const FitRam& ram) {
  return {{"image", ram.image},         {"weights", ram.weights},
          {"best", ram.best},           {"activations", ram.activations},
          {"gradients", ram.gradients}, {"samples", ram.samples},
          {"total", ram.total()}};
}

}  // namespace

Result<FitReport> fit(const Compiled& compiled, const std::string& file, const BoardFigures& board,
                      const FitRequest& request) {
  FitReport out;
  std::pair<FitRam, FitRam> ram;
  ODT_ASSIGN(ram, ram_of(compiled, file, request));
  out.resident = ram.first;
  out.streamed = ram.second;
  out.fits_resident = out.resident.total() <= board.arena_bytes;
  out.fits_streamed = out.streamed.total() <= board.arena_bytes;
  out.cost = step_cost(compiled.network, board.kernels, request.k, request.batch);
  if (board.clock_hz > 0) {
    const double steps = (request.train + request.batch - 1u) / request.batch;
    out.step_s =
        out.cost.training_step * board.cycles_per_instruction / static_cast<double>(board.clock_hz);
    out.epoch_s = steps * out.step_s + request.heldout * out.cost.inference *
                                           board.cycles_per_instruction /
                                           static_cast<double>(board.clock_hz);
  }
  if (!out.fits_resident && !out.fits_streamed) {
    ODT_ASSIGN(out.would_fit, choices(compiled, file, board, request));
  }
  return out;
}

std::string fit_text(const Compiled& c, const BoardFigures& board, const FitRequest& r,
                     const FitReport& report) {
  const bool dfp16 = c.network.arithmetic == Arithmetic::kDfp16;
  std::string out = absl::StrCat(
      "model ", shown(c.network.name), ", ", trainable_layers(c.network), " trainable layers, on ",
      board.name, " (", board.cpu, ", ", kernels_name(board.kernels), " kernels, ",
      board.clock_hz / 1000000, " MHz, ", board.arena_bytes, " bytes for training)\n", "batch ",
      r.batch, dfp16 ? ", DFP16" : absl::StrCat(", precision k ", r.k), ", ", r.train,
      " training samples, ", r.heldout, " held out, guard ", r.guard ? "on" : "off", "\n\n",
      layers_text(c, board, r), "\n",
      absl::StrFormat("%-9s %9s %9s %9s %11s %9s %9s %9s\n", "RAM", "image", "weights", "best",
                      "activations", "gradients", "samples", "total"),
      ram_line("resident", report.resident, board.arena_bytes),
      ram_line("streamed", report.streamed, board.arena_bytes));
  absl::StrAppend(
      &out, "flash     ", c.image.size(), " bytes where the image is stored beside the firmware",
      board.flash_bytes > 0 ? absl::StrCat(" (", board.flash_bytes, " free)") : "", "\n");
  absl::StrAppendFormat(&out, "predicted %.4g instructions a step, %.4g an inference",
                        report.cost.training_step, report.cost.inference);
  if (report.epoch_s > 0)
    absl::StrAppendFormat(&out, "; about %.3g s a step, %.3g s an epoch", report.step_s,
                          report.epoch_s);
  out += "\n";
  if (report.fits_resident) return out + "fits, samples on the board\n";
  if (report.fits_streamed)
    return out + "fits with streamed batches; the samples do not fit on the board\n";
  absl::StrAppend(&out, "does not fit: ", report.streamed.total(), " bytes of ", board.arena_bytes,
                  "\n");
  for (const auto& choice : report.would_fit)
    absl::StrAppend(&out, "would fit: ", choice_text(choice, dfp16), "\n");
  if (report.would_fit.empty())
    out += "nothing of it fits, not even its last layer: take a smaller model or a larger board\n";
  return out;
}

std::string fit_json(const Compiled& c, const BoardFigures& board, const FitRequest& r,
                     const FitReport& report) {
  json would = json::array();
  for (const auto& f : report.would_fit)
    would.push_back({{"trainable_layers", f.trainable_layers},
                     {"batch", f.batch},
                     {"k", f.k},
                     {"streamed", f.streamed},
                     {"bytes", f.bytes}});
  json layers = json::array();
  for (std::size_t n = 0; n < c.network.layers.size(); ++n) {
    const LayerCost cost = layer_cost(c.network, n, board.kernels, r.k, r.batch);
    layers.push_back(
        {{"name", shown(c.network.layers[n].name)},
         {"kind", kind_name(c.network.layers[n])},
         {"macs", cost.macs},
         {"trainable", c.network.layers[n].trainable},
         {"instructions_per_step", r.batch * (cost.forward + cost.backward) + cost.update}});
  }
  const json out = {{"format", "odt-fit-1"},
                    {"model", shown(c.network.name)},
                    {"board", board.name},
                    {"cpu", board.cpu},
                    {"kernels", kernels_name(board.kernels)},
                    {"arena_bytes", board.arena_bytes},
                    {"batch", r.batch},
                    {"k", r.k},
                    {"train_samples", r.train},
                    {"heldout_samples", r.heldout},
                    {"layers", layers},
                    {"resident", ram_json(report.resident)},
                    {"streamed", ram_json(report.streamed)},
                    {"fits_resident", report.fits_resident},
                    {"fits_streamed", report.fits_streamed},
                    {"image_bytes", c.image.size()},
                    {"instructions_per_step", report.cost.training_step},
                    {"instructions_per_inference", report.cost.inference},
                    {"step_s", report.step_s},
                    {"epoch_s", report.epoch_s},
                    {"would_fit", would}};
  return out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace odt::compiler
