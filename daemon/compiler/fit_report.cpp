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

// As a run's placement says it (training::placement_text()).
std::string way_text(const FitWay& way) {
  const char* what = way.form == FitForm::kSamples ? "samples" : "frozen outputs";
  return absl::StrCat(
      way.form == FitForm::kTail ? "the trainable part alone, " : "",
      way.streamed ? absl::StrCat("streamed ", way.form == FitForm::kSamples ? "batches" : what)
                   : absl::StrCat(what, " on the board"),
      way.best_on_host ? ", the guard's best weights on the host" : "");
}

std::string choice_text(const FitChoice& c, bool dfp16) {
  return absl::StrCat("--trainable ", c.trainable_layers, " --batch ", c.way.batch,
                      dfp16 ? "" : absl::StrCat(" --k ", c.way.k), " (", way_text(c.way),
                      "): ", c.way.ram.total(), " bytes");
}

std::string ram_line(const FitWay& way, std::uint64_t arena, bool dfp16) {
  static const char* const kForms[] = {"", ", frozen", ", tail"};
  const FitRam& ram = way.ram;
  const std::string label =
      absl::StrCat(dfp16 ? "" : absl::StrCat("k ", way.k, ", "), "batch ", way.batch,
                   way.streamed ? ", streamed" : ", resident", kForms[static_cast<int>(way.form)],
                   way.best_on_host ? " *" : "");
  const std::string verdict =
      !way.refused.empty()   ? absl::StrCat("refused by its firmware: ", way.refused)
      : ram.total() <= arena ? std::string("fits")
                             : absl::StrCat("needs ", ram.total() - arena, " more");
  return absl::StrFormat("%-33s %8d %8d %8d %11d %9d %8d %8d  %s\n", label, ram.image, ram.weights,
                         ram.best, ram.activations, ram.gradients, ram.samples, ram.total(),
                         verdict);
}

// Rows of the table: all where they are few, else the first, those that a limit refuses, and what
// takes the least or is chosen.
std::vector<bool> shown_rows(const FitReport& report) {
  constexpr std::size_t kAll = 12, kFirst = 4;
  const auto& ways = report.ways;
  std::vector<bool> out(ways.size(), ways.size() <= kAll);
  const auto less = [](const FitWay& a, const FitWay& b) {
    if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
    return a.ram.total() < b.ram.total();
  };
  const auto least = std::min_element(ways.begin(), ways.end(), less);
  out[static_cast<std::size_t>(least - ways.begin())] = true;
  for (std::size_t n = 0; n < ways.size(); ++n)
    if (n < kFirst || !ways[n].refused.empty() || (report.chosen && n + kFirst >= ways.size()))
      out[n] = true;
  return out;
}

std::string ram_lines(const FitReport& report, std::uint64_t arena, bool dfp16) {
  std::string out =
      absl::StrFormat("%-33s %8s %8s %8s %11s %9s %8s %8s\n", "RAM", "image", "weights", "best",
                      "activations", "gradients", "samples", "total");
  const auto rows = shown_rows(report);
  std::size_t hidden = 0;
  const auto tell_hidden = [&] {
    if (hidden > 0) absl::StrAppend(&out, "... ", hidden, " more, which do not fit (--json)\n");
    hidden = 0;
  };
  for (std::size_t n = 0; n < rows.size(); ++n) {
    if (!rows[n]) {
      ++hidden;
      continue;
    }
    tell_hidden();
    out += ram_line(report.ways[n], arena, dfp16);
  }
  tell_hidden();
  const auto any = [&report](auto has) {
    return std::any_of(report.ways.begin(), report.ways.end(), has);
  };
  if (any([](const FitWay& way) { return way.best_on_host; }))
    out += "* the guard's best weights stay with odtd\n";
  if (any([](const FitWay& way) { return way.form != FitForm::kSamples; }))
    out +=
        "frozen: odtd computes what the frozen layers give for each sample; tail: the board gets "
        "the trainable part alone\n";
  return out;
}

double step_of(const LayerCost& cost, const FitWay& way) {
  return way.batch * (cost.forward + cost.backward) + cost.update;
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
    const bool by_host = r.form != FitForm::kSamples && n < first_trainable(net);
    std::string k, bound;
    if (!l.k.empty()) {
      const auto [lo, hi] = std::minmax_element(l.k.begin(), l.k.end());
      k = *lo == *hi ? absl::StrCat(*lo) : absl::StrCat(*lo, "..", *hi);
    }
    if (l.is_compute() && net.arithmetic == Arithmetic::kInteger)
      bound = absl::StrCat(accumulator_bound(net, l));
    absl::StrAppendFormat(&out, "%-3d %-14s %-12s %9d %10d %7s %13s  %s%s\n", n, kind_name(l),
                          shape_text(l.out_shape), l.weights.size(), cost.macs, k, bound,
                          by_host ? std::string("-") : absl::StrFormat("%.3g", step_of(cost, r)),
                          by_host                          ? "  frozen, computed by odtd"
                          : l.is_compute() && !l.trainable ? "  frozen"
                                                           : "");
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
  static const char* const kForms[] = {"samples", "frozen", "tail"};
  return {{"k", way.k},
          {"batch", way.batch},
          {"streamed", way.streamed},
          {"best_on_host", way.best_on_host},
          {"form", kForms[static_cast<int>(way.form)]},
          {"ram", ram_json(way.ram)},
          {"refused", way.refused},
          {"fits", way.fits(arena)}};
}

json choice_json(const FitChoice& f, std::uint64_t arena) {
  json out = way_json(f.way, arena);
  out.erase("ram");
  out.erase("refused");
  out.erase("fits");
  out["trainable_layers"] = f.trainable_layers;
  out["bytes"] = f.way.ram.total();
  return out;
}

// The first way with whole samples, resident or streamed; null: none was asked for.
const FitWay* plain(const FitReport& report, bool streamed) {
  for (const FitWay& way : report.ways)
    if (way.form == FitForm::kSamples && way.streamed == streamed) return &way;
  return nullptr;
}

json layers_json(const Compiled& c, const BoardFigures& board, const FitWay& way) {
  json layers = json::array();
  for (std::size_t n = 0; n < c.network.layers.size(); ++n) {
    const LayerCost cost = layer_cost(c.network, n, board.kernels, way.k, way.batch);
    const bool by_host = way.form != FitForm::kSamples && n < first_trainable(c.network);
    layers.push_back({{"name", shown(c.network.layers[n].name)},
                      {"kind", kind_name(c.network.layers[n])},
                      {"macs", cost.macs},
                      {"trainable", c.network.layers[n].trainable},
                      {"on_board", !by_host},
                      {"instructions_per_step", by_host ? 0 : step_of(cost, way)}});
  }
  return layers;
}

std::string time_text(const FitTime& time) {
  std::string out = absl::StrFormat("%.4g instructions a step, %.4g an inference",
                                    time.cost.training_step, time.cost.inference);
  if (time.epoch_s > 0)
    absl::StrAppendFormat(&out, "; about %.3g s a step, %.3g s an epoch", time.step_s,
                          time.epoch_s);
  return out;
}

std::string refused_text(const FitReport& report, const BoardFigures& board) {
  const bool refused = std::all_of(report.ways.begin(), report.ways.end(),
                                   [](const FitWay& way) { return !way.refused.empty(); });
  if (refused)
    return absl::StrCat("does not fit: the firmware of ", board.name,
                        " refuses it: ", report.ways.front().refused, "\n");
  std::uint64_t least = UINT64_MAX;
  for (const FitWay& way : report.ways)
    if (way.refused.empty()) least = std::min(least, way.ram.total());
  return absl::StrCat("does not fit: at least ", least, " bytes of ", board.arena_bytes, "\n");
}

std::string chosen_text(const FitReport& report, bool dfp16) {
  std::string out = absl::StrCat("fits: ", way_text(*report.chosen), "\n");
  if (!report.mild) return out;
  const FitWay& way = *report.mild;
  if (way.batch == report.chosen->batch && way.k == report.chosen->k &&
      way.form == report.chosen->form && way.streamed == report.chosen->streamed)
    return out;
  absl::StrAppend(&out,
                  "where the model is good on the new data before training (above 5/6 of its "
                  "own accuracy), odtd takes batch ",
                  way.batch, dfp16 ? "" : absl::StrCat(", k ", way.k), ": ", way_text(way), ", ",
                  way.ram.total(), " bytes");
  if (report.mild_time.epoch_s > 0)
    absl::StrAppendFormat(&out, ", about %.3g s an epoch", report.mild_time.epoch_s);
  return out + "\n";
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
  absl::StrAppend(&out, "predicted ", time_text(report.time), "\n");
  if (report.chosen) return out + chosen_text(report, dfp16);
  out += refused_text(report, board);
  for (const auto& choice : report.would_fit)
    absl::StrAppend(&out, "would fit: ", choice_text(choice, dfp16), "\n");
  if (report.would_fit.empty())
    out += "nothing of it fits, not even its last layer: take a smaller model or a larger board\n";
  return out;
}

std::string fit_json(const Compiled& c, const BoardFigures& board, const FitRequest& r,
                     const FitReport& report) {
  const std::uint64_t arena = board.arena_bytes;
  json would = json::array();
  for (const auto& f : report.would_fit) would.push_back(choice_json(f, arena));
  const FitWay& way = shown_way(report);
  json ways = json::array();
  for (const FitWay& w : report.ways) ways.push_back(way_json(w, arena));
  json mild = nullptr;
  if (report.mild) {
    mild = way_json(*report.mild, arena);
    mild["step_s"] = report.mild_time.step_s;
    mild["epoch_s"] = report.mild_time.epoch_s;
  }
  const FitWay *resident = plain(report, false), *streamed = plain(report, true);
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
                    {"layers", layers_json(c, board, way)},
                    {"resident", resident ? ram_json(resident->ram) : json()},
                    {"streamed", streamed ? ram_json(streamed->ram) : json()},
                    {"fits_resident", resident && resident->fits(arena)},
                    {"fits_streamed", streamed && streamed->fits(arena)},
                    {"ways", ways},
                    {"chosen", report.chosen ? way_json(*report.chosen, arena) : json()},
                    {"mild", mild},
                    {"fits", report.chosen.has_value()},
                    {"image_bytes", c.image.size()},
                    {"instructions_per_step", report.time.cost.training_step},
                    {"instructions_per_inference", report.time.cost.inference},
                    {"step_s", report.time.step_s},
                    {"epoch_s", report.time.epoch_s},
                    {"would_fit", would}};
  return out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace odt::compiler
