#include <algorithm>

#include "compare.h"

namespace odt::testing {
namespace {

odt_run_spec_t basic(Choices& c, const NetSpec& net, int samples) {
  odt_run_spec_t s{};
  s.rule_set = ODT_RULE_NITI;
  s.shift_source = ODT_SHIFT_EXACT;
  s.k = 8;
  s.mu_offset = 1;
  s.batch = static_cast<uint16_t>(c.range(1, 9));
  s.epochs = static_cast<uint16_t>(c.range(1, 4));
  s.train_samples = static_cast<uint32_t>(samples);
  s.order_seed = c.word();
  s.sr_seed = c.word();
  for (uint8_t& w : s.class_weights) w = 64;
  s.loss = net.task == 0 && c.chance(50) ? ODT_LOSS_CE : ODT_LOSS_MSE;
  if (net.task == 0 && c.chance(30)) {
    for (int i = 0; i < net.n_classes; i++) {
      s.class_weights[i] = static_cast<uint8_t>(c.range(1, 255));
    }
  }
  if (c.chance(30)) {
    s.guard = true;
    s.heldout_samples = 50;
  }
  return s;
}

void niti(Choices& c, odt_run_spec_t& s) {
  if (c.chance(10)) s.rule_set = ODT_RULE_NITI_LITERAL;
  int8_t lo = 0, hi = -1;
  if (s.rule_set == ODT_RULE_NITI) {
    if (c.chance(40)) s.shift_source = ODT_SHIFT_STALE;
    for (int tries = 0; tries < 8 && lo > hi; tries++) {
      s.k = static_cast<uint8_t>(c.range(2, 16));
      s.rounding = static_cast<uint8_t>(c.range(0, 4));
      odt_mu_limits(&s, &lo, &hi);
    }
    if (lo > hi) s.k = 8;
  }
  odt_mu_limits(&s, &lo, &hi);
  for (int8_t& mu : s.mu_weight) mu = static_cast<int8_t>(c.range(lo, hi));
  s.mu_offset = static_cast<int8_t>(c.range(-8, 7));
  s.dead_zone = static_cast<uint8_t>(c.chance(40) ? c.range(0, 12) : 0);
}

void apt(Choices& c, const NetSpec& net, odt_run_spec_t& s) {
  niti(c, s);
  if (s.rule_set == ODT_RULE_NITI_LITERAL) {
    s.rule_set = ODT_RULE_NITI;
    s.k = 8;
  }
  size_t layers = 0;
  for (const LayerSpec& l : net.layers) layers += l.trainable ? 1 : 0;
  int k_max = 16;
  if (c.chance(75)) {
    s.apt.mode = static_cast<uint8_t>(c.range(1, 2));
    k_max = c.range(s.k, 16);
    s.apt.k_max = static_cast<uint8_t>(k_max);
    s.apt.offsets = c.chance(50);
    s.apt.t_min_q8 = static_cast<uint16_t>(c.chance(50) ? 77 : c.range(1, 200));
    if (c.chance(50)) {
      s.apt.t_max_q8 = static_cast<uint16_t>(s.apt.t_min_q8 * 4 + c.range(0, 200));
    }
  }
  if (s.apt.mode == 0 && c.chance(50)) {
    k_max = c.range(s.k, 16);
    s.apt.k_max = static_cast<uint8_t>(k_max);  // steered by the host alone
  }
  if (s.apt.mode != 0 && !c.chance(50)) return;
  for (size_t i = 0; i < layers; i++) {
    if (c.chance(60)) s.layer_k[i] = static_cast<uint8_t>(c.range(2, k_max));
  }
}

void dfp16(Choices& c, const NetSpec& net, odt_run_spec_t& s) {
  s.rule_set = ODT_RULE_DFP16;
  s.loss = net.task == 0 ? ODT_LOSS_CE : ODT_LOSS_MSE;
  for (uint16_t& m : s.lr_m) m = static_cast<uint16_t>(c.range(1, 32767));
  s.lr_s = static_cast<uint8_t>(c.chance(80) ? c.range(8, 28) : c.range(0, 40));
  s.blocked = c.chance(40);
}

void steer(Choices& c, ComparedRun& run) {
  int layers = 0;
  for (const LayerSpec& l : run.net.layers) layers += l.trainable ? 1 : 0;
  for (int i = c.range(0, 4); i > 0; i--) {
    run.steers.push_back({c.range(0, 12), static_cast<uint32_t>(c.range(0, layers - 1)),
                          c.range(2, run.spec.apt.k_max)});
  }
}

OracleSettings integer_settings(const odt_run_spec_t& s) {
  OracleSettings o;
  o.literal = s.rule_set == ODT_RULE_NITI_LITERAL;
  o.default_rounding = s.rounding == ODT_ROUND_DEFAULT;
  o.rounding = static_cast<Rounding>(s.rounding);
  o.cross_entropy = s.loss == ODT_LOSS_CE;
  o.stale = s.shift_source == ODT_SHIFT_STALE;
  for (int i = 0; i < 3; i++) o.mu_weight[i] = s.mu_weight[i];
  o.mu_offset = s.mu_offset;
  o.dead_zone = s.dead_zone;
  o.k = s.k;
  o.layer_k.assign(s.layer_k, s.layer_k + ODT_MAX_LAYERS);
  o.batch = s.batch;
  o.epochs = s.epochs;
  o.train_samples = static_cast<int>(s.train_samples);
  o.order_seed = s.order_seed;
  o.sr_seed = s.sr_seed;
  o.class_weights.assign(s.class_weights, s.class_weights + ODT_MAX_CLASSES);
  o.apt = static_cast<AptMode>(s.apt.mode);
  o.k_max = s.apt.k_max != 0 ? s.apt.k_max : 16;
  o.apt_offsets = s.apt.offsets;
  o.t_min_q8 = s.apt.t_min_q8;
  o.t_max_q8 = s.apt.t_max_q8;
  return o;
}

}  // namespace

ComparedRun random_run(Choices& c, RunKind kind, int size, bool graphs) {
  ComparedRun run;
  GraphLimits limits;
  limits.size = size;
  limits.graphs = limits.tasks = limits.offsets_only = graphs;
  limits.dfp16 = kind == RunKind::kDfp16;
  run.net = random_graph(c, limits);
  int n = c.range(1, 3 * size + 2);
  run.spec = basic(c, run.net, n);
  if (kind == RunKind::kNiti) niti(c, run.spec);
  if (kind == RunKind::kApt) {
    apt(c, run.net, run.spec);
    run.max_steps = 40;
    // Longer epochs, so that several sampled steps stand between two checks.
    if (c.chance(30)) n = 40;
    run.spec.train_samples = static_cast<uint32_t>(n);
  }
  if (kind == RunKind::kDfp16) dfp16(c, run.net, run.spec);
  run.restore_after = c.range(0, 12);
  for (int i = 0; i <= run.spec.epochs; i++) run.scores.push_back(c.word() % 5);
  if (run.spec.apt.k_max != 0) steer(c, run);
  run.samples = random_graph_samples(c, run.net, n);
  return run;
}

std::unique_ptr<Reference> reference_of(const ComparedRun& run) {
  const odt_run_spec_t& s = run.spec;
  if (s.rule_set != ODT_RULE_DFP16) {
    return make_reference(run.net, integer_settings(s));
  }
  DfpSettings d;
  for (int i = 0; i < 3; i++) d.lr_m[i] = s.lr_m[i];
  d.lr_s = s.lr_s;
  d.blocked = s.blocked;
  d.chain32 = run.chain32;
  d.batch = s.batch;
  d.epochs = s.epochs;
  d.train_samples = static_cast<int>(s.train_samples);
  d.class_weights.assign(s.class_weights, s.class_weights + ODT_MAX_CLASSES);
  return make_reference(run.net, d);
}

std::string describe_run(const ComparedRun& run) {
  const odt_run_spec_t& s = run.spec;
  std::string out;
  auto add = [&](const char* name, long v) {
    out += std::string(name) + "=" + std::to_string(v) + " ";
  };
  add("rule_set", s.rule_set);
  add("rounding", s.rounding);
  add("loss", s.loss);
  add("shift", s.shift_source);
  for (int8_t mu : s.mu_weight) add("mu", mu);
  add("mu_offset", s.mu_offset);
  add("dead_zone", s.dead_zone);
  add("k", s.k);
  add("batch", s.batch);
  add("epochs", s.epochs);
  add("samples", s.train_samples);
  add("guard", s.guard);
  add("apt", s.apt.mode);
  if (s.apt.k_max != 0) {
    add("k_max", s.apt.k_max);
    add("apt_offsets", s.apt.offsets);
    add("t_min", s.apt.t_min_q8);
    add("t_max", s.apt.t_max_q8);
  }
  if (s.rule_set == ODT_RULE_DFP16) {
    for (uint16_t m : s.lr_m) add("lr_m", m);
    add("lr_s", s.lr_s);
    add("blocked", s.blocked);
  }
  return out + "\n" + describe_net(run.net);
}

}  // namespace odt::testing
