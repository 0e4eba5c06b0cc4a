#include "rule_runs.h"

#include <cstdlib>

#include "rule_net.h"

namespace odt::testing {
namespace {

class Runs {
 public:
  ComparedRun& put(const std::string& name, const std::string& shows, const ComparedRun& run) {
    all_.push_back({name, shows, run});
    return all_.back().run;
  }
  std::vector<RuleRun> take() { return std::move(all_); }

 private:
  std::vector<RuleRun> all_;
};

NetSpec two_dense(int k0 = 7, int k1 = 8) {
  RuleNet r({6});
  r.dense(5, k0, true);
  r.dense(3, k1, false);
  return r.finish();
}

// 1.3. A batch is one sample: off moves by exactly -dy.
void losses(Runs& all) {
  const std::vector<Values> z = {
      {5, 5, 5, 5}, {90, 90, -128, 90}, {127, -128, -128, -128}, {-128, -128, -128, 127},
      {0, 1, 2, 3}, {-1, -1, 0, 0},     {127, 126, 125, 124}};
  const std::vector<int> labels = {2, 0, 1, 3, 0, 2, 1};
  for (int scale : {1, 150, 256, 600, 65535}) {
    all.put("ce_scale_" + std::to_string(scale),
            "1.3 cross-entropy: ties, extremes, fr = 0 and not, ip beyond 23",
            given_run(identity_net(4, static_cast<uint16_t>(scale)), z, labels));
  }
  ComparedRun weighted = given_run(identity_net(4, 300), z, labels);
  const uint8_t cw[4] = {255, 1, 64, 130};
  std::copy(cw, cw + 4, weighted.spec.class_weights);
  all.put("ce_class_weights", "1.3 class weights in Q6, clipped to -128..127", weighted);
  NetSpec net = identity_net(4, 0);
  net.target_correct = {127, 60, 127, 40};
  net.target_wrong = {-128, -5, 0, -128};
  all.put("mse", "1.3 TARGET_MAG, dy clipped to -128..127, loss before it",
          given_run(net, z, labels));
  ComparedRun quiet = given_run(net, z, labels);
  quiet.spec.dead_zone = 8;
  std::copy(cw, cw + 4, quiet.spec.class_weights);
  all.put("mse_dead_zone", "1.3 dead zone, then class weights", quiet);
}

// 1.1 and 1.5 to 1.7.
void weights(Runs& all) {
  const struct {
    const char* name;
    int k, rounding, mu;
  } modes[] = {{"half_up_k8", 8, 1, 2},   {"half_up_k12", 12, 1, 0},  {"half_up_k4", 4, 1, 4},
               {"half_away_k8", 8, 2, 2}, {"psto_k8", 8, 3, 2},       {"psto_k6", 6, 3, 3},
               {"psto_k2", 2, 3, 4},      {"sr_k8", 8, 4, 2},         {"sr_k16", 16, 4, -12},
               {"default_k8", 8, 0, -4},  {"default_k15", 15, 0, -5}, {"default_k9", 9, 0, 4}};
  for (const auto& m : modes) {
    ComparedRun run = plain_run(two_dense(), 6, 3, 2);
    run.spec.k = static_cast<uint8_t>(m.k);
    run.spec.rounding = static_cast<uint8_t>(m.rounding);
    for (int8_t& mu : run.spec.mu_weight) mu = static_cast<int8_t>(m.mu);
    all.put(m.name, "1.1, 1.5 rounding and precision", run);
  }
  for (int mu : {-8, 0, 7}) {
    ComparedRun run = plain_run(two_dense(2, 5), 6, 4, 1);
    run.spec.mu_offset = static_cast<int8_t>(mu);
    all.put("offsets_mu_" + std::string(mu < 0 ? "minus_" : "") + std::to_string(std::abs(mu)),
            "1.6 T_o of k_min below 3 and above; mu_offset", run);
  }
  NetSpec uneven = two_dense();
  uneven.layers[0].k = {7, 5, 9, 7, 5};
  uneven.layers[0].mult = {1, 200, 3, 7, 255};
  all.put("uneven_k_and_mult", "1.2 mult and k_out of each output; 1.4 no alignment",
          plain_run(uneven, 6, 3, 2));
  ComparedRun stale = plain_run(two_dense(), 7, 2, 3);
  stale.spec.shift_source = ODT_SHIFT_STALE;
  all.put("stale", "1.7 b_prev, clip of d, a partial batch", stale);
  stale.spec.k = 12;
  stale.spec.guard = true;
  stale.spec.heldout_samples = 20;
  stale.scores = {3, 9, 9, 4};
  all.put("stale_reset_by_guard", "1.7, 1.10 roll-back: best weights, b_prev 0", stale);
  ComparedRun literal = plain_run(two_dense(), 6, 3, 2);
  literal.spec.rule_set = ODT_RULE_NITI_LITERAL;
  all.put("literal", "1.11 double shift", literal);
  ComparedRun by_epoch = plain_run(two_dense(), 5, 2, 4), by_step = plain_run(two_dense(), 5, 2, 2);
  for (ComparedRun* r : {&by_epoch, &by_step}) {
    const int8_t mu[3] = {3, 1, -1};
    std::copy(mu, mu + 3, r->spec.mu_weight);
  }
  all.put("schedule_by_epoch", "1.8 thirds of 4 epochs", by_epoch);
  all.put("schedule_by_step", "1.8 thirds of the steps where E < 3", by_step);
  NetSpec frozen = two_dense();
  frozen.layers[1].trainable = false;
  all.put("frozen_behind", "1.4 a frozen layer passes deltas", plain_run(frozen, 6, 3, 1));
  frozen.layers[1].trainable = frozen.layers[1].offsets_only = true;
  all.put("offsets_only_behind", "1.4, 1.6 offsets alone are trained, deltas pass",
          plain_run(frozen, 6, 3, 1));
}

// 1.12.
void precision(Runs& all) {
  ComparedRun steered = plain_run(two_dense(), 12, 2, 2);
  steered.spec.shift_source = ODT_SHIFT_STALE;
  steered.spec.apt.k_max = 16;
  const int ks[] = {9, 12, 7, 2, 16};
  for (int i = 0; i < 5; i++) steered.steers.push_back({i, static_cast<uint32_t>(i % 2), ks[i]});
  all.put("k_change", "1.5 k + 1 and k - 1, 1.7 b_prev 0 after it", steered);
  ComparedRun each = plain_run(two_dense(), 6, 3, 2);
  each.spec.layer_k[0] = 5;
  each.spec.layer_k[1] = 13;
  all.put("k_by_layer", "1.5 k of a layer's own, rounding by it, mu clamped to its limits", each);
  for (int mode : {1, 2}) {
    ComparedRun apt = plain_run(two_dense(), 36, 2, 2);
    apt.spec.k = 6;
    apt.spec.mu_weight[2] = 0;
    apt.spec.apt.mode = static_cast<uint8_t>(mode);
    apt.spec.apt.k_max = 16;
    apt.spec.apt.t_min_q8 = 77;
    apt.spec.apt.offsets = mode == 2;
    if (mode == 2) apt.spec.apt.t_max_q8 = 400;
    all.put(mode == 1 ? "apt_quarters" : "apt_epochs_and_offsets",
            "1.12 sampled steps, U, checks, precision of offsets", apt);
  }
}

// 1.4 in graphs; the same shapes in both arithmetics.
NetSpec fork_net(bool dfp16) {
  RuleNet r({6}, dfp16);
  int a = r.dense(5, 4, true);
  int b = r.dense(4, 9, false, a);
  int c = r.dense(4, 3, false, a);
  if (!dfp16) r.last().mult = {5, 5, 5, 2};
  int sum = r.add(b, c, 700000, 300, false);
  r.concat(sum, a);
  r.dense(3, 7, false);
  return r.finish();
}

NetSpec conv_net(bool dfp16) {
  RuleNet r({4, 6, 5}, dfp16);
  LayerSpec l;
  l.outputs = 4;
  l.groups = 2;
  l.k_h = 3;
  l.k_w = 2;
  l.stride_h = 2;
  l.dil_w = 2;
  l.pad_t = 2;
  l.pad_r = 1;
  r.conv(l, 6, true);
  l = window(2, 2);
  l.outputs = 4;
  l.groups = 4;
  r.conv(l, 6, false);
  r.flatten();
  r.dense(3, 7, false);
  return r.finish();
}

LayerSpec average(uint16_t h, uint16_t w, uint16_t stride, uint16_t pad, uint32_t channels) {
  LayerSpec l = window(h, w, stride, pad);
  l.outputs = channels;
  for (uint32_t c = 0; c < channels; c++) {
    l.k.push_back(static_cast<int8_t>(8 - c % 2));
    l.mult.push_back(static_cast<uint8_t>((1 << (8 - c % 2)) / (h * w)));
    l.offsets.push_back(static_cast<int32_t>(c * 3) - 1);
  }
  return l;
}

NetSpec pool_net(OpKind kind, const LayerSpec& shape, bool dfp16) {
  RuleNet r({2, 5, 4}, dfp16);
  LayerSpec l = window(2, 2);
  l.outputs = 2;
  r.conv(l, 6, true);
  r.pool(kind, shape);
  r.flatten();
  r.dense(3, 6, false);
  return r.finish();
}

NetSpec resize_net(bool dfp16) {
  RuleNet r({2, 3, 4}, dfp16);
  LayerSpec l = window(1, 1);
  l.outputs = 2;
  int a = r.conv(l, 6, false);
  int up = r.resize(5, 7, a);
  r.resize(2, 3, up);
  int flat = r.flatten();
  r.concat(flat, r.flatten(a));
  r.dense(3, 8, false);
  return r.finish();
}

NetSpec twice_net(bool dfp16) {
  RuleNet r({2, 3, 3}, dfp16);
  LayerSpec l = window(3, 3, 1, 1);
  l.outputs = 2;
  int a = r.conv(l, 6, true);
  int sum = r.add(a, a, 1 << 19, 400000, true);
  int flat = r.flatten(sum);
  int c = r.conv(l, 7, false, sum);
  r.concat(flat, r.flatten(c));
  r.dense(4, 8, false);
  return r.finish();
}

NetSpec task_net(int task, bool dfp16) {
  RuleNet r({5}, dfp16);
  r.net.task = static_cast<uint8_t>(task);
  r.dense(4, 7, true);
  r.dense(5, 7, false);
  return r.finish();
}

void graphs(Runs& all, bool dfp16) {
  std::string prefix = dfp16 ? "dfp16_" : "graph_", rule = dfp16 ? "1.13 " : "1.4 ";
  auto put = [&](const std::string& name, const std::string& shows, const NetSpec& net) {
    ComparedRun run = plain_run(net, 5, 2, 2);
    if (!dfp16) run.spec.k = 12;
    all.put(prefix + name, rule + shows, run);
  };
  put("fork", "contributions with unequal exponents, residual add, concat", fork_net(dfp16));
  put("conv", "stride, dilation, asymmetric padding, groups, depthwise", conv_net(dfp16));
  put("maxpool", "first maximum, overlapping windows, padding never wins",
      pool_net(OpKind::kMaxPool, window(3, 2, 1, 1), dfp16));
  put("avgpool", "one constant, windows that overlap, padding counts as 0",
      pool_net(OpKind::kAvgPool, average(2, 3, 1, 1, 1), dfp16));
  put("avgpool_channels", "constants of each channel",
      pool_net(OpKind::kAvgPool, average(2, 2, 2, 0, 2), dfp16));
  put("gap", "global average", pool_net(OpKind::kGap, average(4, 3, 1, 0, 2), dfp16));
  put("resize", "nearest, up and down; a tensor read by RESIZE and FLATTEN", resize_net(dfp16));
  put("twice", "ADD of a tensor to itself; FLATTEN beside another reader", twice_net(dfp16));
  put("regress", "regression: targets of the samples", task_net(1, dfp16));
  put("autoencode", "autoencoder: the target is the input", task_net(2, dfp16));
}

void dfp16_only(Runs& all) {
  ComparedRun blocked = plain_run(fork_net(true), 5, 2, 2);
  blocked.spec.blocked = true;
  all.put("dfp16_blocked", "1.13 one exponent an output", blocked);
  ComparedRun fast = plain_run(conv_net(true), 5, 2, 2);
  fast.spec.lr_s = 9;
  all.put("dfp16_overflow", "1.13 W halved and tried again", fast);
  fast.spec.blocked = true;
  all.put("dfp16_overflow_blocked", "1.13 halved output by output", fast);
  RuleNet r({6}, true);
  r.dense(5, 0, true);
  r.dense(3, 0, false);
  ComparedRun thirds = plain_run(r.finish(), 5, 2, 4);
  const uint8_t cw[3] = {255, 3, 64};
  std::copy(cw, cw + 3, thirds.spec.class_weights);
  all.put("dfp16_schedule_class_weights", "1.8 rate by thirds; class weights in Q6", thirds);
}

}  // namespace

std::vector<RuleRun> rule_runs() {
  Runs all;
  losses(all);
  weights(all);
  precision(all);
  graphs(all, false);
  graphs(all, true);
  dfp16_only(all);
  return all.take();
}

}  // namespace odt::testing
