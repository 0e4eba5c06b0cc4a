// Rule 1.13: int16 tensors with shared exponents at fp32's own hyperparameters, from the same
// start.
#include <algorithm>

#include "baseline.h"
#include "dfp_image.h"
#include "recipes.h"
#include "tasks.h"

namespace odt::learn {
namespace {

std::vector<std::uint8_t> dfp_image(const FloatNet& net) {
  testing::NetSpec spec;
  spec.arith = 1;
  spec.input_exponent = -7;
  const FloatLayer& first = net.layers[0];
  const auto side = static_cast<std::uint16_t>(first.side);
  if (first.conv)
    spec.input_dims = {1, side, side};
  else
    spec.input_dims = {static_cast<std::uint16_t>(first.w.rows())};
  for (const FloatLayer& l : net.layers) {
    testing::LayerSpec s;
    s.kind = l.conv ? testing::OpKind::kConv2d : testing::OpKind::kLinear;
    s.relu = l.relu;
    s.trainable = true;
    if (l.conv) s.k_h = s.k_w = static_cast<std::uint16_t>(l.kernel);
    const Matrix w = l.conv ? Matrix(l.w.transpose()) : l.w;
    testing::set_dfp_layer(&s, {w.data(), w.data() + w.size()},
                           {l.b.data(), l.b.data() + l.b.size()},
                           static_cast<std::uint32_t>(l.w.cols()));
    spec.layers.push_back(s);
    if (!l.conv) continue;
    testing::LayerSpec flat;
    flat.kind = testing::OpKind::kFlatten;
    flat.clip_lo = -32767;
    flat.clip_hi = 32767;
    spec.layers.push_back(flat);
  }
  spec.n_classes = static_cast<std::uint16_t>(net.layers.back().w.cols());
  return testing::build_image(spec);
}

// A cell of the grid as a run; DFP16's rate is on the batch's sum.
odt_run_spec_t dfp_run(const Cell& cell, int epochs, bool blocked) {
  odt_run_spec_t s = plain_run(16, {0, 0, 0});
  s.rule_set = ODT_RULE_DFP16;
  s.loss = ODT_LOSS_CE;
  s.batch = static_cast<std::uint16_t>(cell.batch);
  s.epochs = static_cast<std::uint16_t>(epochs);
  s.blocked = blocked;
  const testing::DfpRate rate = testing::dfp_rate(static_cast<double>(cell.rate) / cell.batch);
  s.lr_s = rate.s;
  for (auto& m : s.lr_m) m = rate.m;
  return s;
}

// Cross-entropy, the loss that DFP16 has for classes.
std::vector<Cell> ce_grid(bool quick) {
  std::vector<Cell> cells;
  for (const Cell& cell : grid(false, false))
    if (cell.loss == Loss::kCe && !cell.falling && !(quick && cell.batch == 32))
      cells.push_back(cell);
  return cells;
}

struct Work {
  FloatNet start;
  Set train, test;
};

double compare(const std::string& name, const std::vector<Work>& draws, int epochs,
               const Options& o, Report& report) {
  Baseline fp32(ce_grid(o.quick), epochs);
  for (std::size_t d = 0; d < draws.size(); ++d)
    fp32.draw(draws[d].start, draws[d].train, draws[d].test, static_cast<std::uint32_t>(d + 1));
  const Cell cell = fp32.best(false);
  std::vector<double> dfp, blocked;
  for (std::size_t d = 0; d < draws.size(); ++d) {
    const IntNet net(dfp_image(draws[d].start));
    const auto seed = static_cast<std::uint32_t>(d + 1);
    for (auto* to : {&dfp, &blocked})
      to->push_back(net.train(dfp_run(cell, epochs, to == &blocked), draws[d].train, nullptr,
                              draws[d].test, seed)
                        .after);
  }
  report.note("dfp16 " + name + " (" + cell.text() + "): fp32 " + text_of(fp32.accuracies(false)) +
              ", dfp16 " + text_of(dfp) + ", blocked exponents " + text_of(blocked));
  report.json["dfp16"][name] = {
      {"fp32", fp32.accuracies(false)}, {"dfp16", dfp}, {"blocked", blocked}};
  const auto points = minus(dfp, fp32.accuracies(false));
  report.value("learn_dfp16_" + name + "_pt", 100 * mean(points), "points");
  report.value("learn_dfp16_" + name + "_worst_draw_pt", 100 * least(points), "points");
  return 100 * mean(points);
}

}  // namespace

void dfp_tasks(const Options& o, Report& report) {
  const Images all = load_digits(o.digits);
  std::vector<double> points;
  const std::uint32_t n = o.quick ? 2 : 5;
  std::vector<DigitsDraw> draws;
  for (std::uint32_t i = 0; i < n; ++i) draws.emplace_back(all, o.first_draw + i);
  std::vector<Work> scratch;
  for (std::uint32_t i = 0; i < n; ++i)
    scratch.push_back(
        {digits_net(o.first_draw * 100 + i + 1), to_set(draws[i].pretrain), to_set(draws[i].test)});
  points.push_back(compare("scratch", scratch, 10, o, report));
  for (const Shift shift : {Shift::kRot90, Shift::kRot30, Shift::kInversion, Shift::kGain}) {
    std::vector<Work> works;
    for (const DigitsDraw& d : draws)
      works.push_back({d.start, to_set(shifted(d.adapt, shift)), to_set(shifted(d.test, shift))});
    points.push_back(compare(shift_name(shift), works, 20, o, report));
  }
  report.value("learn_dfp16_pt", mean(points), "points");
  report.value("learn_dfp16_worst_task_pt", least(points), "points");
}

}  // namespace odt::learn
