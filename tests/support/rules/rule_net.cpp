#include "rule_net.h"

namespace odt::testing {

RuleNet::RuleNet(std::vector<uint16_t> input, bool dfp16) {
  net.input_dims = input;
  net.arith = dfp16 ? 1 : 0;
  if (dfp16) {
    net.input_dtype = DType::kS16;
    net.input_exponent = -15;
    net.target_exponent = -4;
  }
  dims_ = {input};
}

int32_t RuleNet::draw(int32_t lo, int32_t hi) {
  uint32_t r = oracle_hash32(2026, drawn_++, 0, 0);
  return lo + static_cast<int32_t>(r % static_cast<uint32_t>(hi - lo + 1));
}

int RuleNet::put(LayerSpec l, int from, int from1) {
  auto a = from < 0 ? dims_.size() - 1 : static_cast<size_t>(from);
  l.in0 = static_cast<int>(a);
  l.in1 = from1;
  if (net.arith == 1 && l.kind != OpKind::kFlatten) {
    l.clip_lo = l.relu ? 0 : -32767;
    l.clip_hi = 32767;
  }
  dims_.push_back(output_dims(
      l, dims_[a], from1 < 0 ? std::vector<uint16_t>{} : dims_[static_cast<size_t>(from1)]));
  net.layers.push_back(l);
  return static_cast<int>(net.layers.size());
}

void RuleNet::fill(LayerSpec& l, uint32_t fan_in, int k) {
  l.trainable = true;
  if (l.relu) {
    l.clip_lo = 0;
    l.clip_hi = 255;
  }
  for (uint32_t i = 0; i < fan_in * l.outputs; i++) {
    if (net.arith == 1) {
      l.weights16.push_back(static_cast<int16_t>(draw(-30000, 30000)));
    } else {
      l.weights.push_back(static_cast<int8_t>(draw(-60, 60)));
    }
  }
  for (uint32_t o = 0; o < l.outputs; o++) {
    l.offsets.push_back(draw(-40, 40) * (net.arith == 1 ? 100000 : 1 << k));
    l.k.push_back(static_cast<int8_t>(k));
  }
  l.e_w = net.arith == 1 ? -15 : 0;
  l.e_b = net.arith == 1 ? -26 : 0;
}

int RuleNet::dense(uint32_t outputs, int k, bool relu, int from) {
  LayerSpec l;
  l.outputs = outputs;
  l.relu = relu;
  fill(l, (from < 0 ? dims_.back() : dims_[static_cast<size_t>(from)])[0], k);
  return put(l, from);
}

int RuleNet::conv(const LayerSpec& shape, int k, bool relu, int from) {
  LayerSpec l = shape;
  l.kind = OpKind::kConv2d;
  l.relu = relu;
  uint16_t channels = (from < 0 ? dims_.back() : dims_[static_cast<size_t>(from)])[0];
  fill(l, static_cast<uint32_t>(channels / l.groups * l.k_h * l.k_w), k);
  return put(l, from);
}

int RuleNet::flatten(int from) {
  LayerSpec l;
  l.kind = OpKind::kFlatten;
  return put(l, from);
}

int RuleNet::pool(OpKind kind, const LayerSpec& shape, int from) {
  LayerSpec l = shape;
  l.kind = kind;
  if (net.arith == 1) {
    l.outputs = 0;
    l.offsets.clear();
  }
  return put(l, from);
}

int RuleNet::add(int a, int b, int32_t m_a, int32_t m_b, bool relu) {
  LayerSpec l;
  l.kind = OpKind::kAdd;
  l.relu = relu;
  if (relu) {
    l.clip_lo = 0;
    l.clip_hi = 255;
  }
  if (net.arith == 0) {
    l.outputs = 2;
    l.offsets = {m_a, m_b};
  }
  return put(l, a, b);
}

int RuleNet::concat(int a, int b) {
  LayerSpec l;
  l.kind = OpKind::kConcat;
  l.clip_lo = -255;
  l.clip_hi = 255;
  return put(l, a, b);
}

int RuleNet::resize(uint16_t h, uint16_t w, int from) {
  LayerSpec l;
  l.kind = OpKind::kResize;
  l.out_h = h;
  l.out_w = w;
  return put(l, from);
}

NetSpec RuleNet::finish(uint16_t ce_scale) {
  net.n_classes = static_cast<uint16_t>(count(dims_.back()));
  for (int c = 0; c < net.n_classes && net.task == 0; c++) {
    net.target_correct.push_back(static_cast<int8_t>(draw(20, 60)));
    net.target_wrong.push_back(static_cast<int8_t>(draw(-20, 5)));
  }
  net.ce_scale = net.task == 0 ? ce_scale : uint16_t{0};
  return net;
}

LayerSpec window(uint16_t h, uint16_t w, uint16_t stride, uint16_t pad) {
  LayerSpec l;
  l.k_h = h;
  l.k_w = w;
  l.stride_h = l.stride_w = stride;
  l.pad_t = l.pad_l = l.pad_b = l.pad_r = pad;
  return l;
}

NetSpec identity_net(uint16_t n, uint16_t ce_scale) {
  RuleNet r({n});
  r.dense(n, 6, false);
  for (size_t i = 0; i < r.last().weights.size(); i++) {
    r.last().weights[i] = i % (n + 1u) == 0 ? 64 : 0;
  }
  r.last().offsets.assign(n, 0);
  r.last().offsets_only = true;
  return r.finish(ce_scale);
}

ComparedRun plain_run(const NetSpec& net, int samples, int batch, int epochs) {
  ComparedRun run;
  run.net = net;
  odt_run_spec_t& s = run.spec;
  s.rule_set = net.arith == 1 ? ODT_RULE_DFP16 : ODT_RULE_NITI;
  s.loss = net.ce_scale != 0 && net.task == 0 ? ODT_LOSS_CE : ODT_LOSS_MSE;
  s.shift_source = ODT_SHIFT_EXACT;
  s.k = 8;
  s.mu_weight[0] = 2;
  s.mu_weight[1] = 1;
  s.mu_offset = 1;
  s.batch = static_cast<uint16_t>(batch);
  s.epochs = static_cast<uint16_t>(epochs);
  s.train_samples = static_cast<uint32_t>(samples);
  s.order_seed = 11;
  s.sr_seed = 12;
  for (uint8_t& w : s.class_weights) w = 64;
  if (net.arith == 1) {
    s.k = 0;
    s.mu_weight[0] = s.mu_weight[1] = s.mu_offset = 0;
    s.lr_m[0] = 20000;
    s.lr_m[1] = 10000;
    s.lr_m[2] = 5000;
    s.lr_s = 17;
  }
  run.max_steps = 1000;
  run.samples.dtype = net.input_dtype;
  run.samples.flags = net.task == 1 ? 1 : 0;
  uint32_t drawn = 0;
  auto draw = [&](int lo, int hi) {
    return lo +
           static_cast<int>(oracle_hash32(9, drawn++, 0, 0) % static_cast<uint32_t>(hi - lo + 1));
  };
  int top = net.input_dtype == DType::kS16 ? 32767 : net.input_dtype == DType::kU8 ? 255 : 127;
  for (int i = 0; i < samples; i++) {
    Values v, t;
    for (uint32_t j = 0; j < count(net.input_dims); j++) {
      v.push_back(draw(net.input_dtype == DType::kU8 ? 0 : -top, top));
    }
    for (int c = 0; c < net.n_classes; c++) t.push_back(draw(-100, 100));
    run.samples.values.push_back(v);
    run.samples.targets.push_back(t);
    run.samples.labels.push_back(net.task == 0 ? i % net.n_classes : 0);
  }
  return run;
}

ComparedRun given_run(const NetSpec& net, const std::vector<Values>& values,
                      const std::vector<int>& labels) {
  ComparedRun run = plain_run(net, static_cast<int>(values.size()), 1, 1);
  run.spec.mu_offset = 7;
  run.samples.values = values;
  run.samples.labels = labels;
  return run;
}

}  // namespace odt::testing
