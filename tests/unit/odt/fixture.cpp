#include "fixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/layout.h"

namespace odt::testing {
namespace {

int max_abs(const LayerSpec* before, DType input) {
  if (!before) return input == DType::kU8 ? 255 : 128;
  return std::max({std::abs(before->clip_lo), std::abs(before->clip_hi), 1});
}

void fill_layer(Random& r, LayerSpec& l, uint32_t fan_in, int x_max) {
  int magnitude = r.range(3, 127);
  l.weights.resize(size_t{fan_in} * l.outputs);
  for (int8_t& w : l.weights) {
    w = static_cast<int8_t>(r.chance(2) ? -128 : r.range(-magnitude, magnitude));
  }
  // A shift that leaves outputs of about 60.
  double spread = std::sqrt(fan_in) * magnitude * x_max / 3.5;
  int k = std::max(0, static_cast<int>(std::log2(spread / 60)) + r.range(-1, 1));
  for (uint32_t o = 0; o < l.outputs; o++) {
    l.k.push_back(static_cast<int8_t>(k + (r.chance(30) ? r.range(0, 2) : 0)));
    int span = 40 << std::min(k, 20);
    l.offsets.push_back(r.range(-span, span));
  }
  if (!r.chance(25)) return;
  for (uint32_t o = 0; o < l.outputs; o++) l.mult.push_back(static_cast<uint8_t>(r.range(1, 6)));
}

void random_activation(Random& r, LayerSpec& l) {
  l.relu = r.chance(60);
  l.clip_lo = 0;
  l.clip_hi = 255;
  if (l.relu) return;
  int style = r.range(0, 3);
  l.clip_lo = style == 0 ? -255 : style == 1 ? -128 : style == 2 ? -1000 : 0;
  l.clip_hi = style == 0 ? 255 : style == 1 ? 127 : style == 2 ? 700 : 255;
}

LayerSpec random_conv(Random& r, const std::vector<uint16_t>& in) {
  LayerSpec l;
  l.kind = OpKind::kConv2d;
  if (in[0] % 2 == 0 && r.chance(40)) l.groups = r.chance(40) ? in[0] : 2;
  l.outputs = static_cast<uint32_t>(l.groups * r.range(1, l.groups > 2 ? 1 : 3));
  auto axis = [&](int size, uint16_t& k, uint16_t& stride, uint16_t& lo, uint16_t& hi,
                  uint16_t& dil) {
    k = static_cast<uint16_t>(r.range(1, std::min(4, size)));
    stride = static_cast<uint16_t>(r.range(1, 3));
    lo = static_cast<uint16_t>(r.chance(50) ? r.range(0, 3) : 0);
    hi = static_cast<uint16_t>(r.chance(50) ? r.range(0, 3) : 0);
    dil = static_cast<uint16_t>(r.chance(25) ? 2 : 1);
    if (dil * (k - 1) + 1 > size + lo + hi) dil = 1;
  };
  axis(in[1], l.k_h, l.stride_h, l.pad_t, l.pad_b, l.dil_h);
  axis(in[2], l.k_w, l.stride_w, l.pad_l, l.pad_r, l.dil_w);
  return l;
}

}  // namespace

NetSpec random_net(Random& r) {
  NetSpec net;
  net.input_dtype = r.chance(50) ? DType::kS8 : DType::kU8;
  bool image = r.chance(60);
  net.n_classes = static_cast<uint16_t>(r.range(2, 9));
  auto dim = [&](int lo, int hi) { return static_cast<uint16_t>(r.range(lo, hi)); };
  if (image) {
    net.input_dims = {dim(1, 4), dim(2, 9), dim(2, 9)};
  } else {
    net.input_dims = {dim(1, 40)};
  }
  std::vector<uint16_t> dims = net.input_dims;
  int convs = image ? r.range(0, 3) : 0, hidden = r.range(0, 2);
  const LayerSpec* before = nullptr;
  net.layers.reserve(8);
  auto add = [&](LayerSpec l, bool last) {
    int x_max = max_abs(before, net.input_dtype);
    if (!last) random_activation(r, l);
    l.trainable = r.chance(75);
    if (l.kind == OpKind::kConv2d) {
      fill_layer(r, l, static_cast<uint32_t>(dims[0] / l.groups * l.k_h * l.k_w), x_max);
    } else {
      fill_layer(r, l, dims[0], x_max);
    }
    dims = output_dims(l, dims);
    net.layers.push_back(l);
    before = &net.layers.back();
  };
  for (int i = 0; i < convs; i++) add(random_conv(r, dims), false);
  if (image) {
    LayerSpec flat;
    flat.kind = OpKind::kFlatten;
    net.layers.push_back(flat);
    dims = output_dims(flat, dims);
  }
  for (int i = 0; i <= hidden; i++) {
    LayerSpec l;
    l.outputs = i == hidden ? net.n_classes : static_cast<uint32_t>(r.range(1, 24));
    add(l, i == hidden);
  }
  if (std::none_of(net.layers.begin(), net.layers.end(), [](auto& l) { return l.trainable; })) {
    net.layers.back().trainable = true;
  }
  for (int c = 0; c < net.n_classes; c++) {
    net.target_correct.push_back(static_cast<int8_t>(r.range(10, 100)));
    net.target_wrong.push_back(static_cast<int8_t>(r.range(-40, 10)));
  }
  net.ce_scale = static_cast<uint16_t>(r.range(1, 600));
  return net;
}

SampleSet random_samples(Random& r, const NetSpec& net, int n) {
  SampleSet set;
  std::vector<uint8_t> data;
  std::vector<int8_t> labels;
  uint32_t len = count(net.input_dims);
  for (int i = 0; i < n; i++) {
    Values v;
    bool sparse = r.chance(10);
    for (uint32_t j = 0; j < len; j++) {
      int x = net.input_dtype == DType::kU8 ? r.range(0, 255) : r.range(-128, 127);
      if (sparse || r.chance(20)) x = 0;
      v.push_back(x);
      data.push_back(static_cast<uint8_t>(x));
    }
    set.values.push_back(v);
    set.labels.push_back(r.range(0, net.n_classes - 1));
    labels.push_back(static_cast<int8_t>(set.labels.back()));
  }
  set.blob = build_samples(net.input_dtype, len, labels, data);
  return set;
}

odt_run_spec_t plain_spec(int samples, int batch, int epochs) {
  odt_run_spec_t s{};
  s.rule_set = ODT_RULE_NITI;
  s.loss = ODT_LOSS_MSE;
  s.shift_source = ODT_SHIFT_EXACT;
  s.mu_offset = 1;
  s.k = 8;
  s.batch = static_cast<uint16_t>(batch);
  s.epochs = static_cast<uint16_t>(epochs);
  s.train_samples = static_cast<uint32_t>(samples);
  s.order_seed = 1;
  for (uint8_t& w : s.class_weights) w = 64;
  return s;
}

odt_run_spec_t random_spec(Random& r, const NetSpec& net, int samples) {
  odt_run_spec_t s = plain_spec(samples, r.range(1, 9), r.range(1, 4));
  if (r.chance(10)) s.rule_set = ODT_RULE_NITI_LITERAL;
  s.loss = r.chance(50) ? ODT_LOSS_CE : ODT_LOSS_MSE;
  if (s.rule_set == ODT_RULE_NITI) {
    if (r.chance(40)) s.shift_source = ODT_SHIFT_STALE;
    int8_t lo, hi;
    do {
      s.k = static_cast<uint8_t>(r.range(2, 16));
      s.rounding = static_cast<uint8_t>(r.range(0, 4));
      odt_mu_limits(&s, &lo, &hi);
    } while (lo > hi);
  }
  int8_t lo, hi;
  odt_mu_limits(&s, &lo, &hi);
  for (int8_t& mu : s.mu_weight) mu = static_cast<int8_t>(r.range(lo, hi));
  s.mu_offset = static_cast<int8_t>(r.range(-8, 7));
  s.dead_zone = static_cast<uint8_t>(r.chance(40) ? r.range(0, 12) : 0);
  s.order_seed = r.word();
  s.sr_seed = r.word();
  if (r.chance(30)) {
    for (int c = 0; c < net.n_classes; c++) {
      s.class_weights[c] = static_cast<uint8_t>(r.range(1, 255));
    }
  }
  return s;
}

OracleSettings oracle_settings(const odt_run_spec_t& s, const NetSpec& net) {
  OracleSettings o;
  o.literal = s.rule_set == ODT_RULE_NITI_LITERAL;
  int rounding = s.rounding == 0 ? (s.k <= 8 ? 3 : 1) : s.rounding;
  o.rounding = static_cast<Rounding>(rounding);
  o.cross_entropy = s.loss == ODT_LOSS_CE;
  o.stale = s.shift_source == ODT_SHIFT_STALE;
  for (int i = 0; i < 3; i++) o.mu_weight[i] = s.mu_weight[i];
  o.mu_offset = s.mu_offset;
  o.dead_zone = s.dead_zone;
  o.k = s.k;
  o.batch = s.batch;
  o.epochs = s.epochs;
  o.train_samples = static_cast<int>(s.train_samples);
  o.order_seed = s.order_seed;
  o.sr_seed = s.sr_seed;
  o.class_weights.assign(s.class_weights, s.class_weights + net.n_classes);
  return o;
}

std::string describe(const odt_run_spec_t& s) {
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
  add("k", s.k);
  add("batch", s.batch);
  add("epochs", s.epochs);
  return out;
}

Rig::Rig(const std::vector<uint8_t>& image) : image_(image) {
  EXPECT_EQ(odt_model_open(&model_, image_.data(), static_cast<uint32_t>(image_.size()), &err),
            ODT_OK)
      << err.what << " " << err.index << " got " << err.got;
}

odt_status_t Rig::try_start(const odt_run_spec_t& spec, bool resident, int64_t arena_change) {
  odt_memory_plan_t plan{};
  odt_trainer_plan(&model_, &spec, resident, &plan);
  auto bytes = static_cast<uint32_t>(plan.total_bytes + arena_change);
  arena_.assign(bytes / 8 + 1, 0xA5A5A5A5A5A5A5A5u);
  trainer_ = std::make_unique<odt_trainer_t>();
  return odt_trainer_init(trainer_.get(), &model_, &spec, resident, arena_.data(), bytes, &err);
}

void Rig::start(const odt_run_spec_t& spec, bool resident) {
  ASSERT_EQ(try_start(spec, resident), ODT_OK) << err.what << " got " << err.got;
}

odt_samples_t open_samples(const std::vector<uint8_t>& blob) {
  odt_samples_t s{};
  EXPECT_EQ(odt_samples_open(&s, blob.data(), static_cast<uint32_t>(blob.size()), nullptr), ODT_OK);
  return s;
}

Values stored(const odt_layer_t& l) {
  Values m;
  for (uint32_t i = 0; i < l.n_weights; i++) m.push_back(odt_layer_get(&l, i));
  return m;
}

std::vector<uint8_t> state_of(const odt_trainer_t* t) {
  std::vector<uint8_t> out(odt_state_size(t));
  odt_state_read(t, 0, out.data(), static_cast<uint32_t>(out.size()));
  return out;
}

std::vector<uint8_t> weights_of(const odt_trainer_t* t, bool best) {
  std::vector<uint8_t> out(odt_weights_size(t));
  odt_weights_read(t, best, 0, out.data(), static_cast<uint32_t>(out.size()));
  return out;
}

std::vector<uint8_t> next_batch(const odt_trainer_t* t, const NetSpec& net, const SampleSet& set) {
  const odt_run_spec_t& s = t->spec;
  std::vector<int> order = oracle_order(s.order_seed, t->epoch, static_cast<int>(s.train_samples));
  uint32_t n = std::min<uint32_t>(s.batch, s.train_samples - t->position);
  std::vector<int8_t> labels;
  std::vector<uint8_t> data;
  for (uint32_t i = 0; i < n; i++) {
    auto from = static_cast<size_t>(order[t->position + i]);
    labels.push_back(static_cast<int8_t>(set.labels[from]));
    for (int64_t v : set.values[from]) data.push_back(static_cast<uint8_t>(v));
  }
  return build_samples(net.input_dtype, count(net.input_dims), labels, data);
}

NetSpec small_dense() {
  Random r(99);
  NetSpec net;
  net.input_dims = {12};
  net.n_classes = 4;
  LayerSpec a;
  a.outputs = 8;
  a.relu = a.trainable = true;
  a.clip_lo = 0;
  a.clip_hi = 255;
  fill_layer(r, a, 12, 128);
  LayerSpec b;
  b.outputs = 4;
  b.trainable = true;
  fill_layer(r, b, 8, 255);
  net.layers = {a, b};
  net.target_correct = {60, 50, 40, 70};
  net.target_wrong = {-10, 0, -5, -20};
  net.ce_scale = 100;
  return net;
}

bool train_a_little(odt_model_t* m) {
  odt_run_spec_t spec = plain_spec(2, 2, 1);
  bool classes = m->task == ODT_TASK_CLASSIFY;
  spec.loss = classes && m->ce_scale ? ODT_LOSS_CE : ODT_LOSS_MSE;
  if (m->arith == ODT_ARITH_DFP16) {
    spec.rule_set = ODT_RULE_DFP16;
    if (classes) spec.loss = ODT_LOSS_CE;
    for (uint16_t& rate : spec.lr_m) rate = 3;
    spec.lr_s = 12;
  }
  if (odt_run_spec_check(&spec, m, nullptr) != ODT_OK) return false;
  odt_memory_plan_t plan;
  odt_trainer_plan(m, &spec, true, &plan);
  if (plan.total_bytes > 1000000) return false;
  std::vector<uint64_t> arena(plan.total_bytes / 8 + 1);
  auto t = std::make_unique<odt_trainer_t>();
  if (odt_trainer_init(t.get(), m, &spec, true, arena.data(), plan.total_bytes, nullptr) !=
      ODT_OK) {
    return false;
  }
  uint32_t len = m->tensors[m->input].count;
  auto dtype = static_cast<DType>(m->tensors[m->input].dtype);
  bool targets = m->task == ODT_TASK_REGRESS;
  std::vector<int8_t> labels(targets ? size_t{2} * m->n_classes : 2, 0);
  labels[1] = 1;
  size_t bytes = size_t{2} * len * (dtype == DType::kS16 ? 2 : 1);
  std::vector<uint8_t> blob =
      build_samples(dtype, len, 2, targets ? 1 : 0, labels, std::vector<uint8_t>(bytes, 0x81));
  odt_samples_t s;
  if (odt_samples_open(&s, blob.data(), static_cast<uint32_t>(blob.size()), nullptr) != ODT_OK) {
    return false;
  }
  odt_step_record_t rec;
  odt_epoch_record_t epoch;
  if (odt_trainer_step_resident(t.get(), &s, &rec, nullptr) != ODT_OK) return false;
  return odt_trainer_end_epoch(t.get(), 0, 0, &epoch, nullptr) == ODT_OK;
}

}  // namespace odt::testing
