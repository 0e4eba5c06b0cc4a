// The memory planner: buffers that live at the same time never share a byte, a run touches all that
// is planned and nothing beyond.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "compare.h"
#include "walk.h"

namespace odt::testing {
namespace {

struct Buffer {
  uint32_t from, to;
  uint64_t at, bytes;
};

class Planned {
 public:
  explicit Planned(const ComparedRun& run) : run_(run), image_(build_image(run.net)) {
    opened_ = odt_model_open(&m_, image_.data(), static_cast<uint32_t>(image_.size()), nullptr) ==
                  ODT_OK &&
              odt_run_spec_check(&run_.spec, &m_, nullptr) == ODT_OK;
    if (!opened_) return;
    odt_place(&m_, run_.spec.batch, &places_);
    collect();
  }
  bool opened() const { return opened_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  const odt_places_t& places() const { return places_; }
  const odt_model_t& model() const { return m_; }

  // The arena after a whole epoch, and what lies behind it; filled with `fill` before.
  std::vector<uint8_t> trained(uint8_t fill, uint32_t* total, uint32_t* region) {
    odt_memory_plan_t plan;
    odt_trainer_plan(&m_, &run_.spec, true, &plan);
    *total = plan.total_bytes;
    std::vector<uint64_t> arena(plan.total_bytes / 8 + 64, 0x0101010101010101u * fill);
    auto t = std::make_unique<odt_trainer_t>();
    EXPECT_EQ(
        odt_trainer_init(t.get(), &m_, &run_.spec, true, arena.data(), plan.total_bytes, nullptr),
        ODT_OK);
    *region = static_cast<uint32_t>(t->region - reinterpret_cast<uint8_t*>(arena.data()));
    std::vector<int> all;
    for (int i = 0; i < static_cast<int>(run_.spec.train_samples); i++) all.push_back(i);
    std::vector<uint8_t> blob = samples_blob(run_.samples, all);
    odt_samples_t s;
    EXPECT_EQ(odt_samples_open(&s, blob.data(), static_cast<uint32_t>(blob.size()), nullptr),
              ODT_OK);
    odt_step_record_t rec;
    while (!odt_trainer_epoch_complete(t.get())) {
      EXPECT_EQ(odt_trainer_step_resident(t.get(), &s, &rec, nullptr), ODT_OK);
    }
    const auto* bytes = reinterpret_cast<const uint8_t*>(arena.data());
    return {bytes, bytes + arena.size() * 8};
  }

 private:
  void add(const odt_spans_t& s, uint32_t op, uint32_t unit_at, uint64_t bytes) {
    if (s.from[op] == ODT_NEVER) return;
    buffers_.push_back({s.from[op], s.to[op], uint64_t{unit_at} * places_.unit, bytes});
  }
  void collect() {
    odt_spans_t act, delta;
    odt_lifetimes(&m_, &act, &delta);
    uint64_t one = odt_one_sample(&m_);
    uint64_t most = 0;
    for (uint32_t i = 0; i < m_.n_ops; i++) {
      const odt_tensor_t& out = m_.tensors[m_.ops[i].out];
      uint64_t n = one >> i & 1 ? 1 : run_.spec.batch;
      add(act, i, places_.act[i], n * out.count * odt_elem_bytes(out.dtype));
      add(delta, i, places_.delta[i], uint64_t{run_.spec.batch} * out.count);
      if (delta.from[i] == ODT_NEVER || odt_contributions(&m_, i) < 2) continue;
      most = std::max<uint64_t>(most, 8u * out.count);
    }
    for (uint32_t i = 0; i < m_.n_ops; i++) {
      if (delta.from[i] == ODT_NEVER || odt_contributions(&m_, i) < 2) continue;
      buffers_.push_back(
          {delta.from[i], delta.from[i], uint64_t{places_.sum} * places_.unit, most});
      forks_++;
    }
  }

  ComparedRun run_;
  std::vector<uint8_t> image_;
  odt_model_t m_{};
  odt_places_t places_{};
  std::vector<Buffer> buffers_;
  bool opened_ = false;

 public:
  int forks_ = 0;
};

ComparedRun random_graph_run(uint32_t seed) {
  Choices c(seed);
  return random_run(c, RunKind::kNiti, 8, true);
}

TEST(Plan, NothingSharesAByteAtTheSameTime) {
  int shared = 0, forks = 0, nets = 0;
  for (uint32_t seed = 1; seed <= 400; seed++) {
    Planned p(random_graph_run(seed));
    if (!p.opened()) continue;
    nets++;
    forks += p.forks_;
    uint64_t end = 0;
    const std::vector<Buffer>& all = p.buffers();
    for (size_t i = 0; i < all.size(); i++) {
      end = std::max(end, all[i].at + (all[i].bytes + p.places().unit - 1) / p.places().unit *
                                          p.places().unit);
      ASSERT_LE(all[i].from, all[i].to);
      for (size_t j = 0; j < i; j++) {
        bool time = all[i].from <= all[j].to && all[j].from <= all[i].to;
        bool place = all[i].at < all[j].at + all[j].bytes && all[j].at < all[i].at + all[i].bytes;
        ASSERT_FALSE(time && place && all[i].at != all[j].at + all[j].bytes)
            << "seed " << seed << " buffers " << i << " " << j;
        if (place) shared++;
      }
    }
    EXPECT_EQ(end, p.places().all_bytes) << seed;
  }
  EXPECT_GT(nets, 300);
  EXPECT_GT(shared, 1000);
  EXPECT_GT(forks, 100);
}

// What a run writes depends on nothing that was in memory before: a byte that was written differs
// from one of two fillings.
TEST(Plan, ARunTouchesAllThatIsPlannedAndNoMore) {
  int nets = 0;
  for (uint32_t seed = 1; seed <= 200; seed++) {
    ComparedRun run = random_graph_run(seed);
    run.spec.guard = false;
    // At least one batch is full.
    run.spec.batch =
        static_cast<uint16_t>(std::min<uint32_t>(run.spec.batch, run.spec.train_samples));
    Planned p(run);
    if (!p.opened()) continue;
    nets++;
    uint32_t total, region;
    std::vector<uint8_t> a = p.trained(0x00, &total, &region), b = p.trained(0xFF, &total, &region);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = total; i < a.size(); i++) {
      ASSERT_TRUE(a[i] == 0x00 && b[i] == 0xFF) << "seed " << seed << " byte " << i;
    }
    uint64_t peak = 0;
    for (const Buffer& buffer : p.buffers()) {
      for (uint64_t i = 0; i < buffer.bytes; i++) {
        size_t at = region + buffer.at + i;
        ASSERT_FALSE(a[at] == 0x00 && b[at] == 0xFF) << "seed " << seed << " byte " << at;
      }
      peak = std::max(peak, buffer.at + buffer.bytes);
    }
    EXPECT_LT(p.places().all_bytes - peak, p.places().unit) << seed;
  }
  EXPECT_GT(nets, 150);
}

// A chain needs less than all its values and the two largest deltas.
TEST(Plan, DeltasTakeThePlacesOfValuesThatAreDone) {
  ComparedRun run;
  run.net.input_dims = {64};
  run.net.n_classes = 2;
  run.net.ce_scale = 100;
  for (uint32_t n : {100u, 80u, 60u, 2u}) {
    LayerSpec l;
    l.outputs = n;
    l.trainable = true;
    uint32_t in = run.net.layers.empty() ? 64 : run.net.layers.back().outputs;
    l.weights.assign(size_t{in} * n, 1);
    l.offsets.assign(n, 0);
    l.k.assign(n, 5);
    run.net.layers.push_back(l);
  }
  run.spec.rule_set = ODT_RULE_NITI;
  run.spec.loss = ODT_LOSS_CE;
  run.spec.shift_source = ODT_SHIFT_EXACT;
  run.spec.k = 8;
  run.spec.batch = 8;
  run.spec.epochs = 1;
  run.spec.train_samples = 8;
  std::fill(std::begin(run.spec.class_weights), std::end(run.spec.class_weights), uint8_t{64});
  Planned p(run);
  ASSERT_TRUE(p.opened());
  EXPECT_EQ(p.places().act_bytes, 8u * (100 + 80 + 60 + 2));
  // Most is in use when the delta of 80 outputs is made from that of 60: both, and the values of
  // 100 and 80. The values of 60 and the logits have made room.
  EXPECT_GE(p.places().all_bytes, 8u * (100 + 80 + 60 + 80));
  EXPECT_LT(p.places().all_bytes, 8u * (100 + 80 + 60 + 80) * 11 / 10);
}

TEST(Plan, LargeBatchesStayWithinSixteenBitPlaces) {
  ComparedRun run;
  run.net.input_dims = {8};
  run.net.n_classes = 2;
  run.net.ce_scale = 100;
  for (uint32_t n : {60000u, 2u}) {
    LayerSpec l;
    l.outputs = n;
    l.trainable = true;
    uint32_t in = run.net.layers.empty() ? 8 : run.net.layers.back().outputs;
    l.weights.assign(size_t{in} * n, 1);
    l.offsets.assign(n, 0);
    l.k.assign(n, 5);
    l.clip_lo = 0;
    if (n == 60000) l.clip_hi = 1;
    if (n == 2) l.clip_lo = -128;
    run.net.layers.push_back(l);
  }
  run.spec.rule_set = ODT_RULE_NITI;
  run.spec.loss = ODT_LOSS_CE;
  run.spec.shift_source = ODT_SHIFT_EXACT;
  run.spec.k = 8;
  run.spec.batch = 256;
  run.spec.epochs = 1;
  run.spec.train_samples = 256;
  std::fill(std::begin(run.spec.class_weights), std::end(run.spec.class_weights), uint8_t{64});
  Planned p(run);
  ASSERT_TRUE(p.opened());
  EXPECT_GT(p.places().unit, 8u);
  uint64_t least = 2ull * 256 * 60000;
  EXPECT_GE(p.places().all_bytes, least);
  EXPECT_LT(p.places().all_bytes, least + least / 1000);
  for (const Buffer& b : p.buffers()) EXPECT_LE(b.at + b.bytes, p.places().all_bytes);
}

}  // namespace
}  // namespace odt::testing
