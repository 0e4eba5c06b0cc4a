#include <algorithm>

#include "baseline.h"
#include "recipes.h"
#include "tasks.h"

namespace odt::learn {
namespace {

constexpr int kEpochs = 20;
constexpr Shift kShifts[] = {Shift::kRot90, Shift::kRot30, Shift::kInversion, Shift::kGain};
constexpr int kBatches[] = {1, 2, 4, 8, 16, 32};

using Rows = std::vector<std::pair<std::string, odt_run_spec_t>>;

Rows adapt_rows(const IntNet& net, const Set& train) {
  odt_run_spec_t fine = parse_run("k15 mse mu2,0,-2 mo-3 dz4 b8");
  fine.epochs = kEpochs;
  odt_run_spec_t ti = plain_run(8, {1, 1, 1});
  ti.epochs = kEpochs;
  odt_run_spec_t psto = int8_run(net, train, kEpochs);
  psto.rounding = ODT_ROUND_PSTO;
  return {{"int8", int8_run(net, train, kEpochs)},
          {"int8_psto", psto},
          {"int8_mu1", ti},
          {"k15", fine},
          {"literal_mu1", literal_run(1, kEpochs)},
          {"literal_mu2", literal_run(2, kEpochs)},
          {"literal_mu4", literal_run(4, kEpochs)}};
}

void adapt(const std::vector<DigitsDraw>& draws, const Options& o, Report& report) {
  std::vector<double> points, falling;
  for (const Shift shift : kShifts) {
    Baseline fp32(grid(o.quick, false), kEpochs);
    Rows rows;
    std::vector<std::vector<double>> got;
    std::vector<double> before;
    for (std::size_t d = 0; d < draws.size(); ++d) {
      const auto seed = static_cast<std::uint32_t>(d + 1);
      const Set train = to_set(shifted(draws[d].adapt, shift));
      const Set test = to_set(shifted(draws[d].test, shift));
      fp32.draw(draws[d].start, train, test, seed);
      const IntNet net(draws[d].image);
      before.push_back(net.accuracy(test));
      rows = adapt_rows(net, train);
      got.resize(rows.size());
      for (std::size_t r = 0; r < rows.size(); ++r)
        got[r].push_back(net.train(rows[r].second, train, nullptr, test, seed).after);
    }
    const std::string name = shift_name(shift);
    report.note("digits " + name + ": before " + text_of(before) + ", fp32 " +
                text_of(fp32.accuracies(false)) + " (" + fp32.best(false).text() +
                "), with a falling rate too " + text_of(fp32.accuracies(true)) + " (" +
                fp32.best(true).text() + ")");
    report.json["digits"][name] = {{"before", before},
                                   {"fp32", fp32.accuracies(false)},
                                   {"fp32_cell", fp32.best(false).text()},
                                   {"fp32_falling", fp32.accuracies(true)},
                                   {"fp32_falling_cell", fp32.best(true).text()}};
    for (std::size_t r = 0; r < rows.size(); ++r) {
      report.note("  " + rows[r].first + " " + text_of(got[r]));
      report.json["digits"][name][rows[r].first] = got[r];
    }
    points.push_back(100 * mean(minus(got[0], fp32.accuracies(false))));
    falling.push_back(100 * mean(minus(got[0], fp32.accuracies(true))));
    report.value("learn_int8_adapt_" + name + "_pt", points.back(), "points");
  }
  report.value("learn_int8_adapt_mean_pt", mean(points), "points");
  report.value("learn_int8_adapt_worst_pt", least(points), "points");
  report.value("learn_int8_adapt_mean_vs_falling_pt", mean(falling), "points");
}

void scratch(const std::vector<DigitsDraw>& draws, const Options& o, Report& report) {
  const std::vector<std::pair<std::string, odt_run_spec_t>> rows = {
      {"int8", parse_run("k8 psto mse mu3,2,1 b8 e20")},
      {"int8_mu2", parse_run("k8 psto mse mu2,2,2 b8 e20")},
      {"literal_mu1", literal_run(1, kEpochs)}};
  Baseline fp32(grid(o.quick, true), kEpochs);
  std::vector<std::vector<double>> got(rows.size());
  for (std::size_t d = 0; d < draws.size(); ++d) {
    const auto seed = static_cast<std::uint32_t>(d + 1);
    Images all = draws[d].pretrain;
    all.pixels.insert(all.pixels.end(), draws[d].adapt.pixels.begin(), draws[d].adapt.pixels.end());
    all.labels.insert(all.labels.end(), draws[d].adapt.labels.begin(), draws[d].adapt.labels.end());
    const Set train = to_set(all), test = to_set(draws[d].test);
    FloatNet net = digits_net(o.first_draw * 100 + seed);
    net.target_correct = Row::Constant(10, 1.0f);  // +64 and -16 in steps of 2^-6
    net.target_wrong = Row::Constant(10, -0.25f);
    fp32.draw(net, train, test, seed);
    QuantOptions q;
    q.hidden_range = 64;
    q.logit_exp = -6;
    const IntNet integer(quantise(net, to_matrix(train), q, 1));
    for (std::size_t r = 0; r < rows.size(); ++r)
      got[r].push_back(integer.train(rows[r].second, train, nullptr, test, seed).after);
  }
  report.note("digits from scratch: fp32 " + text_of(fp32.accuracies(false)) + " (" +
              fp32.best(false).text() + "), with a falling rate too " +
              text_of(fp32.accuracies(true)) + " (" + fp32.best(true).text() + ")");
  report.json["scratch"]["fp32"] = fp32.accuracies(false);
  report.json["scratch"]["fp32_falling"] = fp32.accuracies(true);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    report.note("  " + rows[r].first + " " + text_of(got[r]));
    report.json["scratch"][rows[r].first] = got[r];
  }
  report.value("learn_int8_scratch_pt", 100 * mean(minus(got[0], fp32.accuracies(false))),
               "points");
}

// A run has collapsed where it ends below 0.90 (rot90 and inversion start below 0.2) or a layer
// died.
struct Collapse {
  int runs = 0, dead = 0;
  double worst = 1;
  std::string where;
  void add(const IntNet& net, const odt_run_spec_t& spec, const Set& train, const Set& test,
           std::uint32_t seed, const char* shift, nlohmann::json& json) {
    const IntResult r = net.train(spec, train, nullptr, test, seed);
    ++runs;
    if (r.after < 0.9 || (r.epochs.back().alarms & ODT_ALARM_DEAD_LAYER)) ++dead;
    const int mu = spec.mu_weight[0];
    json.push_back({{"shift", shift}, {"batch", spec.batch}, {"mu", mu}, {"accuracy", r.after}});
    if (r.after >= worst) return;
    worst = r.after;
    char text[64];
    std::snprintf(text, sizeof text, "%s batch %d mu %d", shift, spec.batch, mu);
    where = text;
  }
};

void collapsed(const std::vector<DigitsDraw>& draws, const Options& o, Report& report) {
  Collapse all, wide;
  for (std::size_t d = 0; d < draws.size(); ++d)
    for (const Shift shift : {Shift::kRot90, Shift::kInversion}) {
      const Set train = to_set(shifted(draws[d].adapt, shift));
      const Set test = to_set(shifted(draws[d].test, shift));
      const IntNet net(draws[d].image);
      const auto seed = static_cast<std::uint32_t>(d + 1);
      for (const int batch : kBatches)
        for (const int mu : {1, 2}) {
          if (o.quick && (mu == 1 || batch == 2 || batch == 4 || batch == 16)) continue;
          odt_run_spec_t spec = plain_run(8, {mu, mu, mu});
          spec.mu_offset = -3;
          spec.batch = static_cast<std::uint16_t>(batch);
          spec.epochs = kEpochs;
          all.add(net, spec, train, test, seed, shift_name(shift), report.json["collapsed"]);
          if (batch != 1) continue;
          spec.mu_offset = 1;  // TI's default
          wide.add(net, spec, train, test, seed, shift_name(shift),
                   report.json["collapsed_offset1"]);
        }
    }
  report.value("collapsed_runs", all.dead, "runs");
  report.value("collapsed_runs_of", all.runs, "runs");
  report.value("collapsed_worst_accuracy", all.worst, "share");
  report.value("collapsed_batch1_mu_offset1_runs", wide.dead, "runs");
  report.note("worst: " + all.where + "; batch 1 with mu_offset 1: " + std::to_string(wide.dead) +
              " of " + std::to_string(wide.runs) + " collapsed");
}

struct GuardRow {
  std::string name;
  std::uint32_t heldout;
  std::vector<double> drops;
};

// Few samples on a model that is nearly right: the gain shift, 20 samples to train on.
void guard(const std::vector<DigitsDraw>& draws, const Options& o, Report& report) {
  constexpr std::uint32_t kTrain = 20;
  std::vector<GuardRow> rows = {{"auto", 50, {}},
                                {"auto_few", 6, {}},
                                {"int8_guarded", 50, {}},
                                {"int8_unguarded", 50, {}},
                                {"literal_mu1", 50, {}}};
  for (std::size_t n = 0; n < 20; ++n) {
    const DigitsDraw& d = draws[n % draws.size()];
    const auto order =
        shuffled(d.adapt.count(), o.first_draw * 1000 + static_cast<std::uint32_t>(n));
    const Images mixed = shifted(d.adapt.pick(order), Shift::kGain);
    const Set test = to_set(shifted(d.test, Shift::kGain));
    const IntNet net(d.image);
    const double before = net.accuracy(test);
    for (GuardRow& row : rows) {
      // auto_few: the held-out samples are of the 20.
      const std::uint32_t n_train = row.heldout < 20 ? kTrain - row.heldout : kTrain;
      const Set train = to_set(mixed.slice(0, n_train));
      const Set held = to_set(mixed.slice(n_train, row.heldout));
      odt_run_spec_t spec = row.name.starts_with("auto") ? auto_run(net, train, held, false)
                            : row.name == "literal_mu1"  ? literal_run(1, 30)
                                                         : parse_run("k8 mse mu2,2,2 b8 e30");
      if (row.name == "int8_guarded") spec.guard = true;
      row.drops.push_back(
          100 *
          (net.train(spec, train, &held, test, static_cast<std::uint32_t>(n + 1)).after - before));
    }
  }
  report.value("guard_test_drop_mean_pt", mean(rows[0].drops), "points");
  report.value("guard_test_drop_worst_pt", least(rows[0].drops), "points");
  for (const GuardRow& row : rows) {
    report.value("guard_" + row.name + "_mean_pt", mean(row.drops), "points");
    report.value("guard_" + row.name + "_worst_pt", least(row.drops), "points");
    report.json["guard"][row.name] = row.drops;
  }
}

}  // namespace

FloatNet digits_net(std::uint32_t seed) {
  FloatNet net;
  net.add_conv(8, 3, 3, seed);
  net.add_dense(108, 160, true, seed);
  net.add_dense(160, 10, false, seed);
  return net;
}

DigitsDraw::DigitsDraw(const Images& all, std::uint32_t seed) : start(digits_net(seed)) {
  const Images mixed = all.pick(shuffled(all.count(), seed));
  pretrain = mixed.slice(0, 900);
  adapt = mixed.slice(900, 400);
  test = mixed.slice(1300, mixed.count() - 1300);
  const Set set = to_set(pretrain), own = to_set(test);
  SgdOptions o;
  o.rate = 0.05f;
  o.by_thirds = {1, 0.3f, 0.1f};
  o.momentum = 0.9f;
  o.decay = 1e-4f;
  o.batch = 16;
  o.epochs = 30;
  o.order_seed = seed;
  const Matrix x = to_matrix(set);
  start.train(x, set.y, o);
  start.set_targets(x, set.y);
  source = start.accuracy(to_matrix(own), own.y);
  image = quantise(start, x, {}, source);
}

void digits_tasks(const Options& o, Report& report) {
  const Images all = load_digits(o.digits);
  std::vector<DigitsDraw> draws;
  std::vector<double> fp32, int8;
  for (std::uint32_t i = 0; i < (o.quick ? 2u : 10u); ++i) {
    draws.emplace_back(all, o.first_draw + i);
    fp32.push_back(draws.back().source);
    int8.push_back(IntNet(draws.back().image).accuracy(to_set(draws.back().test)));
  }
  report.note("digits, own sensor: fp32 " + text_of(fp32) + ", int8 " + text_of(int8));
  adapt(draws, o, report);
  draws.resize(std::min<std::size_t>(draws.size(), 5), draws[0]);
  scratch(draws, o, report);
  collapsed(draws, o, report);
  guard(draws, o, report);
}

}  // namespace odt::learn
