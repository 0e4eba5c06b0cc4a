// The DFP16 engine behind the trainer's functions: whole runs with recorded hashes, plan, settings,
// images and samples at and beyond their limits, evaluation.
#include "dfp_fixture.h"

namespace odt::testing::dfp {
namespace {

constexpr bool kChain32 = ODT_DFP_CHAIN != 0;

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

// The end weights are the best's, exponents too: a run whose rate blows weights up after epoch 1.
TEST_F(DfpTrainer, StreamedEqualsResident) {
  net_ = dense_net();
  set_ = labelled(net_, 21);
  train_ = open_samples(set_.blob);
  Rig a(build_image(net_)), b(build_image(net_));
  a.start(spec_);
  b.start(spec_, false);
  while (!odt_trainer_epoch_complete(a.trainer())) {
    odt_step_record_t x, y;
    std::vector<uint8_t> blob = next_batch(b.trainer(), net_, set_);
    odt_samples_t batch = open_samples(blob);
    ASSERT_EQ(odt_trainer_step_resident(a.trainer(), &train_, &x, &a.err), ODT_OK);
    ASSERT_EQ(odt_trainer_step(b.trainer(), &batch, &y, &b.err), ODT_OK) << b.err.what;
    EXPECT_EQ(std::memcmp(&x, &y, sizeof x), 0);
    EXPECT_EQ(x.layers[0].k, 16);
  }
  EXPECT_EQ(weights_of(a.trainer()), weights_of(b.trainer()));
}

// The arena is as large as the plan says, and nothing outside of it is touched.
TEST_F(DfpTrainer, PlanIsExact) {
  for (const NetSpec& net : {dense_net(), branched_net()}) {
    std::vector<uint8_t> image = build_image(net);
    SampleSet set = labelled(net, 21);
    odt_samples_t train = open_samples(set.blob);
    for (int v = 0; v < 8; v++) {
      spec_.guard = (v & 1) != 0;
      spec_.blocked = (v & 2) != 0;
      odt_model_t model;
      ASSERT_EQ(odt_model_open(&model, image.data(), static_cast<uint32_t>(image.size()), &err_),
                ODT_OK);
      odt_memory_plan_t plan{};
      odt_trainer_plan(&model, &spec_, (v & 4) != 0, &plan);
      EXPECT_EQ(plan.total_bytes, plan.weights_bytes + plan.best_bytes + plan.activation_bytes +
                                      plan.gradient_bytes + plan.order_bytes);
      std::vector<uint64_t> arena(plan.total_bytes / 8 + 9, 0xA5A5A5A5A5A5A5A5u);
      odt_trainer_t t;
      EXPECT_EQ(odt_trainer_init(&t, &model, &spec_, (v & 4) != 0, arena.data() + 4,
                                 plan.total_bytes - 1, &err_),
                ODT_RESOURCE_EXHAUSTED);
      ASSERT_EQ(odt_trainer_init(&t, &model, &spec_, (v & 4) != 0, arena.data() + 4,
                                 plan.total_bytes, &err_),
                ODT_OK);
      odt_trainer_set_start(&t, 3, 21);
      for (int i = 0; i < 6; i++) {
        odt_step_record_t rec;
        std::vector<uint8_t> blob = next_batch(&t, net, set);
        odt_samples_t batch = open_samples(blob);
        ASSERT_EQ((v & 4) != 0 ? odt_trainer_step_resident(&t, &train, &rec, &err_)
                               : odt_trainer_step(&t, &batch, &rec, &err_),
                  ODT_OK);
      }
      for (size_t i = 0; i < 4; i++) {
        EXPECT_EQ(arena[i], 0xA5A5A5A5A5A5A5A5u);
        EXPECT_EQ(arena[arena.size() - 1 - i], 0xA5A5A5A5A5A5A5A5u);
      }
    }
  }
}

TEST_F(DfpTrainer, Settings) {
  spec_.rule_set = ODT_RULE_NITI;
  expect_refused("rule_set (DFP16 image)", ODT_RULE_NITI);
  spec_.rule_set = ODT_RULE_DFP16;
  spec_.rounding = ODT_ROUND_PSTO;
  expect_refused("rounding (DFP16)", ODT_ROUND_PSTO);
  spec_.rounding = ODT_ROUND_HALF_UP;
  spec_.loss = ODT_LOSS_MSE;
  expect_refused("loss (DFP16, this task)", ODT_LOSS_MSE);
  spec_.loss = ODT_LOSS_CE;
  spec_.shift_source = ODT_SHIFT_STALE;
  expect_refused("shift_source (DFP16)", ODT_SHIFT_STALE);
  spec_.shift_source = ODT_SHIFT_EXACT;
  spec_.apt.offsets = true;
  expect_refused("apt.offsets (DFP16)", 1);
  spec_.apt.offsets = false;
  spec_.dead_zone = 4;
  expect_refused("dead_zone (DFP16)", 4);
  spec_.dead_zone = 0;
  spec_.apt.mode = ODT_APT_EPOCHS;
  expect_refused("apt (DFP16)", 1);
  spec_.apt.mode = ODT_APT_OFF;
  spec_.apt.k_max = 12;
  expect_refused("apt (DFP16)", 1);
  spec_.apt.k_max = 0;
  spec_.lr_m[1] = 0;
  expect_refused("lr_m", 0);
  spec_.lr_m[1] = 32768;
  expect_refused("lr_m", 32768);
  spec_.lr_m[1] = 32767;
  spec_.lr_s = 41;
  expect_refused("lr_s", 41);
  spec_.lr_s = 40;
  Rig rig(build_image(net_));
  EXPECT_EQ(odt_run_spec_check(&spec_, &rig.model(), &err_), ODT_OK) << err_.what;
  // And the other way round.
  NetSpec niti = small_dense();
  Rig other(build_image(niti));
  EXPECT_EQ(odt_run_spec_check(&spec_, &other.model(), &err_), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "rule_set");
}

// A weight's gradient sums batch * positions products of 30 bits; times a rate of 15 it must fit.
TEST_F(DfpTrainer, SumsStayInSixtyFourBits) {
  Random r(3);
  net_ = base({1, 64, 64}, 4);
  net_.layers = {conv(r, 1, 1, 1, true), plain(OpKind::kGap), plain(OpKind::kFlatten),
                 dense(r, 1, 4)};
  spec_.batch = 32;  // 32 * 4096 = 2^17
  Rig rig(build_image(net_));
  EXPECT_EQ(odt_run_spec_check(&spec_, &rig.model(), &err_), ODT_OK) << err_.what;
  spec_.batch = 33;
  expect_refused("batch (for a layer's output positions, DFP16)", 33);
  EXPECT_EQ(err_.limit_hi, 32);
  // At the limit, with everything at its largest: exact, not wrapped.
  net_.layers[0].weights16 = {32767};
  net_.layers[0].e_w = -15;
  net_.input_exponent = 0;
  spec_ = dfp_spec(32, 32, 1, 1);
  spec_.lr_m[0] = 32767;
  spec_.lr_s = 40;
  SampleSet set = labelled(net_, 32);
  for (size_t i = 16 + 32; i < set.blob.size(); i++) set.blob[i] = 127;
  odt_samples_t train = open_samples(set.blob);
  Rig full(build_image(net_));
  full.start(spec_);
  odt_step_record_t rec;
  ASSERT_EQ(odt_trainer_step_resident(full.trainer(), &train, &rec, &err_), ODT_OK);
  EXPECT_LE(rec.layers[0].bits, 48);
}

TEST_F(DfpTrainer, ImageAndSamples) {
  NetSpec bad = net_;
  bad.layers[0].weights16[3] = -32768;
  std::vector<uint8_t> image = build_image(bad);
  odt_model_t model;
  EXPECT_EQ(odt_model_open(&model, image.data(), static_cast<uint32_t>(image.size()), &err_),
            ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "op: weight in DFP16");
  EXPECT_EQ(err_.index, 0);
  // Rule 1.13: no tensor holds -32768.
  NetSpec wide = net_;
  wide.input_dtype = DType::kS16;
  Rig fine(build_image(wide));
  const uint32_t len = count(wide.input_dims);
  std::vector<uint8_t> values(2u * len, 1);
  std::vector<uint8_t> good = build_samples(DType::kS16, len, {0}, values);
  odt_samples_t in_range = open_samples(good);
  EXPECT_EQ(odt_samples_fit(&in_range, &fine.model(), &err_), ODT_OK) << err_.what;
  values[2] = 0x00;
  values[3] = 0x80;
  std::vector<uint8_t> lowest = build_samples(DType::kS16, len, {0}, values);
  odt_samples_t out_of_range = open_samples(lowest);
  EXPECT_EQ(odt_samples_fit(&out_of_range, &fine.model(), &err_), ODT_INVALID_ARGUMENT);
  EXPECT_STREQ(err_.what, "samples: value (DFP16)");
  EXPECT_EQ(err_.got, -32768);
  // Frozen samples: a batch's exponents are its own.
  Rig rig(build_image(net_));
  rig.start(spec_);
  std::vector<uint8_t> blob = set_.blob;
  blob[7] = ODT_SAMPLES_FROZEN;
  odt_samples_t frozen = open_samples(blob);
  odt_step_record_t rec;
  EXPECT_EQ(odt_trainer_step_resident(rig.trainer(), &frozen, &rec, &err_),
            ODT_FAILED_PRECONDITION);
  EXPECT_STREQ(err_.what, "samples: frozen (DFP16)");
}

TEST_F(DfpTrainer, InferenceAgreesWithEvaluation) {
  Rig rig(build_image(net_));
  rig.start(spec_);
  odt_trainer_t* t = rig.trainer();
  std::vector<uint8_t> before = state_of(t);
  uint32_t correct = 0, right = 0;
  uint64_t loss = 0;
  std::vector<uint32_t> confusion(9);
  ASSERT_EQ(odt_trainer_eval(t, &train_, 3, 10, &correct, &loss, confusion.data()), ODT_OK);
  for (uint32_t i = 3; i < 13; i++) {
    const uint8_t* x = train_.data + size_t{i} * train_.sample_len;
    int16_t z[3];
    int8_t small[3];
    int32_t e;
    ASSERT_EQ(odt_trainer_infer16(t, x, z, &e), ODT_OK);
    ASSERT_EQ(odt_trainer_infer(t, x, small), ODT_OK);
    int best = static_cast<int>(std::max_element(z, z + 3) - z);
    right += best == train_.labels[i] ? 1u : 0u;
    EXPECT_GT(confusion[static_cast<size_t>(train_.labels[i] * 3 + best)], 0u);
    int largest = std::max({std::abs(z[0]), std::abs(z[1]), std::abs(z[2])}), s = 0;
    while ((largest >> s) > 127) s++;
    for (int c = 0; c < 3; c++) {
      int v = s ? (z[c] + (1 << (s - 1))) >> s : z[c];
      EXPECT_EQ(small[c], std::clamp(v, -127, 127));
    }
  }
  EXPECT_EQ(correct, right);
  EXPECT_EQ(state_of(t), before);
  Rig niti(build_image(small_dense()));
  niti.start(plain_spec(8, 4, 1));
  EXPECT_EQ(odt_trainer_infer16(niti.trainer(), train_.data, nullptr, nullptr),
            ODT_FAILED_PRECONDITION);
}

// An autoencoder learns to copy its input; the guard keeps the lowest loss.
TEST_F(DfpTrainer, AutoencoderLearnsItsInput) {
  Random r(8);
  net_ = base({6}, 6);
  net_.task = ODT_TASK_AUTOENCODE;
  net_.layers = {dense(r, 6, 12, true), dense(r, 12, 6)};
  set_ = labelled(net_, 21);
  train_ = open_samples(set_.blob);
  spec_ = dfp_spec(21, 4, 30, 0.05);
  spec_.loss = ODT_LOSS_MSE;
  spec_.guard = true;
  spec_.heldout_samples = 21;
  Rig rig(build_image(net_));
  rig.start(spec_);
  odt_trainer_t* t = rig.trainer();
  auto heldout = [&] {
    uint32_t correct = 0;
    uint64_t loss = 0;
    EXPECT_EQ(odt_trainer_eval(t, &train_, 0, 21, &correct, &loss, nullptr), ODT_OK);
    EXPECT_EQ(correct, 0u);
    return static_cast<uint32_t>(loss);
  };
  uint32_t start = heldout(), lowest = start;
  ASSERT_EQ(odt_trainer_set_start(t, start, 21), ODT_OK);
  while (!odt_trainer_done(t)) {
    odt_step_record_t rec;
    while (!odt_trainer_epoch_complete(t)) {
      ASSERT_EQ(odt_trainer_step_resident(t, &train_, &rec, &err_), ODT_OK);
    }
    odt_epoch_record_t epoch;
    uint32_t now = heldout();
    lowest = std::min(lowest, now);
    ASSERT_EQ(odt_trainer_end_epoch(t, now, 21, &epoch, &err_), ODT_OK) << err_.what;
  }
  EXPECT_EQ(heldout(), lowest);
  EXPECT_LT(lowest * 4, start);
}

}  // namespace
}  // namespace odt::testing::dfp
