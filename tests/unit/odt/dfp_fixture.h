// DFP16 networks, samples and settings, and a trainer's test set-up.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "dfp/dfp.h"
#include "dfp_image.h"
#include "fixture.h"

namespace odt::testing::dfp {

inline LayerSpec weighted(Random& r, OpKind kind, uint32_t fan_in, uint32_t n, uint32_t outputs,
                          bool relu) {
  LayerSpec l;
  l.kind = kind;
  l.relu = relu;
  l.trainable = true;
  std::vector<float> w(n), b(outputs);
  float scale = 1.4f / std::sqrt(static_cast<float>(fan_in));
  for (float& v : w) v = scale * static_cast<float>(r.range(-10000, 10000)) / 10000.0f;
  for (float& v : b) v = 0.1f * static_cast<float>(r.range(-10000, 10000)) / 10000.0f;
  set_dfp_layer(&l, w, b, outputs);
  return l;
}
inline LayerSpec dense(Random& r, uint32_t in, uint32_t out, bool relu = false) {
  return weighted(r, OpKind::kLinear, in, in * out, out, relu);
}
inline LayerSpec conv(Random& r, uint32_t in, uint32_t out, uint16_t k, bool relu,
                      uint16_t pad = 0) {
  LayerSpec l = weighted(r, OpKind::kConv2d, in * k * k, in * out * k * k, out, relu);
  l.k_h = l.k_w = k;
  l.pad_t = l.pad_l = l.pad_b = l.pad_r = pad;
  return l;
}
inline LayerSpec plain(OpKind kind, int in0 = -1, int in1 = -1) {
  LayerSpec l;
  l.kind = kind;
  l.in0 = in0;
  l.in1 = in1;
  l.clip_lo = -32767;
  l.clip_hi = 32767;
  return l;
}

inline NetSpec base(std::vector<uint16_t> dims, uint16_t classes) {
  NetSpec net;
  net.arith = 1;
  net.input_dims = std::move(dims);
  net.input_exponent = -7;
  net.n_classes = classes;
  return net;
}
inline NetSpec dense_net() {
  Random r(11);
  NetSpec net = base({13}, 3);
  net.layers = {dense(r, 13, 9, true), dense(r, 9, 3)};
  return net;
}
// A fork around two convolutions, MAXPOOL, AVGPOOL, CONCAT, RESIZE, a frozen dense layer in front
// of the last.
inline NetSpec branched_net() {
  Random r(12);
  NetSpec net = base({2, 6, 6}, 3);
  net.layers.push_back(conv(r, 2, 4, 3, true, 1));   // t1: 4x6x6
  net.layers.push_back(conv(r, 4, 4, 3, false, 1));  // t2
  net.layers.push_back(plain(OpKind::kAdd, 2, 1));   // t3 = t2 + t1
  net.layers.back().relu = true;
  net.layers.back().clip_lo = 0;
  net.layers.push_back(plain(OpKind::kMaxPool, 3));  // t4: 4x3x3
  net.layers.back().k_h = net.layers.back().k_w = 2;
  net.layers.back().stride_h = net.layers.back().stride_w = 2;
  net.layers.push_back(plain(OpKind::kAvgPool, 3));  // t5: 4x2x2
  net.layers.back().k_h = net.layers.back().k_w = 3;
  net.layers.back().stride_h = net.layers.back().stride_w = 3;
  net.layers.push_back(plain(OpKind::kResize, 5));  // t6: 4x3x3
  net.layers.back().out_h = net.layers.back().out_w = 3;
  net.layers.push_back(plain(OpKind::kConcat, 4, 6));  // t7: 8x3x3
  net.layers.push_back(plain(OpKind::kFlatten, 7));    // t8: 72
  net.layers.push_back(dense(r, 72, 16, true));        // t9
  net.layers.back().trainable = false;
  net.layers.push_back(dense(r, 16, 3));  // t10
  return net;
}

// Two bits of the label stand in the values, under noise.
inline SampleSet labelled(const NetSpec& net, int n) {
  Random r(21);
  SampleSet s;
  std::vector<int8_t> labels;
  std::vector<uint8_t> data;
  uint32_t len = count(net.input_dims);
  for (int i = 0; i < n; i++) {
    int label = r.range(0, net.n_classes - 1);
    labels.push_back(static_cast<int8_t>(label));
    s.labels.push_back(label);
    Values v;
    for (uint32_t j = 0; j < len; j++) {
      int x = r.range(-30, 30) + (static_cast<int>(j) % net.n_classes == label ? 70 : 0);
      v.push_back(x);
      data.push_back(static_cast<uint8_t>(static_cast<int8_t>(x)));
    }
    s.values.push_back(v);
  }
  s.blob = build_samples(net.input_dtype, len, labels, data);
  return s;
}

inline odt_run_spec_t dfp_spec(int samples, int batch, int epochs, double rate) {
  odt_run_spec_t s{};
  s.rule_set = ODT_RULE_DFP16;
  s.loss = ODT_LOSS_CE;
  s.shift_source = ODT_SHIFT_EXACT;
  s.batch = static_cast<uint16_t>(batch);
  s.epochs = static_cast<uint16_t>(epochs);
  s.train_samples = static_cast<uint32_t>(samples);
  s.order_seed = 5;
  DfpRate lr = dfp_rate(rate);
  s.lr_m[0] = lr.m;
  s.lr_m[1] = static_cast<uint16_t>(lr.m / 2);
  s.lr_m[2] = static_cast<uint16_t>(lr.m / 4);
  s.lr_s = lr.s;
  std::memset(s.class_weights, 64, sizeof s.class_weights);
  return s;
}

class DfpTrainer : public ::testing::Test {
 protected:
  NetSpec net_ = branched_net();
  SampleSet set_ = labelled(net_, 21);
  odt_samples_t train_ = open_samples(set_.blob);
  odt_run_spec_t spec_ = dfp_spec(21, 4, 3, 0.05);
  odt_error_t err_{};
  std::vector<uint8_t> final_;

  void SetUp() override {
    spec_.guard = true;
    spec_.heldout_samples = 21;
  }
  // One step, or the end of the epoch with a made-up held-out count.
  void advance(odt_trainer_t* t) {
    if (!odt_trainer_epoch_complete(t)) {
      odt_step_record_t rec;
      ASSERT_EQ(odt_trainer_step_resident(t, &train_, &rec, &err_), ODT_OK) << err_.what;
      return;
    }
    const uint32_t heldout[] = {9, 14, 11};
    odt_epoch_record_t rec;
    ASSERT_EQ(odt_trainer_end_epoch(t, heldout[t->epoch], 21, &rec, &err_), ODT_OK) << err_.what;
  }
  odt_status_t push_state(odt_trainer_t* t, const std::vector<uint8_t>& b, uint32_t piece) {
    for (uint32_t at = 0; at < b.size(); at += piece) {
      auto n = std::min<uint32_t>(piece, static_cast<uint32_t>(b.size()) - at);
      odt_status_t st = odt_state_write(t, at, b.data() + at, n, &err_);
      if (st != ODT_OK) return st;
    }
    return odt_state_write_end(t, &err_);
  }
  odt_status_t push_weights(odt_trainer_t* t, bool best, const std::vector<uint8_t>& b) {
    odt_status_t st =
        odt_weights_write(t, best, 0, b.data(), static_cast<uint32_t>(b.size()), &err_);
    return st == ODT_OK ? odt_weights_write_end(t, best, &err_) : st;
  }
  void expect_refused(const char* what, int64_t got) {
    Rig rig(build_image(net_));
    EXPECT_EQ(odt_run_spec_check(&spec_, &rig.model(), &err_), ODT_INVALID_ARGUMENT) << what;
    EXPECT_STREQ(err_.what, what);
    EXPECT_EQ(err_.got, got) << what;
  }
};

}  // namespace odt::testing::dfp
