#include "compiler/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "support/full.h"
#include "training/ram_fit.h"

namespace odt::test {
namespace {

using compiler::BoardFigures;
using compiler::Kernels;
using compiler::LayerKind;

compiler::Layer layer(std::uint32_t in, std::uint32_t out, bool relu) {
  compiler::Layer l;
  l.relu = relu;
  l.trainable = true;
  l.clip_lo = relu ? 0 : -128;
  l.clip_hi = relu ? 255 : 127;
  l.in_shape = {in};
  l.out_shape = {out};
  l.weight_shape = {in, out};
  l.weights.assign(std::size_t{in} * out, 1);
  l.offset.assign(out, 128);
  l.mult.assign(out, 1);
  l.k.assign(out, 8);
  return l;
}

compiler::Network network(std::vector<compiler::Layer> layers) {
  compiler::Network net;
  net.name = "net";
  net.input_shape = layers[0].in_shape;
  net.layers = std::move(layers);
  connect_chain(net);
  net.calibration.target_correct.assign(net.n_classes(), 64);
  net.calibration.target_wrong.assign(net.n_classes(), -64);
  return net;
}

compiler::Compiled dense() {
  auto c = compiler::compile_network(
      network({layer(196, 64, true), layer(64, 32, true), layer(32, 10, false)}), "", "net.onnx",
      {"net", 0});
  EXPECT_TRUE(c.ok()) << c.status();
  return *std::move(c);
}

BoardFigures board_of(std::uint64_t arena) {
  auto b = compiler::other_board("cortex-m33", arena, 160);
  EXPECT_TRUE(b.ok());
  return *b;
}

std::uint64_t total(const compiler::FitReport& report) {
  return report.chosen ? report.chosen->ram.total() : 0;
}

// k 15, batch 8, best on the board.
compiler::FitReport fit_all(const compiler::Compiled& c, std::uint64_t arena,
                            const compiler::FitRequest& r = {}) {
  const auto report = compiler::fit(c, "net.onnx", board_of(arena), r);
  EXPECT_TRUE(report.ok()) << report.status();
  return *report;
}

TEST(Fit, TurnsAtTheVeryByte) {
  const auto c = dense();
  compiler::FitRequest fixed;
  fixed.k = 15;
  fixed.batch = 8;
  fixed.guard = false;
  const auto roomy = fit_all(c, 1 << 20, fixed);
  ASSERT_TRUE(roomy.chosen);
  EXPECT_FALSE(roomy.chosen->streamed);
  EXPECT_TRUE(roomy.would_fit.empty());
  const std::uint64_t resident = roomy.ways[0].ram.total(), streamed = roomy.ways[1].ram.total();
  EXPECT_LT(streamed, resident);
  EXPECT_FALSE(fit_all(c, resident, fixed).chosen->streamed);
  EXPECT_TRUE(fit_all(c, resident - 1, fixed).chosen->streamed);
  EXPECT_TRUE(fit_all(c, streamed, fixed).chosen->streamed);
  const auto tight = fit_all(c, streamed - 1, fixed);
  EXPECT_FALSE(tight.chosen);
  ASSERT_FALSE(tight.would_fit.empty());
  EXPECT_EQ(tight.would_fit.front().trainable_layers, 3u);  // with another k
}

TEST(Fit, WhatItProposesFits) {
  const auto c = dense();
  int proposed = 0;
  for (std::uint64_t arena = 60000; arena > 4000; arena -= 1800) {
    const auto report = fit_all(c, arena);
    EXPECT_TRUE(report.chosen || report.would_fit.size() < 3);
    EXPECT_TRUE(!report.chosen || report.would_fit.empty());
    for (const auto& choice : report.would_fit) {
      auto other =
          compiler::compile_network(c.network, "", "net.onnx", {"net", choice.trainable_layers});
      ASSERT_TRUE(other.ok());
      compiler::FitRequest r;
      r.k = choice.way.k;
      r.batch = choice.way.batch;
      const auto again = fit_all(*other, arena, r);
      ASSERT_TRUE(again.chosen) << arena;
      EXPECT_EQ(total(again), choice.way.ram.total());
      ++proposed;
    }
  }
  EXPECT_GT(proposed, 1);
  EXPECT_TRUE(fit_all(c, 100).would_fit.empty());  // the last layer's tail neither
}

TEST(Fit, TheGuardCostsASecondCopyOfTheWeights) {
  const auto c = dense();
  compiler::FitRequest alone;
  alone.guard = false;
  const auto with = fit_all(c, 1 << 20), without = fit_all(c, 1 << 20, alone);
  EXPECT_EQ(total(with) - total(without), with.ways[0].ram.weights);
}

model::RamPlan ram_plan(const nlohmann::json& ram) {
  return {ram["weights_k8"], ram["weights_k15"], ram["work_1"],    ram["work_2"],
          ram["work_4"],     ram["work_8"],      ram["work_per_8"]};
}

// What odtd keeps of a model, from the manifest.
model::Model model_of(const compiler::Compiled& c) {
  const auto manifest = nlohmann::json::parse(c.manifest);
  model::Model m;
  m.name = "net";
  m.n_classes = manifest["n_classes"];
  m.outputs.task = static_cast<model::Task>(manifest["task"]);
  m.outputs.count = m.n_classes;
  m.input_shape = c.network.input_shape;
  m.trainable_layers = manifest["trainable_layers"];
  m.image_bytes = manifest["image_bytes"];
  m.ram = ram_plan(manifest["ram"]);
  if (!manifest.contains("tail")) return m;
  const auto& tail = manifest["tail"];
  m.tail.image.bytes[0] = 1;
  m.tail.image_bytes = tail["image_bytes"];
  m.tail.sample_bytes = tail["sample_bytes"];
  m.tail.ram = ram_plan(tail["ram"]);
  return m;
}

struct Decided {
  const compiler::Compiled& c;
  std::uint64_t arena;
  compiler::FitRequest r;
  std::set<std::string>& seen;
};

void expect_same(const std::optional<compiler::FitWay>& way, const Decided& d,
                 std::uint32_t wanted) {
  const model::Model m = model_of(d.c);
  const compiler::FitRequest& r = d.r;
  model::Board board;
  board.ram_bytes = static_cast<std::uint32_t>(d.arena);
  board.caps = 0x7FFF;
  model::HyperParams asked;
  if (r.k != 0) asked.k = r.k;
  if (r.batch != 0) asked.batch = r.batch;
  asked.frozen = r.frozen;
  asked.streamed = r.streamed;
  asked.best_on_host = r.best_on_host;
  const training::SampleCounts counts{r.train, r.heldout, r.evaluate, false, r.guard};
  const auto placed =
      training::placements(m, board, counts, asked, r.batch == 0 ? wanted : r.batch);
  ASSERT_EQ(way.has_value(), placed.ok()) << d.arena << ": " << placed.status();
  if (!placed.ok()) return;
  const training::Placement& p = placed->front();
  EXPECT_EQ(way->k, p.k) << d.arena;
  EXPECT_EQ(way->batch, p.batch) << d.arena;
  EXPECT_EQ(way->streamed, p.streamed) << d.arena;
  EXPECT_EQ(way->best_on_host, p.best_on_host) << d.arena;
  EXPECT_EQ(static_cast<int>(way->form), static_cast<int>(p.form)) << d.arena;
  EXPECT_EQ(way->ram.total(), training::ram_need(m, counts, p).total()) << d.arena;
  static const char* const kForms[] = {"samples", "frozen", "tail"};
  d.seen.insert({p.best_on_host ? "host" : "board", kForms[static_cast<int>(p.form)],
                 p.batch > 8   ? "large"
                 : p.batch < 8 ? "small"
                 : p.k == 8    ? "k 8"
                               : "k 15"});
}

// `odtc fit` and odtd, which decides from the manifest's figures: the same way on every board.
void expect_as_odtd(const Decided& d) {
  const auto report = fit_all(d.c, d.arena & ~std::uint64_t{7}, d.r);
  expect_same(report.chosen, d, 8);
  if (d.c.network.task == compiler::Task::kClassify && d.r.batch == 0)
    expect_same(report.mild, d, 32);
  else
    EXPECT_FALSE(report.mild);
}

void expect_as_odtd_everywhere(const compiler::Compiled& c, std::set<std::string>& seen) {
  std::vector<compiler::FitRequest> requests(8);
  requests[1].k = 8;
  requests[2].k = 8;
  requests[2].batch = 4;
  requests[3].guard = false;
  requests[4].frozen = false;
  requests[5].streamed = true;
  requests[6].best_on_host = true;
  requests[7].evaluate = true;
  requests[7].heldout = 0;
  const std::uint64_t step = repeats(10007, 2111);
  for (std::uint64_t arena = 4000; arena < 260000; arena += arena < 90000 ? step : 50000)
    for (const auto& r : requests) {
      expect_as_odtd({c, arena, r, seen});
      if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
    }
}

TEST(Fit, ChoosesWhatOdtdRuns) {
  std::set<std::string> seen;
  expect_as_odtd_everywhere(dense(), seen);
  EXPECT_EQ(seen,
            (std::set<std::string>{"board", "host", "k 15", "k 8", "large", "samples", "small"}));
}

// The last `trainable` layers of 196-64-32-10 are trained.
compiler::Compiled frozen(std::uint32_t trainable,
                          compiler::Task task = compiler::Task::kClassify) {
  compiler::Network net =
      network({layer(196, 64, true), layer(64, 32, true), layer(32, 10, false)});
  net.task = task;
  if (task != compiler::Task::kClassify) net.calibration = {};
  auto c = compiler::compile_network(net, "", "net.onnx", {"net", trainable});
  EXPECT_TRUE(c.ok()) << c.status();
  return *std::move(c);
}

TEST(Fit, ChoosesWhatOdtdRunsOnFrozenOutputs) {
  for (const std::uint32_t trainable : {1u, 2u}) {
    std::set<std::string> seen;
    expect_as_odtd_everywhere(frozen(trainable), seen);
    for (const char* what : {"samples", "frozen", "tail", "large", "host"})
      EXPECT_EQ(seen.count(what), 1u) << trainable << " " << what;
  }
  std::set<std::string> seen;
  expect_as_odtd_everywhere(frozen(1, compiler::Task::kRegress), seen);
  EXPECT_EQ(seen.count("tail"), 1u);
}

TEST(Fit, FrozenOutputsCostWhatIsBehindThem) {
  const auto c = frozen(1);
  compiler::FitRequest r;
  r.frozen = true;
  const auto with = fit_all(c, 1 << 20, r);
  r.frozen = false;
  const auto without = fit_all(c, 1 << 20, r);
  ASSERT_TRUE(with.chosen && without.chosen);
  EXPECT_EQ(with.chosen->form, compiler::FitForm::kFrozen);
  EXPECT_LT(with.time.epoch_s * 3, without.time.epoch_s);
  const double alone =
      compiler::step_cost(network({layer(32, 10, false)}), Kernels::kDsp, 15, 8).training_step;
  EXPECT_DOUBLE_EQ(with.time.cost.training_step, alone);
  const std::string text = compiler::fit_text(c, board_of(1 << 20), r, with);
  EXPECT_NE(text.find("frozen, computed by odtd"), std::string::npos) << text;
}

TEST(Fit, RefusesPinsThatCannotBe) {
  compiler::FitRequest r;
  r.frozen = true;
  auto st = compiler::fit(dense(), "net.onnx", board_of(1 << 20), r).status();
  EXPECT_EQ(st.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(st.message().find("net.onnx: frozen is on"), std::string::npos) << st;
  r = {};
  r.best_on_host = true;
  r.heldout = 0;
  st = compiler::fit(dense(), "net.onnx", board_of(1 << 20), r).status();
  EXPECT_NE(st.message().find("best_on_host"), std::string::npos) << st;
}

// Limits of reduced firmware: what it refuses is not a way to train.
TEST(Fit, KnowsWhatReducedFirmwareRefuses) {
  BoardFigures board = board_of(1 << 20);
  board.limits.ops = 2;
  const auto c = frozen(1);
  auto report = compiler::fit(c, "net.onnx", board, {});
  ASSERT_TRUE(report.ok() && report->chosen) << report.status();
  EXPECT_EQ(report->chosen->form, compiler::FitForm::kTail);  // one operator
  EXPECT_EQ(report->ways.front().refused, "3 operators, it takes 2");
  std::string text = compiler::fit_text(c, board, {}, *report);
  EXPECT_NE(text.find("refused by its firmware: 3 operators, it takes 2"), std::string::npos)
      << text;

  board.limits = {};
  board.limits.layers = 2;
  report = compiler::fit(dense(), "net.onnx", board, {});
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->chosen);
  ASSERT_FALSE(report->would_fit.empty());
  EXPECT_EQ(report->would_fit.front().trainable_layers, 2u);
  text = compiler::fit_text(dense(), board, {}, *report);
  EXPECT_NE(text.find("refuses it: 3 trainable layers, it takes 2"), std::string::npos) << text;

  board.limits = {};
  board.limits.classes = 9;
  report = compiler::fit(c, "net.onnx", board, {});
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->chosen);
  EXPECT_TRUE(report->would_fit.empty());
}

// Counted under QEMU: tests/bench/run.sh kernels.
TEST(Cost, IsWithinAQuarterOfTheCounts) {
  const auto arc_like = network({layer(147, 160, true), layer(160, 2, false)});
  const struct {
    Kernels kernels;
    std::uint32_t k;
    double counted;
  } dense_steps[] = {{Kernels::kDsp, 8, 841195},     {Kernels::kDsp, 12, 3186348},
                     {Kernels::kPlainC, 8, 4172342}, {Kernels::kPlainC, 12, 4905422},
                     {Kernels::kHelium, 8, 562693},  {Kernels::kHelium, 12, 2717415}};
  for (const auto& s : dense_steps) {
    const double predicted = step_cost(arc_like, s.kernels, s.k, 8).training_step;
    EXPECT_NEAR(predicted / s.counted, 1, 0.25) << kernels_name(s.kernels) << " k " << s.k;
  }
  compiler::Layer conv = layer(1, 3, true);
  conv.kind = LayerKind::kConv;
  conv.conv.k_h = 16;
  conv.conv.k_w = 2;
  conv.in_shape = {1, 64, 2};
  conv.out_shape = {3, 49, 1};
  conv.weight_shape = {3, 1, 16, 2};
  conv.weights.assign(96, 1);
  compiler::Layer flat;
  flat.kind = LayerKind::kFlatten;
  flat.in_shape = conv.out_shape;
  flat.out_shape = {147};
  const auto arc = network({conv, flat, layer(147, 160, true), layer(160, 2, false)});
  EXPECT_NEAR(step_cost(arc, Kernels::kDsp, 8, 8).training_step / 1739274, 1, 0.25);
  EXPECT_NEAR(step_cost(arc, Kernels::kPlainC, 8, 8).training_step / 7974148, 1, 0.25);
  EXPECT_NEAR(step_cost(arc, Kernels::kHelium, 8, 8).training_step / 1562836, 1, 0.25);
}

// The last layer alone, from outputs of the frozen part: conv_a_head, tail, tail_k12 of the same
// bench.
TEST(Cost, OfATailIsWithinAQuarterOfTheCounts) {
  const auto head = network({layer(147, 2, false)});
  EXPECT_NEAR(step_cost(head, Kernels::kDsp, 8, 8).training_step / 27581, 1, 0.25);
  EXPECT_NEAR(step_cost(head, Kernels::kPlainC, 8, 8).training_step / 85962, 1, 0.25);
  EXPECT_NEAR(step_cost(head, Kernels::kHelium, 8, 8).training_step / 23462, 1, 0.25);
  const auto tail = network({layer(32, 10, false)});
  const struct {
    Kernels kernels;
    std::uint32_t k;
    double counted;
  } steps[] = {{Kernels::kDsp, 8, 28180},    {Kernels::kDsp, 12, 63817},
               {Kernels::kPlainC, 8, 79542}, {Kernels::kPlainC, 12, 85600},
               {Kernels::kHelium, 8, 24194}, {Kernels::kHelium, 12, 55081}};
  for (const auto& s : steps)
    EXPECT_NEAR(step_cost(tail, s.kernels, s.k, 8).training_step / s.counted, 1, 0.25)
        << kernels_name(s.kernels) << " k " << s.k;
}

TEST(Cost, FrozenLayersOnlyInfer) {
  auto net = network({layer(147, 160, true), layer(160, 2, false)});
  net.layers[0].trainable = false;
  const auto cost = compiler::layer_cost(net, 0, Kernels::kDsp, 8, 8);
  EXPECT_EQ(cost.backward, 0);
  EXPECT_EQ(cost.update, 0);
  EXPECT_GT(cost.forward, 0);
  EXPECT_GT(compiler::layer_cost(net, 1, Kernels::kDsp, 8, 8).backward, 0);
}

TEST(Boards, AreThoseOfTheFirmware) {
  for (const char* name : {"mps2_an505", "mps2_an386", "lm3s6965evb"}) {
    const auto b = compiler::find_board(name);
    ASSERT_TRUE(b.ok()) << name;
    EXPECT_GT(b->arena_bytes, 30000u);
    EXPECT_GT(b->clock_hz, 1000000u);
  }
  EXPECT_EQ(compiler::find_board("lm3s6965evb")->kernels, Kernels::kPlainC);
  EXPECT_EQ(compiler::find_board("mps2_an505")->kernels, Kernels::kDsp);
  const auto small = compiler::find_board("microbit");
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(small->limits.ops, 8u);
  EXPECT_EQ(small->limits.layers, 2u);
  EXPECT_EQ(small->limits.classes, 16u);
  EXPECT_EQ(compiler::find_board("mps2_an505")->limits.ops, 64u);
  EXPECT_EQ(compiler::other_board("cortex-m33+nodsp", 1000, 1)->kernels, Kernels::kPlainC);
  const auto none = compiler::find_board("mps9");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(std::string(none.status().message()).find("mps2_an505"), std::string::npos);
  EXPECT_FALSE(compiler::other_board("z80", 1000, 1).ok());
}

TEST(Fit, SaysItForPeopleAndPrograms) {
  const auto c = dense();
  const auto board = board_of(20000);
  const auto report = compiler::fit(c, "net.onnx", board, {});
  const std::string text = compiler::fit_text(c, board, {}, *report);
  EXPECT_NE(text.find("does not fit"), std::string::npos) << text;
  EXPECT_NE(text.find("would fit: --trainable"), std::string::npos) << text;
  const auto j = nlohmann::json::parse(compiler::fit_json(c, board, {}, *report));
  EXPECT_EQ(j["fits_streamed"], false);
  EXPECT_EQ(j["fits"], false);
  EXPECT_EQ(j["streamed"]["total"], report->ways[1].ram.total());
  EXPECT_EQ(j["layers"].size(), 3u);
  const auto tight = board_of(report->ways.back().ram.total());
  const auto fits = compiler::fit(c, "net.onnx", tight, {});
  const std::string said = compiler::fit_text(c, tight, {}, *fits);
  EXPECT_NE(said.find("fits: streamed batches, the guard's best weights on the host"),
            std::string::npos)
      << said;
}

}  // namespace
}  // namespace odt::test
