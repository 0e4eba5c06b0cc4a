#include <algorithm>

#include "baseline.h"
#include "recipes.h"
#include "tasks.h"

namespace odt::learn {
namespace {

constexpr int kEpochs = 10;
constexpr Shift kTuned[] = {Shift::kNone, Shift::kGain, Shift::kFlip, Shift::kInversion,
                            Shift::kRot90};
constexpr Shift kUntuned[] = {Shift::kRot30, Shift::kNoise};

struct ShiftResult {
  double before = 0;
  std::vector<double> auto_points, auto_drop, falling_points;
};

ShiftResult one_shift(const Fashion& task, Shift shift, const Options& o, Report& report) {
  const std::vector<std::pair<std::string, odt_run_spec_t>> rows = {
      {"k8_psto", parse_run("k8 psto ce mu2,1,0 mo-3 b8 guard")},
      {"ti_defaults", parse_run("k8 psto mse mu1,1,1 b8")},
      {"literal_mu1", literal_run(1, kEpochs)}};
  const Set test = task.test(shift);
  const IntNet net(task.image);
  ShiftResult out;
  out.before = net.accuracy(test);
  Baseline fp32(grid(o.quick, false), kEpochs);
  std::vector<double> automatic, small;
  std::vector<std::vector<double>> got(rows.size());
  int strong = 0;
  const std::uint32_t draws = o.quick ? 3 : 10;
  for (std::uint32_t d = 0; d < draws; ++d) {
    const std::uint32_t number = o.first_draw + d;
    const Fashion::Draw draw = task.draw(shift, number);
    fp32.draw(task.start, draw.train, test, number);
    const odt_run_spec_t spec = auto_run(net, draw.train, draw.heldout, false);
    strong += spec.mu_weight[0] > 0 ? 1 : 0;
    automatic.push_back(net.train(spec, draw.train, &draw.heldout, test, number).after);
    small.push_back(net.train(auto_run(net, draw.train, draw.heldout, true), draw.train,
                              &draw.heldout, test, number)
                        .after);
    for (std::size_t r = 0; r < rows.size(); ++r)
      got[r].push_back(net.train(rows[r].second, draw.train, &draw.heldout, test, number).after);
  }
  const std::string name = shift_name(shift);
  char before[16];
  std::snprintf(before, sizeof before, "%.3f", out.before);
  report.note("fmnist " + name + ": before " + before + ", fp32 " +
              text_of(fp32.accuracies(false)) + " (" + fp32.best(false).text() +
              "), with a falling rate too " + text_of(fp32.accuracies(true)) + " (" +
              fp32.best(true).text() + ")");
  report.note("  auto " + text_of(automatic) + " (judged strong in " + std::to_string(strong) +
              " of " + std::to_string(draws) + "), auto with k 8 " + text_of(small));
  auto& json = report.json["fmnist"][name];
  json = {{"before", out.before},
          {"fp32", fp32.accuracies(false)},
          {"fp32_cell", fp32.best(false).text()},
          {"fp32_falling", fp32.accuracies(true)},
          {"fp32_falling_cell", fp32.best(true).text()},
          {"auto", automatic},
          {"auto_k8", small},
          {"strong", strong}};
  for (std::size_t r = 0; r < rows.size(); ++r) {
    report.note("  " + rows[r].first + " " + text_of(got[r]));
    json[rows[r].first] = got[r];
  }
  out.auto_points = minus(automatic, fp32.accuracies(false));
  out.falling_points = minus(automatic, fp32.accuracies(true));
  for (const double a : automatic) out.auto_drop.push_back(a - out.before);
  report.value("learn_fmnist_auto_" + name + "_pt", 100 * mean(out.auto_points), "points");
  return out;
}

}  // namespace

Fashion::Fashion(const std::string& folder, std::uint32_t seed) {
  train_ = load_fashion(folder, false);
  test_ = load_fashion(folder, true);
  start.add_dense(196, 32, true, seed);
  start.add_dense(32, 10, false, seed);
  const Set set = to_set(train_.slice(0, kPretrain)), own = to_set(test_);
  SgdOptions o;
  o.rate = 0.05f;
  o.by_thirds = {1, 0.3f, 0.1f};
  o.momentum = 0.9f;
  o.decay = 1e-3f;
  o.batch = 64;
  o.epochs = 20;
  o.order_seed = seed;
  const Matrix x = to_matrix(set);
  start.train(x, set.y, o);
  start.set_targets(x, set.y);
  source = start.accuracy(to_matrix(own), own.y);
  image = quantise(start, x, {}, source);
}

Fashion::Draw Fashion::draw(Shift shift, std::uint32_t number) const {
  auto order = shuffled(train_.count() - kPretrain, number);
  order.resize(kTrain + kHeldout);
  for (auto& row : order) row += kPretrain;
  const Images moved = shifted(train_.pick(order), shift, number);
  return {to_set(moved.slice(0, kTrain)), to_set(moved.slice(kTrain, kHeldout))};
}

Set Fashion::test(Shift shift) const { return to_set(shifted(test_, shift, 0)); }

void fashion_tasks(const Options& o, Report& report) {
  const Fashion task(o.fashion, 1);
  std::vector<double> points, falling;
  double none_drop = 0;
  char text[64];
  std::snprintf(text, sizeof text, "fmnist, own sensor: fp32 %.4f, int8 %.4f", task.source,
                IntNet(task.image).accuracy(task.test(Shift::kNone)));
  report.note(text);
  for (const Shift shift : kTuned) {
    const ShiftResult r = one_shift(task, shift, o, report);
    points.push_back(100 * mean(r.auto_points));
    falling.push_back(100 * mean(r.falling_points));
    if (shift == Shift::kNone) none_drop = 100 * least(r.auto_drop);
  }
  report.value("learn_fmnist_auto_mean_pt", mean(points), "points");
  report.value("learn_fmnist_auto_worst_pt", least(points), "points");
  report.value("learn_fmnist_none_drop_pt", none_drop, "points");
  report.value("learn_fmnist_auto_mean_vs_falling_pt", mean(falling), "points");
  for (const Shift shift : kUntuned) one_shift(task, shift, o, report);
}

}  // namespace odt::learn
