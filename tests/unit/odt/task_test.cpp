// Tasks, frozen parts, layers whose offsets alone are trained.
#include <gtest/gtest.h>

#include <cstring>

#include "fixture.h"

namespace odt::testing {
namespace {

// ------------------------------------------------------------------------------

LayerSpec dense(Random& r, uint32_t in, uint32_t out, bool relu, int8_t k) {
  LayerSpec l;
  l.outputs = out;
  l.relu = relu;
  l.clip_lo = relu ? 0 : -128;
  l.clip_hi = relu ? 255 : 127;
  for (uint32_t i = 0; i < in * out; i++)
    l.weights.push_back(static_cast<int8_t>(r.range(-50, 50)));
  for (uint32_t o = 0; o < out; o++) l.offsets.push_back(r.range(-300, 300));
  l.k.assign(out, k);
  return l;
}

LayerSpec concat(int a, int b, int32_t lo, int32_t hi) {
  LayerSpec l;
  l.kind = OpKind::kConcat;
  l.in0 = a;
  l.in1 = b;
  l.clip_lo = lo;
  l.clip_hi = hi;
  return l;
}

class Tasks : public ::testing::Test {
 protected:
  Random r_{5};
  odt_error_t err_{};

  // Two frozen layers side by side over the input, joined; a trained head over both.
  NetSpec forked(uint8_t task, uint16_t outputs) {
    NetSpec net;
    net.task = task;
    net.input_dims = {12};
    net.n_classes = outputs;
    net.ce_scale = 100;
    LayerSpec a = dense(r_, 12, 6, true, 6), b = dense(r_, 12, 4, true, 6);
    b.in0 = 0;
    LayerSpec head = dense(r_, 10, 8, true, 8), last = dense(r_, 8, outputs, false, 7);
    head.trainable = last.trainable = true;
    net.layers = {a, b, concat(1, 2, 0, 255), head, last};
    return net;
  }
  std::vector<uint8_t> samples(const NetSpec& net, int n, uint8_t flags,
                               const std::vector<int8_t>& labels) {
    std::vector<uint8_t> data;
    for (uint32_t i = 0; i < static_cast<uint32_t>(n) * count(net.input_dims); i++) {
      data.push_back(static_cast<uint8_t>(r_.range(0, 255)));
    }
    return build_samples(net.input_dtype, count(net.input_dims), static_cast<uint32_t>(n), flags,
                         labels, data);
  }
  std::vector<int8_t> numbers(int n, int lo, int hi) {
    std::vector<int8_t> v;
    for (int i = 0; i < n; i++) v.push_back(static_cast<int8_t>(r_.range(lo, hi)));
    return v;
  }
  odt_run_spec_t spec(int n, uint8_t loss) {
    odt_run_spec_t s = plain_spec(n, 4, 2);
    s.loss = loss;
    s.k = 12;
    return s;
  }
  void train(odt_trainer_t* t, const odt_samples_t& s) {
    odt_step_record_t rec;
    odt_epoch_record_t e;
    while (!odt_trainer_done(t)) {
      while (!odt_trainer_epoch_complete(t)) {
        ASSERT_EQ(odt_trainer_step_resident(t, &s, &rec, &err_), ODT_OK) << err_.what;
      }
      ASSERT_EQ(odt_trainer_end_epoch(t, 0, 0, &e, &err_), ODT_OK) << err_.what;
    }
  }
  // The samples with the model's cut in place of the input.
  std::vector<uint8_t> frozen(odt_trainer_t* t, const odt_samples_t& s, uint8_t flags) {
    const odt_tensor_t& cut = t->model->tensors[t->model->cut];
    uint32_t bytes = cut.count * (cut.dtype == ODT_S16 ? 2 : 1);
    std::vector<uint8_t> data(size_t{s.count} * bytes);
    for (uint32_t i = 0; i < s.count; i++) {
      EXPECT_EQ(
          odt_trainer_freeze(t, s.data + size_t{i} * s.sample_len, data.data() + size_t{i} * bytes),
          ODT_OK);
    }
    std::vector<int8_t> labels(s.labels, reinterpret_cast<const int8_t*>(s.data));
    return build_samples(static_cast<DType>(cut.dtype), cut.count, s.count, flags, labels, data);
  }
};

TEST_F(Tasks, FrozenSamplesTrainAndEvaluateToTheSameBits) {
  for (int32_t hi : {255, 1000}) {  // the cut in one byte and in two
    NetSpec net = forked(0, 3);
    net.layers[0].clip_hi = net.layers[1].clip_hi = net.layers[2].clip_hi = hi;
    Rig a(build_image(net)), b(build_image(net));
    EXPECT_EQ(a.model().cut, 3);
    odt_run_spec_t s = spec(10, ODT_LOSS_CE);
    a.start(s);
    b.start(s);
    std::vector<uint8_t> blob = samples(net, 10, 0, numbers(10, 0, 2));
    odt_samples_t raw = open_samples(blob);
    std::vector<uint8_t> cold = frozen(b.trainer(), raw, ODT_SAMPLES_FROZEN);
    odt_samples_t ready = open_samples(cold);
    EXPECT_EQ(ready.dtype, hi == 255 ? ODT_U8 : ODT_S16);
    train(a.trainer(), raw);
    train(b.trainer(), ready);
    EXPECT_EQ(state_of(a.trainer()), state_of(b.trainer()));
    uint32_t correct[2] = {0, 0};
    uint64_t loss[2] = {0, 0};
    EXPECT_EQ(odt_trainer_eval(a.trainer(), &raw, 0, 10, &correct[0], &loss[0], nullptr), ODT_OK);
    EXPECT_EQ(odt_trainer_eval(b.trainer(), &ready, 0, 10, &correct[1], &loss[1], nullptr), ODT_OK);
    EXPECT_EQ(loss[0], loss[1]);
    EXPECT_EQ(correct[0], correct[1]);
    EXPECT_NE(loss[0], 0u);
    int8_t z[3];  // inference still starts at the input
    EXPECT_EQ(odt_trainer_infer(b.trainer(), raw.data, z), ODT_OK);
  }
}

TEST_F(Tasks, FrozenSamplesNeedACutAndItsShape) {
  NetSpec net = forked(0, 3);
  Rig rig(build_image(net));
  rig.start(spec(4, ODT_LOSS_CE));
  auto fit = [&](DType dtype, uint32_t len, uint8_t flags) {
    std::vector<uint8_t> blob =
        build_samples(dtype, len, 4, flags, {0, 1, 2, 0},
                      std::vector<uint8_t>(size_t{4} * len * (dtype == DType::kS16 ? 2 : 1)));
    odt_samples_t s = open_samples(blob);
    return odt_samples_fit(&s, &rig.model(), &err_);
  };
  EXPECT_EQ(fit(DType::kU8, 10, ODT_SAMPLES_FROZEN), ODT_OK);
  EXPECT_EQ(fit(DType::kS8, 10, ODT_SAMPLES_FROZEN), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "samples: dtype");
  EXPECT_EQ(fit(DType::kU8, 12, ODT_SAMPLES_FROZEN), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "samples: sample_len");
  EXPECT_EQ(fit(DType::kS8, 12, 0), ODT_OK);
  net.layers[3].in0 = 3;
  net.layers.insert(net.layers.begin() + 4, concat(4, 1, 0, 255));  // conv A, past the cut
  net.layers[5].weights.resize(14 * 3, 1);
  Rig two(build_image(net));
  EXPECT_EQ(two.model().cut, ODT_NO_TENSOR);
  std::vector<uint8_t> blob =
      build_samples(DType::kU8, 10, 4, ODT_SAMPLES_FROZEN, {0, 1, 2, 0}, std::vector<uint8_t>(40));
  odt_samples_t s = open_samples(blob);
  EXPECT_EQ(odt_samples_fit(&s, &two.model(), &err_), ODT_FAILED_PRECONDITION);
  two.start(spec(4, ODT_LOSS_CE));
  uint8_t out[64];
  EXPECT_EQ(odt_trainer_freeze(two.trainer(), s.data, out), ODT_FAILED_PRECONDITION);
}

TEST_F(Tasks, RegressionComparesWithTargets) {
  NetSpec net = forked(ODT_TASK_REGRESS, 2);
  net.ce_scale = 0;
  Rig rig(build_image(net));
  odt_run_spec_t s = spec(6, ODT_LOSS_MSE);
  s.batch = 6;
  rig.start(s);
  odt_trainer_t* t = rig.trainer();
  std::vector<int8_t> targets = numbers(12, -100, 100);
  std::vector<uint8_t> blob = samples(net, 6, ODT_SAMPLES_TARGETS, targets);
  odt_samples_t set = open_samples(blob);
  EXPECT_EQ(set.label_len, 2u);
  uint64_t want = 0, loss = 0;
  uint32_t correct = 0, confusion[4] = {1, 2, 3, 4};
  for (uint32_t i = 0; i < 6; i++) {
    int8_t z[2];
    ASSERT_EQ(odt_trainer_infer(t, set.data + i * 12, z), ODT_OK);
    for (uint32_t c = 0; c < 2; c++) {
      int d = z[c] - targets[i * 2 + c];
      want += static_cast<uint64_t>(d * d);
    }
  }
  ASSERT_EQ(odt_trainer_eval(t, &set, 0, 6, &correct, &loss, confusion), ODT_OK);
  EXPECT_EQ(loss, want);
  EXPECT_EQ(correct, 0u);
  EXPECT_EQ(confusion[3], 4u);
  odt_step_record_t rec;
  ASSERT_EQ(odt_trainer_step_resident(t, &set, &rec, &err_), ODT_OK);
  EXPECT_EQ(rec.loss, want);
  EXPECT_EQ(rec.correct, 0u);
  uint32_t score;
  EXPECT_EQ(odt_trainer_score(t, set.data, &score), ODT_FAILED_PRECONDITION);
}

TEST_F(Tasks, TargetsMustFitTheModel) {
  Rig regress(build_image(forked(ODT_TASK_REGRESS, 2))), classify(build_image(forked(0, 2)));
  auto fit = [&](Rig& rig, uint32_t n, uint8_t flags, size_t labels) {
    std::vector<uint8_t> blob =
        build_samples(DType::kS8, 12, n, flags, std::vector<int8_t>(labels, 1),
                      std::vector<uint8_t>(size_t{12} * n));
    odt_samples_t s = open_samples(blob);
    return odt_samples_fit(&s, &rig.model(), &err_);
  };
  EXPECT_EQ(fit(regress, 5, ODT_SAMPLES_TARGETS, 10), ODT_OK);
  EXPECT_EQ(fit(regress, 5, ODT_SAMPLES_TARGETS, 15), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "samples: bytes of targets");
  EXPECT_EQ(fit(regress, 5, ODT_SAMPLES_TARGETS, 5), ODT_INVALID_ARGUMENT);
  EXPECT_EQ(fit(regress, 1, ODT_SAMPLES_TARGETS, 2), ODT_OK);
  EXPECT_EQ(fit(regress, 1, ODT_SAMPLES_TARGETS, 5), ODT_INVALID_ARGUMENT);
  EXPECT_EQ(fit(regress, 5, 0, 5), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "samples: flags: targets");
  EXPECT_EQ(fit(classify, 5, ODT_SAMPLES_TARGETS, 10), ODT_INVALID_ARGUMENT);
  EXPECT_EQ(fit(classify, 5, 0, 5), ODT_OK);
}

TEST_F(Tasks, SettingsOfTasks) {
  Rig rig(build_image(forked(ODT_TASK_REGRESS, 2)));
  odt_run_spec_t s = spec(6, ODT_LOSS_CE);
  EXPECT_EQ(odt_run_spec_check(&s, &rig.model(), &err_), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "loss (regression, autoencoder)");
  s.loss = ODT_LOSS_MSE;  // without TARGET_MAG in the image, without class weights
  for (uint8_t& w : s.class_weights) w = 0;
  EXPECT_EQ(odt_run_spec_check(&s, &rig.model(), &err_), ODT_OK) << err_.what;
}

NetSpec autoencoder(Random& r, uint32_t width) {
  NetSpec net;
  net.task = ODT_TASK_AUTOENCODE;
  net.input_dims = {static_cast<uint16_t>(width)};
  net.n_classes = static_cast<uint16_t>(width);
  LayerSpec a = dense(r, width, 5, true, 6), b = dense(r, 5, width, false, 6);
  b.trainable = true;
  net.layers = {a, b};
  return net;
}

TEST_F(Tasks, AutoencoderComparesWithItsInput) {
  NetSpec net = autoencoder(r_, 200);  // more than there are classes
  Rig rig(build_image(net));
  odt_run_spec_t s = spec(8, ODT_LOSS_MSE);
  rig.start(s);
  odt_trainer_t* t = rig.trainer();
  std::vector<uint8_t> blob = samples(net, 8, 0, std::vector<int8_t>(8, 77));  // labels: ignored
  odt_samples_t set = open_samples(blob);
  ASSERT_EQ(odt_samples_fit(&set, &rig.model(), &err_), ODT_OK) << err_.what;
  uint64_t sum = 0, loss = 0;
  uint32_t correct = 0;
  for (uint32_t i = 0; i < 8; i++) {
    std::vector<int8_t> z(200);
    const auto* x = reinterpret_cast<const int8_t*>(set.data + i * 200);
    ASSERT_EQ(odt_trainer_infer(t, set.data + i * 200, z.data()), ODT_OK);
    uint32_t want = 0, score = 0;
    for (int c = 0; c < 200; c++) want += static_cast<uint32_t>((z[c] - x[c]) * (z[c] - x[c]));
    ASSERT_EQ(odt_trainer_score(t, set.data + i * 200, &score), ODT_OK);
    EXPECT_EQ(score, want);
    sum += want;
  }
  ASSERT_EQ(odt_trainer_eval(t, &set, 0, 8, &correct, &loss, nullptr), ODT_OK);
  EXPECT_EQ(loss, sum);
  train(t, set);
  uint64_t after = 0;
  ASSERT_EQ(odt_trainer_eval(t, &set, 0, 8, &correct, &after, nullptr), ODT_OK);
  EXPECT_LT(after, loss);
}

TEST_F(Tasks, FrozenAutoencoderTakesItsInputAsTargets) {
  NetSpec net = autoencoder(r_, 16);
  Rig a(build_image(net)), b(build_image(net));
  odt_run_spec_t s = spec(7, ODT_LOSS_MSE);
  a.start(s);
  b.start(s);
  std::vector<uint8_t> blob = samples(net, 7, 0, std::vector<int8_t>(7, 0));
  odt_samples_t raw = open_samples(blob);
  std::vector<uint8_t> cold = frozen(b.trainer(), raw, ODT_SAMPLES_FROZEN);
  odt_samples_t ready = open_samples(cold);
  EXPECT_EQ(odt_samples_fit(&ready, &b.model(), &err_), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "samples: flags: targets");
  const auto* x = reinterpret_cast<const int8_t*>(raw.data);
  std::vector<uint8_t> both =
      build_samples(DType::kU8, 5, 7, ODT_SAMPLES_FROZEN | ODT_SAMPLES_TARGETS,
                    std::vector<int8_t>(x, x + 112), {ready.data, ready.data + 35});
  ready = open_samples(both);
  train(a.trainer(), raw);
  train(b.trainer(), ready);
  EXPECT_EQ(state_of(a.trainer()), state_of(b.trainer()));
}

TEST_F(Tasks, GuardOfATaskKeepsTheLowestLoss) {
  NetSpec net = forked(ODT_TASK_REGRESS, 2);
  Rig rig(build_image(net));
  odt_run_spec_t s = spec(6, ODT_LOSS_MSE);
  s.guard = true;
  s.heldout_samples = 3;
  s.epochs = 4;
  rig.start(s);
  odt_trainer_t* t = rig.trainer();
  std::vector<uint8_t> blob = samples(net, 6, ODT_SAMPLES_TARGETS, numbers(12, -100, 100));
  odt_samples_t set = open_samples(blob);
  EXPECT_EQ(odt_trainer_set_start(t, 0xFFFFFFFF, 3), ODT_INVALID_ARGUMENT);
  ASSERT_EQ(odt_trainer_set_start(t, 0xFFFFFFFE, 3), ODT_OK);  // far more than samples
  const uint32_t losses[] = {5000, 4000, 4000, 4001};
  std::vector<uint8_t> best;
  odt_step_record_t rec;
  odt_epoch_record_t e;
  for (uint32_t loss : losses) {
    while (!odt_trainer_epoch_complete(t)) {
      ASSERT_EQ(odt_trainer_step_resident(t, &set, &rec, &err_), ODT_OK);
    }
    std::vector<uint8_t> now = weights_of(t);
    if (loss == 4000 && best.empty()) best = now;
    if (loss == 5000) {
      EXPECT_EQ(odt_trainer_end_epoch(t, 0xFFFFFFFF, 3, &e, &err_), ODT_INVALID_ARGUMENT);
    }
    ASSERT_EQ(odt_trainer_end_epoch(t, loss, 3, &e, &err_), ODT_OK);
  }
  EXPECT_EQ(e.best_step, 4u);  // the earlier of two equal ones
  EXPECT_EQ(weights_of(t), best);
}

TEST_F(Tasks, OffsetsAloneMove) {
  NetSpec net = forked(0, 3);
  net.layers[3].offsets_only = true;
  Rig rig(build_image(net));
  odt_run_spec_t s = spec(10, ODT_LOSS_CE);
  s.k = 8;
  rig.start(s);
  odt_trainer_t* t = rig.trainer();
  std::vector<uint8_t> before = weights_of(t);
  ASSERT_EQ(before.size(), 44u + 20 + 8 * 4 + 20 + 24 + 12);
  EXPECT_EQ(before[44 + 12], 0);  // n_weights of layer 0
  std::vector<uint8_t> blob = samples(net, 10, 0, numbers(10, 0, 2));
  odt_samples_t set = open_samples(blob);
  odt_step_record_t rec;
  odt_epoch_record_t e;
  while (!odt_trainer_epoch_complete(t)) {
    ASSERT_EQ(odt_trainer_step_resident(t, &set, &rec, &err_), ODT_OK);
    EXPECT_EQ(rec.layers[0].bits, 0);
    EXPECT_GT(rec.layers[1].bits, 0);
  }
  ASSERT_EQ(odt_trainer_end_epoch(t, 0, 0, &e, &err_), ODT_OK);
  std::vector<uint8_t> after = weights_of(t);
  EXPECT_NE(std::memcmp(before.data() + 64, after.data() + 64, 32), 0);
  EXPECT_FALSE(e.alarms & ODT_ALARM_DEAD_LAYER);
  EXPECT_EQ(e.layers[0].u_q8, 0u);
  EXPECT_NE(e.layers[0].e_d, 0);
  // The state goes over into another trainer.
  Rig other(build_image(net));
  other.start(s);
  std::vector<uint8_t> state = state_of(t);
  ASSERT_EQ(
      odt_state_write(other.trainer(), 0, state.data(), static_cast<uint32_t>(state.size()), &err_),
      ODT_OK);
  ASSERT_EQ(odt_state_write_end(other.trainer(), &err_), ODT_OK) << err_.what;
  train(t, set);
  train(other.trainer(), set);
  EXPECT_EQ(state_of(t), state_of(other.trainer()));
}

}  // namespace
}  // namespace odt::testing
