// The DFP16 engine behind the trainer's functions: whole runs with recorded hashes, restore at
// every step, plan, settings, images and samples at and beyond their limits, evaluation.
#include "dfp/dfp.h"

#include <gtest/gtest.h>

#include <cstring>

#include "dfp_image.h"
#include "fixture.h"

namespace odt::testing::dfp {
namespace {

constexpr bool kChain32 = ODT_DFP_CHAIN != 0;

LayerSpec weighted(Random& r, OpKind kind, uint32_t fan_in, uint32_t n, uint32_t outputs,
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
LayerSpec dense(Random& r, uint32_t in, uint32_t out, bool relu = false) {
  return weighted(r, OpKind::kLinear, in, in * out, out, relu);
}
LayerSpec conv(Random& r, uint32_t in, uint32_t out, uint16_t k, bool relu, uint16_t pad = 0) {
  LayerSpec l = weighted(r, OpKind::kConv2d, in * k * k, in * out * k * k, out, relu);
  l.k_h = l.k_w = k;
  l.pad_t = l.pad_l = l.pad_b = l.pad_r = pad;
  return l;
}
LayerSpec plain(OpKind kind, int in0 = -1, int in1 = -1) {
  LayerSpec l;
  l.kind = kind;
  l.in0 = in0;
  l.in1 = in1;
  l.clip_lo = -32767;
  l.clip_hi = 32767;
  return l;
}

NetSpec base(std::vector<uint16_t> dims, uint16_t classes) {
  NetSpec net;
  net.arith = 1;
  net.input_dims = std::move(dims);
  net.input_exponent = -7;
  net.n_classes = classes;
  return net;
}
NetSpec dense_net() {
  Random r(11);
  NetSpec net = base({13}, 3);
  net.layers = {dense(r, 13, 9, true), dense(r, 9, 3)};
  return net;
}
// A fork around two convolutions, MAXPOOL, AVGPOOL, CONCAT, RESIZE, a frozen dense layer in front
// of the last.
NetSpec branched_net() {
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
SampleSet labelled(const NetSpec& net, int n) {
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

odt_run_spec_t dfp_spec(int samples, int batch, int epochs, double rate) {
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

std::string hex(const uint8_t* hash, int n) {
  std::string out;
  for (int i = 0; i < n; i++) {
    char two[3];
    snprintf(two, sizeof two, "%02x", hash[i]);
    out += two;
  }
  return out;
}

struct Outcome {
  std::vector<std::string> hashes;  // first 8 bytes of the state's after each epoch
  std::vector<uint64_t> loss;
  uint32_t correct = 0;
};

Outcome run(Rig& rig, const NetSpec& net, const SampleSet& set, const odt_run_spec_t& spec) {
  (void)net;
  Outcome out;
  odt_samples_t train = open_samples(set.blob);
  rig.start(spec);
  odt_trainer_t* t = rig.trainer();
  while (!odt_trainer_done(t)) {
    odt_step_record_t rec;
    while (!odt_trainer_epoch_complete(t)) {
      EXPECT_EQ(odt_trainer_step_resident(t, &train, &rec, &rig.err), ODT_OK) << rig.err.what;
    }
    odt_epoch_record_t epoch;
    EXPECT_EQ(odt_trainer_end_epoch(t, 0, 0, &epoch, &rig.err), ODT_OK);
    out.hashes.push_back(hex(epoch.state_hash, 8));
    out.loss.push_back(epoch.loss);
  }
  uint64_t loss = 0;
  EXPECT_EQ(odt_trainer_eval(t, &train, 0, train.count, &out.correct, &loss, nullptr), ODT_OK);
  return out;
}

struct Recorded {
  const char* name;
  NetSpec net;
  odt_run_spec_t spec;
  std::vector<std::string> whole, chained;  // hashes of both accumulations
};

std::vector<Recorded> recorded() {
  odt_run_spec_t blocked = dfp_spec(31, 8, 6, 0.05);
  blocked.blocked = true;
  return {{"dense",
           dense_net(),
           dfp_spec(31, 8, 6, 0.05),
           {"fdabb9689ae8954c", "129b1e8a2c5d2f50", "894c27138aac1ee1", "1785d59ed8c2724d",
            "30fa6295a3e3f087", "49f00b26c87ad42b"},
           {"59fed79c97967ef0", "91f6618c123d2060", "51fcf20843c7bbce", "746b7334afa97c73",
            "757195dc140542d1", "5b0343709687aaea"}},
          {"dense_blocked",
           dense_net(),
           blocked,
           {"aca18728edf08220", "854f58d942f20495", "0d9bf53f9713f7df", "e74dcae722d84297",
            "c55ebce7a469e882", "79a16d377e8a0dc7"},
           {"7f1ca048966a71b2", "aaab0ec62d537bca", "a61d2565b2eead0e", "bcbb54b5c08dfaaf",
            "08dda2ba23d50913", "4f390c483cabcffd"}},
          {"branched",
           branched_net(),
           dfp_spec(31, 4, 6, 0.05),
           {"72a459d9bf4cef60", "6cd360bbf896eb22", "cdb06096fefd618b", "616249c2631899eb",
            "1cfb75feed025a33", "38a5f5d0d52272f9"},
           {"84a2943c41beda39", "7b942f835aea6398", "21eacf762eb51878", "b7c7fce3c42abd26",
            "eaf7beae6d57880f", "27b4b55ffa4a37fe"}},
          {"branched_blocked",
           branched_net(),
           blocked,
           {"46b43132732c6722", "0c3d485fa77cffaa", "6d1d6cb57785917e", "53daccbaedf40b7e",
            "2a691e9c518e1266", "2fe1095e969bf9b2"},
           {"e2de378d66fd8a14", "a329da35ed6fc3ed", "2dc2f86982f8246e", "2c3579e91dc5d2df",
            "8878aed2f509993c", "484a85276263dce2"}}};
}

TEST(Dfp, RecordedRuns) {
  for (const Recorded& c : recorded()) {
    Rig rig(build_image(c.net));
    SampleSet set = labelled(c.net, 31);
    Outcome got = run(rig, c.net, set, c.spec);
    EXPECT_EQ(got.hashes, kChain32 ? c.chained : c.whole) << c.name;
    EXPECT_LT(got.loss.back() * 3, got.loss.front()) << c.name;
    EXPECT_GE(got.correct, 28u) << c.name;
  }
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

TEST_F(DfpTrainer, RestoreAtEveryStep) {
  for (bool blocked : {false, true}) {
    spec_.blocked = blocked;
    Rig whole(build_image(net_));
    whole.start(spec_);
    ASSERT_EQ(odt_trainer_set_start(whole.trainer(), 7, 21), ODT_OK);
    for (uint32_t piece = 1; !odt_trainer_done(whole.trainer()); piece = piece * 3 % 1009) {
      std::vector<uint8_t> state = state_of(whole.trainer());
      std::vector<uint8_t> best = weights_of(whole.trainer(), true);
      Rig other(build_image(net_));
      other.start(spec_);
      ASSERT_EQ(push_state(other.trainer(), state, piece), ODT_OK) << err_.what;
      if (odt_trainer_best_missing(other.trainer())) {
        ASSERT_EQ(push_weights(other.trainer(), true, best), ODT_OK) << err_.what;
      }
      ASSERT_FALSE(odt_trainer_best_missing(other.trainer()));
      ASSERT_EQ(state_of(other.trainer()), state);
      while (!odt_trainer_done(other.trainer())) advance(other.trainer());
      advance(whole.trainer());
      if (odt_trainer_done(whole.trainer())) {
        ASSERT_EQ(state_of(other.trainer()), state_of(whole.trainer()));
      }
      if (piece == 1) final_ = state_of(other.trainer());
      ASSERT_EQ(state_of(other.trainer()), final_);
    }
  }
}
}  // namespace
}  // namespace odt::testing::dfp
