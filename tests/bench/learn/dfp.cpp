// Rule 1.13: int16 tensors with shared exponents at fp32's own hyperparameters, from the same
// start.
#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "baseline.h"
#include "dfp_image.h"
#include "recipes.h"
#include "tasks.h"

namespace odt::learn {
namespace {

// Exponent at which every mean logit fits int8.
int target_exp(const FloatNet& net) {
  const float largest =
      std::max(net.target_correct.cwiseAbs().maxCoeff(), net.target_wrong.cwiseAbs().maxCoeff());
  int e = -20;
  while (largest > std::ldexp(127.0f, e)) ++e;
  return e;
}

// regress: targets are logits (DFP16 has MSE for regressions, cross-entropy for classes).
std::vector<std::uint8_t> dfp_image(const FloatNet& net, bool regress) {
  testing::NetSpec spec;
  spec.arith = 1;
  spec.task = regress ? 1 : 0;
  spec.input_exponent = -7;
  if (regress) spec.target_exponent = static_cast<std::int8_t>(target_exp(net));
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
  s.loss = cell.loss == Loss::kCe ? ODT_LOSS_CE : ODT_LOSS_MSE;
  s.batch = static_cast<std::uint16_t>(cell.batch);
  s.epochs = static_cast<std::uint16_t>(epochs);
  s.blocked = blocked;
  const testing::DfpRate rate = testing::dfp_rate(static_cast<double>(cell.rate) / cell.batch);
  s.lr_s = rate.s;
  for (auto& m : s.lr_m) m = rate.m;
  return s;
}

std::vector<Cell> cells_of(Loss loss, bool quick, bool from_scratch) {
  std::vector<Cell> cells;
  for (const Cell& cell : grid(false, from_scratch))
    if (cell.loss == loss && !cell.falling && !(quick && cell.batch == 32)) cells.push_back(cell);
  return cells;
}

void check(odt_status_t status, const odt_error_t& err) {
  if (status != ODT_OK)
    throw std::runtime_error(std::string("firmware/odt refuses: ") + (err.what ? err.what : "?"));
}

// MSE as fp32 has it: a regression to the mean logits; the class is the largest logit.
double train_regression(const FloatNet& net, odt_run_spec_t spec, const Set& train, const Set& test,
                        std::uint32_t seed) {
  const auto image = dfp_image(net, true);
  odt_error_t err{};
  const auto model = std::make_unique<odt_model_t>();
  check(odt_model_open(model.get(), image.data(), static_cast<std::uint32_t>(image.size()), &err),
        err);
  const int e = target_exp(net);
  std::vector<std::int8_t> targets;
  for (const std::int8_t label : train.y)
    for (int c = 0; c < model->n_classes; ++c)
      targets.push_back(static_cast<std::int8_t>(
          std::lround(std::ldexp(c == label ? net.target_correct[c] : net.target_wrong[c], -e))));
  const auto blob =
      testing::build_samples(testing::DType::kS8, train.len, train.count, ODT_SAMPLES_TARGETS,
                             targets, {train.x.begin(), train.x.end()});
  odt_samples_t samples;
  check(odt_samples_open(&samples, blob.data(), static_cast<std::uint32_t>(blob.size()), &err),
        err);
  spec.train_samples = train.count;
  spec.order_seed = seed;
  odt_memory_plan_t plan;
  odt_trainer_plan(model.get(), &spec, true, &plan);
  std::vector<std::uint64_t> arena((plan.total_bytes + 7) / 8);
  const auto t = std::make_unique<odt_trainer_t>();
  check(odt_trainer_init(t.get(), model.get(), &spec, true, arena.data(),
                         static_cast<std::uint32_t>(arena.size() * 8), &err),
        err);
  while (!odt_trainer_done(t.get())) {
    odt_step_record_t step;
    odt_epoch_record_t epoch;
    while (!odt_trainer_epoch_complete(t.get()))
      check(odt_trainer_step_resident(t.get(), &samples, &step, &err), err);
    check(odt_trainer_end_epoch(t.get(), 0, 0, &epoch, &err), err);
  }
  std::uint32_t correct = 0;
  std::vector<std::int16_t> z(model->n_classes);
  for (std::uint32_t i = 0; i < test.count; ++i) {
    const auto* x =
        reinterpret_cast<const std::uint8_t*>(test.x.data()) + std::size_t{i} * test.len;
    std::int32_t exponent;
    check(odt_trainer_infer16(t.get(), x, z.data(), &exponent), err);
    correct += std::max_element(z.begin(), z.end()) - z.begin() == test.y[i] ? 1 : 0;
  }
  return static_cast<double>(correct) / test.count;
}

struct Work {
  FloatNet start;
  Set train, test;
};

struct Pair {
  std::vector<double> fp32, dfp, blocked;
};

Pair one_loss(const std::string& name, Loss loss, const std::vector<Work>& draws, int epochs,
              const Options& o, Report& report) {
  Baseline fp32(cells_of(loss, o.quick, name == "scratch"), epochs);
  for (std::size_t d = 0; d < draws.size(); ++d)
    fp32.draw(draws[d].start, draws[d].train, draws[d].test, static_cast<std::uint32_t>(d + 1));
  const Cell cell = fp32.best(false);
  Pair out{fp32.accuracies(false), {}, {}};
  for (std::size_t d = 0; d < draws.size(); ++d)
    for (const bool blocked : {false, true}) {
      const auto seed = static_cast<std::uint32_t>(d + 1);
      const Work& w = draws[d];
      const odt_run_spec_t spec = dfp_run(cell, epochs, blocked);
      (blocked ? out.blocked : out.dfp)
          .push_back(loss == Loss::kMse ? train_regression(w.start, spec, w.train, w.test, seed)
                                        : IntNet(dfp_image(w.start, false))
                                              .train(spec, w.train, nullptr, w.test, seed)
                                              .after);
    }
  report.note("dfp16 " + name + " (" + cell.text() + "): fp32 " + text_of(out.fp32) + ", dfp16 " +
              text_of(out.dfp) + ", blocked exponents " + text_of(out.blocked));
  report.json["dfp16"][name][loss == Loss::kCe ? "ce" : "mse"] = {
      {"fp32", out.fp32}, {"dfp16", out.dfp}, {"blocked", out.blocked}, {"cell", cell.text()}};
  return out;
}

// With the loss that is fp32's better one on this task.
double compare(const std::string& name, const std::vector<Work>& draws, int epochs,
               const Options& o, Report& report) {
  const Pair ce = one_loss(name, Loss::kCe, draws, epochs, o, report);
  const Pair mse = one_loss(name, Loss::kMse, draws, epochs, o, report);
  const Pair& best = mean(mse.fp32) > mean(ce.fp32) ? mse : ce;
  const auto points = minus(best.dfp, best.fp32);
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
  for (std::uint32_t i = 0; i < n; ++i) {
    scratch.push_back(
        {digits_net(o.first_draw * 100 + i + 1), to_set(draws[i].pretrain), to_set(draws[i].test)});
    scratch.back().start.target_correct = Row::Constant(10, 1.0f);
    scratch.back().start.target_wrong = Row::Constant(10, -0.25f);
  }
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
