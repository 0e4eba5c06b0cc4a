#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/fit.h"
#include "compiler/manifest.h"

// What `odtc fit` says.
namespace odt::compiler {
namespace {

using nlohmann::json;

std::string way_text(const FitWay& way) {
  return absl::StrCat(way.streamed ? "streamed batches" : "samples on the board",
                      way.best_on_host ? ", the guard's best weights on the host" : "");
}

std::string choice_text(const FitChoice& c, bool dfp16) {
  return absl::StrCat("--trainable ", c.trainable_layers, " --batch ", c.way.batch,
                      dfp16 ? "" : absl::StrCat(" --k ", c.way.k), " (", way_text(c.way),
                      "): ", c.way.ram.total(), " bytes");
}

std::string ram_lines(const FitReport& report, std::uint64_t arena, bool dfp16) {
  std::string out =
      absl::StrFormat("%-27s %8s %8s %8s %11s %9s %8s %8s\n", "RAM", "image", "weights", "best",
                      "activations", "gradients", "samples", "total");
  for (const FitWay& way : report.ways) {
    const FitRam& ram = way.ram;
    const std::string label =
        absl::StrCat(dfp16 ? "" : absl::StrCat("k ", way.k, ", "), "batch ", way.batch,
                     way.streamed ? ", streamed" : ", resident", way.best_on_host ? " *" : "");
    absl::StrAppendFormat(
        &out, "%-27s %8d %8d %8d %11d %9d %8d %8d  %s\n", label, ram.image, ram.weights, ram.best,
        ram.activations, ram.gradients, ram.samples, ram.total(),
        ram.total() <= arena ? "fits" : absl::StrCat("needs ", ram.total() - arena, " more"));
  }
  const bool any = std::any_of(report.ways.begin(), report.ways.end(),
                               [](const FitWay& way) { return way.best_on_host; });
  return any ? out + "* the guard's best weights stay with odtd\n" : out;
}

std::string shape_text(const Shape& shape) { return absl::StrJoin(shape, "x"); }

std::string layers_text(const Compiled& c, const BoardFigures& board, const FitWay& r) {
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

json way_json(const FitWay& way, std::uint64_t arena) {
  return {{"k", way.k},
          {"batch", way.batch},
          {"streamed", way.streamed},
          {"best_on_host", way.best_on_host},
          {"ram", ram_json(way.ram)},
          {"fits", way.ram.total() <= arena}};
}

}  // namespace

std::string fit_text(const Compiled& c, const BoardFigures& board, const FitRequest& r,
                     const FitReport& report) {
  const bool dfp16 = c.network.arithmetic == Arithmetic::kDfp16;
  const FitWay& way = shown_way(report);
  std::string out = absl::StrCat(
      "model ", shown(c.network.name), ", ", trainable_layers(c.network), " trainable layers, on ",
      board.name, " (", board.cpu, ", ", kernels_name(board.kernels), " kernels, ",
      board.clock_hz / 1000000, " MHz, ", board.arena_bytes, " bytes for training)\n", "batch ",
      way.batch, dfp16 ? ", DFP16" : absl::StrCat(", precision k ", way.k), ", ", r.train,
      " training samples, ", r.heldout, " held out, guard ", r.guard ? "on" : "off", "\n\n",
      layers_text(c, board, way), "\n", ram_lines(report, board.arena_bytes, dfp16));
  absl::StrAppend(
      &out, "flash     ", c.image.size(), " bytes where the image is stored beside the firmware",
      board.flash_bytes > 0 ? absl::StrCat(" (", board.flash_bytes, " free)") : "", "\n");
  absl::StrAppendFormat(&out, "predicted %.4g instructions a step, %.4g an inference",
                        report.cost.training_step, report.cost.inference);
  if (report.epoch_s > 0)
    absl::StrAppendFormat(&out, "; about %.3g s a step, %.3g s an epoch", report.step_s,
                          report.epoch_s);
  out += "\n";
  if (report.chosen) {
    absl::StrAppend(&out, "fits: ", way_text(way), "\n");
    return out;
  }
  const auto least = std::min_element(
      report.ways.begin(), report.ways.end(),
      [](const FitWay& a, const FitWay& b) { return a.ram.total() < b.ram.total(); });
  absl::StrAppend(&out, "does not fit: at least ", least->ram.total(), " bytes of ",
                  board.arena_bytes, "\n");
  for (const auto& choice : report.would_fit)
    absl::StrAppend(&out, "would fit: ", choice_text(choice, dfp16), "\n");
  if (report.would_fit.empty())
    out +=
        c.tail.empty()
            ? "nothing of it fits, not even its last layer: take a smaller model or a larger "
              "board\n"
            : "nothing of it fits with its samples; odtd tries frozen outputs too, which are not "
              "counted here\n";
  return out;
}

std::string fit_json(const Compiled& c, const BoardFigures& board, const FitRequest& r,
                     const FitReport& report) {
  json would = json::array();
  for (const auto& f : report.would_fit)
    would.push_back({{"trainable_layers", f.trainable_layers},
                     {"batch", f.way.batch},
                     {"k", f.way.k},
                     {"streamed", f.way.streamed},
                     {"best_on_host", f.way.best_on_host},
                     {"bytes", f.way.ram.total()}});
  const FitWay &way = shown_way(report), &resident = report.ways[0], &streamed = report.ways[1];
  json ways = json::array();
  for (const FitWay& w : report.ways) ways.push_back(way_json(w, board.arena_bytes));
  json layers = json::array();
  for (std::size_t n = 0; n < c.network.layers.size(); ++n) {
    const LayerCost cost = layer_cost(c.network, n, board.kernels, way.k, way.batch);
    layers.push_back(
        {{"name", shown(c.network.layers[n].name)},
         {"kind", kind_name(c.network.layers[n])},
         {"macs", cost.macs},
         {"trainable", c.network.layers[n].trainable},
         {"instructions_per_step", way.batch * (cost.forward + cost.backward) + cost.update}});
  }
  const json out = {{"format", "odt-fit-1"},
                    {"model", shown(c.network.name)},
                    {"board", board.name},
                    {"cpu", board.cpu},
                    {"kernels", kernels_name(board.kernels)},
                    {"arena_bytes", board.arena_bytes},
                    {"batch", way.batch},
                    {"k", way.k},
                    {"train_samples", r.train},
                    {"heldout_samples", r.heldout},
                    {"layers", layers},
                    {"resident", ram_json(resident.ram)},
                    {"streamed", ram_json(streamed.ram)},
                    {"fits_resident", resident.ram.total() <= board.arena_bytes},
                    {"fits_streamed", streamed.ram.total() <= board.arena_bytes},
                    {"ways", ways},
                    {"fits", report.chosen.has_value()},
                    {"image_bytes", c.image.size()},
                    {"instructions_per_step", report.cost.training_step},
                    {"instructions_per_inference", report.cost.inference},
                    {"step_s", report.step_s},
                    {"epoch_s", report.epoch_s},
                    {"would_fit", would}};
  return out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace odt::compiler
