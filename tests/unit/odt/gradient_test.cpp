// Gradients of every layer kind against finite differences of the same network in double
// precision, on networks of small integers where nothing is rounded or clipped. What is looked at
// is what the weights and offsets did in one step, of the oracle and of the library.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "compare.h"
#include "full.h"
#include "real_net.h"

namespace odt::testing {
namespace {

int gradient_nets() { return test::repeats(100, 1000); }

// Slope of the loss along one parameter; nothing at a kink.
bool slope(RealNet& net, double& parameter, const std::vector<Values>& xs,
           const std::vector<Values>& targets, double* out) {
  const double h = 1e-4, at = parameter;
  std::vector<size_t> here, right_of, left_of;
  net.loss(xs, targets, &here);
  parameter = at + h;
  double right = net.loss(xs, targets, &right_of);
  parameter = at - h;
  double left = net.loss(xs, targets, &left_of);
  parameter = at;
  *out = (right - left) / (2 * h);
  return right_of == here && left_of == here;
}

bool is_power_of_two(int64_t v) { return v > 0 && (v & (v - 1)) == 0; }

// A random graph whose constants are small and exact. False where an average has no exact shift,
// or an input is quantised.
bool make_exact(Choices& c, NetSpec& net) {
  OracleGraph graph(net);
  for (size_t i = 0; i < net.layers.size(); i++) {
    LayerSpec& l = net.layers[i];
    bool compute = graph.is_compute(i);
    if (l.kind == OpKind::kPrequant) return false;
    l.mult.clear();
    l.clip_lo = l.relu ? 0 : -1000;
    l.clip_hi = 1000;
    if (i + 1 == net.layers.size()) {
      l.clip_lo = -128;
      l.clip_hi = 127;
    }
    if (l.kind == OpKind::kAvgPool || l.kind == OpKind::kGap) {
      if (!is_power_of_two(graph.area(i))) return false;
      l.k.assign(l.outputs, static_cast<int8_t>(bit_length(graph.area(i)) - 1));
      l.offsets.assign(l.outputs, 0);
    }
    if (l.kind == OpKind::kAdd) l.offsets = {1 << 20, 1 << (c.chance(30) ? 21 : 20)};
    if (!compute) continue;
    bool shift = c.chance(50), mult = c.chance(20);
    for (int8_t& w : l.weights) {
      w = static_cast<int8_t>(c.chance(40) ? (c.chance(50) ? 1 : -1) * (shift ? 4 : 1) : 0);
    }
    for (int32_t& b : l.offsets) b = c.range(-3, 3) * (shift ? 16 : 4);
    l.k.assign(l.outputs, static_cast<int8_t>((shift ? 2 : 0) + (mult ? 1 : 0)));
    if (mult) l.mult.assign(l.outputs, 2);
  }
  return true;
}

struct Checked {
  std::map<OpKind, int> kinds;  // ops through which a checked gradient came
  int nets = 0, forks = 0, weights = 0, offsets = 0, kinks = 0;
};

void count_kinds(const OracleGraph& g, Checked* done) {
  done->nets++;
  bool fork = false;
  for (size_t i = 0; i < g.ops(); i++) {
    bool crossed = g.op(i).trainable || g.needs_delta(g.input(i, 0));
    if (crossed) done->kinds[g.op(i).kind]++;
    if (g.needs_delta(g.input(i, 0)) && g.readers(g.input(i, 0)).size() > 1) fork = true;
  }
  if (fork) done->forks++;
}

struct Moved {
  Values weights, offsets;  // before minus after
  int ws = 0, e_d = 0;
};

// Gradient sums as the parameters show them, against the slopes.
void check_layer(Choices& c, RealNet& real, size_t op, const Moved& m,
                 const std::vector<Values>& xs, const std::vector<Values>& targets, Checked* done) {
  const LayerSpec& l = real.graph().op(op);
  double own = (l.mult.empty() ? 1 : l.mult[0]) / std::ldexp(1.0, l.k[0]);
  double to_real = std::ldexp(own, m.e_d), want = 0;
  // k = 16: a weight moves by G * 2^(8 - ws) exactly while ws <= 8.
  for (int i = 0; i < 8 && !m.weights.empty() && m.ws <= 8; i++) {
    auto w = static_cast<size_t>(c.range(0, static_cast<int>(m.weights.size()) - 1));
    if (!slope(real, real.weight(op, w), xs, targets, &want)) {
      done->kinks++;
      continue;
    }
    double got = std::ldexp(static_cast<double>(m.weights[w]), m.ws - 8) * to_real;
    ASSERT_NEAR(got, want, 0.02 + 1e-3 * std::fabs(want)) << "op " << op << " weight " << w;
    done->weights++;
  }
  int bits = bit_length(largest(m.offsets));
  // mu_offset = 7 and k_out at most 3: an offset moves by its gradient while that has 7 bits.
  for (size_t o = 0; o < m.offsets.size() && bits < 7; o++) {
    if (!slope(real, real.offset(op, o), xs, targets, &want)) {
      done->kinks++;
      continue;
    }
    double got = static_cast<double>(m.offsets[o]) * to_real;
    ASSERT_NEAR(got, want, 0.02 + 1e-3 * std::fabs(want)) << "op " << op << " offset " << o;
    done->offsets++;
  }
}

struct ExactRun {
  ComparedRun run;
  std::vector<Values> xs, targets;
};

void give_samples(ExactRun* e) {
  e->run.samples.dtype = e->run.net.input_dtype;
  e->run.samples.flags = 1;
  e->run.samples.values = e->xs;
  e->run.samples.targets = e->targets;
  e->run.samples.labels.assign(e->xs.size(), 0);
}

bool exact_run(uint32_t seed, bool graphs, ExactRun* out) {
  Choices c(seed);
  GraphLimits limits;
  limits.size = c.range(1, 6);
  limits.graphs = graphs;
  limits.task = 1;
  out->run.net = random_graph(c, limits);
  NetSpec& net = out->run.net;
  net.input_dtype = DType::kS8;
  if (!make_exact(c, net)) return false;
  int n = c.range(1, 3);
  odt_run_spec_t& s = out->run.spec;
  s.rule_set = ODT_RULE_NITI;
  s.loss = ODT_LOSS_MSE;
  s.shift_source = ODT_SHIFT_EXACT;
  s.k = 16;
  s.mu_weight[0] = s.mu_weight[1] = s.mu_weight[2] = 4;
  s.mu_offset = 7;
  s.batch = 4;
  s.epochs = 1;
  s.train_samples = static_cast<uint32_t>(n);
  for (uint8_t& w : s.class_weights) w = 64;
  Oracle oracle(net, OracleSettings{});
  for (int b = 0; b < n; b++) {
    Values x, t;
    for (uint32_t i = 0; i < count(net.input_dims); i++) x.push_back(4 * c.range(-3, 3));
    for (int64_t z : oracle.infer(x)) t.push_back(clip<int64_t>(z - c.range(-2, 2), -128, 127));
    out->xs.push_back(x);
    out->targets.push_back(t);
  }
  give_samples(out);
  return true;
}

// One step of the oracle; false where something was rounded.
bool oracle_step(const ExactRun& e, std::vector<Moved>* moved) {
  OracleSettings s;
  s.k = 16;
  s.mu_weight[0] = s.mu_weight[1] = s.mu_weight[2] = 4;
  s.mu_offset = 7;
  s.batch = 4;
  s.epochs = 1;
  s.train_samples = static_cast<int>(e.xs.size());
  Oracle oracle(e.run.net, s);
  std::vector<OracleLayer> before = oracle.layers();
  oracle.step(e.xs, std::vector<int>(e.xs.size(), 0), e.targets);
  for (size_t i = 0; i < before.size(); i++) {
    const OracleLayer& after = oracle.layers()[i];
    Moved m;
    for (size_t w = 0; w < after.m.size(); w++) m.weights.push_back(before[i].m[w] - after.m[w]);
    for (size_t o = 0; o < after.off.size(); o++) {
      m.offsets.push_back(before[i].off[o] - after.off[o]);
    }
    m.ws = after.ws;
    m.e_d = after.e_d;
    moved->push_back(m);
  }
  return oracle.exact();
}

void expect_enough(Checked& done) {
  const int nets = gradient_nets();
  EXPECT_EQ(done.nets, nets);
  EXPECT_GE(done.forks, nets / 12);
  EXPECT_GE(done.weights, 5 * nets);
  EXPECT_GE(done.offsets, nets);
  for (OpKind k :
       {OpKind::kConv2d, OpKind::kLinear, OpKind::kFlatten, OpKind::kMaxPool, OpKind::kAvgPool,
        OpKind::kGap, OpKind::kAdd, OpKind::kConcat, OpKind::kResize}) {
    EXPECT_GE(done.kinds[k], nets / 100) << "kind " << static_cast<int>(k);
  }
  EXPECT_LT(done.kinks, done.weights) << "too many kinks";
}

std::vector<size_t> trainable_ops(const NetSpec& net) {
  std::vector<size_t> ops;
  for (size_t i = 0; i < net.layers.size(); i++) {
    if (net.layers[i].trainable) ops.push_back(i);
  }
  return ops;
}

// The same step of the library.
void library_step(const ExactRun& e, std::vector<Moved>* moved) {
  LibraryStep step = library_step(e.run);
  ASSERT_EQ(step.failure, "");
  for (size_t i = 0; i < step.after.layers.size(); i++) {
    const LayerView &before = step.before.layers[i], &after = step.after.layers[i];
    Moved m;
    for (size_t w = 0; w < after.m.size(); w++) m.weights.push_back(before.m[w] - after.m[w]);
    for (size_t o = 0; o < after.off.size(); o++) {
      m.offsets.push_back(before.off[o] - after.off[o]);
    }
    m.ws = step.record.layers[i].shift;
    m.e_d = step.epoch.layers[i].e_d;
    moved->push_back(m);
  }
}

void check_integers(bool library) {
  Checked done;
  for (uint32_t seed = 1; seed <= 10000 && done.nets < gradient_nets(); seed++) {
    ExactRun e;
    std::vector<Moved> moved;
    if (!exact_run(seed, true, &e) || !oracle_step(e, &moved)) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + describe_net(e.run.net));
    if (library) {
      moved.clear();
      library_step(e, &moved);
      if (::testing::Test::HasFatalFailure()) return;
    }
    RealNet real(e.run.net);
    Choices c(seed);
    std::vector<size_t> ops = trainable_ops(e.run.net);
    for (size_t i = 0; i < ops.size(); i++) {
      check_layer(c, real, ops[i], moved[i], e.xs, e.targets, &done);
      if (::testing::Test::HasFatalFailure()) return;
    }
    count_kinds(real.graph(), &done);
  }
  expect_enough(done);
}

TEST(Gradient, OracleEqualsFiniteDifferences) { check_integers(false); }
TEST(Gradient, LibraryEqualsFiniteDifferences) { check_integers(true); }

// DFP16: small integers in Q8, so that roundings are far below what is compared. False where an
// average is rounded: a ReLU at 0 could then let through on one side alone.
bool make_dfp_exact(Choices& c, NetSpec& net) {
  OracleGraph graph(net);
  net.input_dtype = DType::kS16;
  net.input_exponent = -8;
  net.target_exponent = 0;
  for (size_t i = 0; i < net.layers.size(); i++) {
    LayerSpec& l = net.layers[i];
    bool average = l.kind == OpKind::kAvgPool || l.kind == OpKind::kGap;
    if (average && !is_power_of_two(graph.area(i))) return false;
    if (!graph.is_compute(i)) continue;
    for (int16_t& w : l.weights16) {
      w = static_cast<int16_t>(c.chance(40) ? c.range(-2, 2) * 256 : 0);
    }
    for (int32_t& b : l.offsets) b = c.range(-3, 3) * 256;
    l.e_w = l.e_b = -8;
  }
  return true;
}

struct DfpMoved {
  Reals weights, offsets;  // before minus after, in real numbers
  Reals weight_unit;       // of a stored weight afterwards
};

std::vector<DfpMoved> dfp_difference(const NetSpec& net, const std::vector<LayerView>& before,
                                     const std::vector<LayerView>& after) {
  std::vector<DfpMoved> out;
  std::vector<size_t> ops = trainable_ops(net);
  for (size_t i = 0; i < ops.size(); i++) {
    const LayerSpec& l = net.layers[ops[i]];
    DfpMoved m;
    for (size_t w = 0; w < after[i].m.size(); w++) {
      size_t o = l.kind == OpKind::kLinear ? w % l.outputs : w / (after[i].m.size() / l.outputs);
      auto real = [&](const LayerView& v) {
        auto e = static_cast<int>(v.exponents.empty() ? v.k : v.exponents[o]);
        return std::ldexp(static_cast<double>(v.m[w]), e);
      };
      auto unit = static_cast<int>(after[i].exponents.empty() ? after[i].k : after[i].exponents[o]);
      m.weights.push_back(real(before[i]) - real(after[i]));
      m.weight_unit.push_back(std::ldexp(1.0, unit));
    }
    for (size_t o = 0; o < after[i].off.size(); o++) {
      m.offsets.push_back(std::ldexp(static_cast<double>(before[i].off[o] - after[i].off[o]), -8));
    }
    out.push_back(m);
  }
  return out;
}

constexpr int kDfpRateShift = 4;

void check_dfp_layer(Choices& c, RealNet& real, size_t op, const DfpMoved& m, const ExactRun& e,
                     Checked* done) {
  double want = 0, rate = std::ldexp(1.0, -kDfpRateShift);
  for (int i = 0; i < 8 && !m.weights.empty(); i++) {
    auto w = static_cast<size_t>(c.range(0, static_cast<int>(m.weights.size()) - 1));
    if (!slope(real, real.weight(op, w), e.xs, e.targets, &want)) {
      done->kinks++;
      continue;
    }
    // An overflow halves the old weights first.
    ASSERT_NEAR(m.weights[w], want * rate, 1.1 * m.weight_unit[w] + 2e-3 * std::fabs(want * rate))
        << "op " << op << " weight " << w;
    done->weights++;
  }
  for (size_t o = 0; o < m.offsets.size(); o++) {
    if (!slope(real, real.offset(op, o), e.xs, e.targets, &want)) {
      done->kinks++;
      continue;
    }
    ASSERT_NEAR(m.offsets[o], want * rate, 1.1 / 256 + 2e-3 * std::fabs(want * rate))
        << "op " << op << " offset " << o;
    done->offsets++;
  }
}

bool exact_dfp_run(uint32_t seed, ExactRun* out) {
  Choices c(seed);
  GraphLimits limits;
  limits.size = c.range(1, 6);
  limits.dfp16 = true;
  limits.task = 1;
  NetSpec& net = out->run.net = random_graph(c, limits);
  if (!make_dfp_exact(c, net)) return false;
  odt_run_spec_t& s = out->run.spec;
  s.rule_set = ODT_RULE_DFP16;
  s.loss = ODT_LOSS_MSE;
  s.shift_source = ODT_SHIFT_EXACT;
  s.lr_m[0] = s.lr_m[1] = s.lr_m[2] = 1;
  s.lr_s = kDfpRateShift;
  s.blocked = c.chance(40);
  s.batch = 4;
  s.epochs = 1;
  s.train_samples = static_cast<uint32_t>(c.range(1, 3));
  for (uint8_t& w : s.class_weights) w = 64;
  RealNet real(net);
  for (uint32_t b = 0; b < s.train_samples; b++) {
    Values x, t;
    for (uint32_t i = 0; i < count(net.input_dims); i++) x.push_back(256 * c.range(-8, 8));
    // The loss rounds the logits to its own exponent: only whole ones are exact.
    for (double z : real.logits(x)) {
      if (z != std::floor(z) || std::fabs(z) > 120) return false;
      t.push_back(static_cast<int64_t>(z) - c.range(-4, 4));
    }
    out->xs.push_back(x);
    out->targets.push_back(t);
  }
  give_samples(out);
  return true;
}

void check_dfp16(bool library) {
  Checked done;
  for (uint32_t seed = 1; seed <= 10000 && done.nets < gradient_nets(); seed++) {
    ExactRun e;
    if (!exact_dfp_run(seed, &e)) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + describe_run(e.run));
    std::vector<LayerView> before, after;
    if (library) {
      LibraryStep step = library_step(e.run);
      ASSERT_EQ(step.failure, "");
      before = step.before.layers;
      after = step.after.layers;
    } else {
      std::unique_ptr<Reference> reference = reference_of(e.run);
      before = reference->layers();
      reference->step(e.xs, e.run.samples.labels, e.targets);
      after = reference->layers();
    }
    std::vector<DfpMoved> moved = dfp_difference(e.run.net, before, after);
    RealNet real(e.run.net);
    Choices c(seed);
    std::vector<size_t> ops = trainable_ops(e.run.net);
    for (size_t i = 0; i < ops.size(); i++) {
      check_dfp_layer(c, real, ops[i], moved[i], e, &done);
      if (::testing::Test::HasFatalFailure()) return;
    }
    count_kinds(real.graph(), &done);
  }
  expect_enough(done);
}

TEST(Gradient, Dfp16OracleEqualsFiniteDifferences) { check_dfp16(false); }
TEST(Gradient, Dfp16LibraryEqualsFiniteDifferences) { check_dfp16(true); }

}  // namespace
}  // namespace odt::testing
