// tests/golden/rules/rules.json: the oracle still says so, and the library does as it says.
#include <gtest/gtest.h>

#include <fstream>

#include "rule_vectors.h"

namespace odt::testing {
namespace {

using Json = nlohmann::json;

Json parsed(const char* name) {
  std::ifstream in(std::string(ODT_GOLDEN_RULES) + "/" + name);
  return Json::parse(in);
}
const Json& golden() {
  static const Json json = parsed("rules.json");
  return json;
}
// What this build of the library can do.
const Json& runs() { return golden()[kLibraryHasChain32 ? "chain32" : "runs"]; }
const Json& wide() {
  static const Json json = parsed("wide.json");
  return json;
}

TEST(Rules, OracleSaysTheSame) {
  Json now = rule_vectors();
  for (const char* part : {"rounding", "hash32", "order"}) EXPECT_EQ(now[part], golden()[part]);
  for (const char* part : {"runs", "chain32"}) {
    ASSERT_EQ(now[part].size(), golden()[part].size());
    for (size_t i = 0; i < now[part].size(); i++) {
      EXPECT_EQ(now[part][i], golden()[part][i]) << now[part][i]["name"];
    }
  }
}

TEST(Rules, OracleSaysTheSameOfWideNetworks) { EXPECT_EQ(wide_vectors(), wide()); }

// The vectors are worth something only where something happens in them.
TEST(Rules, EveryRunTrains) {
  for (const Json& run : runs()) {
    const Json& steps = run["steps"];
    ASSERT_FALSE(steps.empty());
    EXPECT_NE(steps.front()["after"], steps.back()["after"]) << run["name"];
  }
}

class Board {
 public:
  explicit Board(const Json& run)
      : image_(bytes_of_hex(run["image"])), blob_(bytes_of_hex(run["samples"])) {
    odt_run_spec_t spec = spec_of_json(run["spec"]);
    auto bytes = static_cast<uint32_t>(image_.size());
    EXPECT_EQ(odt_model_open(&model_, image_.data(), bytes, &err_), ODT_OK) << err_.what;
    odt_memory_plan_t plan{};
    odt_trainer_plan(&model_, &spec, true, &plan);
    arena_.assign(plan.total_bytes / 8 + 1, 0x5A5A5A5A5A5A5A5Au);
    EXPECT_EQ(odt_trainer_init(trainer.get(), &model_, &spec, true, arena_.data(), plan.total_bytes,
                               &err_),
              ODT_OK)
        << err_.what;
    EXPECT_EQ(odt_samples_open(&samples, blob_.data(), static_cast<uint32_t>(blob_.size()), &err_),
              ODT_OK);
  }
  StateView state() const {
    std::vector<uint8_t> out(odt_state_size(trainer.get()));
    odt_state_read(trainer.get(), 0, out.data(), static_cast<uint32_t>(out.size()));
    return read_state(out);
  }
  std::string weights_sha256() const {
    uint8_t hash[32];
    odt_weights_hash(trainer.get(), false, hash);
    std::string out;
    for (uint8_t b : hash) {
      char hex[3];
      std::snprintf(hex, sizeof hex, "%02x", b);
      out += hex;
    }
    return out;
  }
  const char* what() const { return err_.what ? err_.what : ""; }

  std::unique_ptr<odt_trainer_t> trainer = std::make_unique<odt_trainer_t>();
  odt_samples_t samples{};
  odt_error_t err_{};

 private:
  std::vector<uint8_t> image_, blob_;
  odt_model_t model_{};
  std::vector<uint64_t> arena_;
};

void expect_layers(const StateView& got, const Json& want) {
  ASSERT_EQ(got.layers.size(), want.size());
  for (size_t i = 0; i < want.size(); i++) {
    SCOPED_TRACE("layer " + std::to_string(i));
    const LayerView& l = got.layers[i];
    EXPECT_EQ(l.m, want[i]["weights"].get<Values>());
    EXPECT_EQ(l.off, want[i]["offsets"].get<Values>());
    EXPECT_EQ(l.k, want[i]["k"].get<int>());
    EXPECT_EQ(l.b_prev, want[i]["b_prev"].get<int>());
    EXPECT_EQ(l.k_off, want[i].value("k_off", 0));
    EXPECT_EQ(l.exponents, want[i].value("exponents", Values{}));
    std::vector<uint64_t> sums = {l.a, l.n}, of_offsets = {l.a_off, l.n_off};
    EXPECT_EQ(sums, want[i].value("apt", std::vector<uint64_t>{0, 0}));
    EXPECT_EQ(of_offsets, want[i].value("apt_offsets", std::vector<uint64_t>{0, 0}));
  }
}

void expect_record(const odt_step_record_t& rec, const Json& want) {
  EXPECT_EQ(rec.loss, want["loss"].get<uint64_t>());
  EXPECT_EQ(rec.correct, want["correct"].get<uint32_t>());
  for (size_t i = 0; i < want["layers"].size(); i++) {
    const Json& layer = want["layers"][i];
    EXPECT_EQ(rec.layers[i].bits, layer["bits"].get<int>()) << i;
    EXPECT_EQ(rec.layers[i].k, layer["k"].get<int>()) << i;
    if (layer.contains("shift")) {
      EXPECT_EQ(rec.layers[i].shift, layer["shift"].get<int>()) << i;
    }
  }
}

odt_epoch_record_t end_epoch(Board& board, const Json& run) {
  odt_trainer_t* t = board.trainer.get();
  uint32_t score = 0, total = run["spec"].value("heldout_samples", 0u);
  if (run.contains("heldout_scores")) {
    score = run["heldout_scores"][odt_trainer_epoch_count(t) + 1].get<uint32_t>();
  }
  odt_epoch_record_t rec{};
  EXPECT_EQ(odt_trainer_end_epoch(t, score, total, &rec, &board.err_), ODT_OK) << board.what();
  return rec;
}

void start(Board& board, const Json& run) {
  if (!run.contains("heldout_scores")) return;
  odt_trainer_set_start(board.trainer.get(), run["heldout_scores"][0].get<uint32_t>(),
                        run["spec"]["heldout_samples"].get<uint32_t>());
}

// Between two steps of an epoch.
void steer(Board& board, const Json& run, size_t after) {
  for (const Json& s : run.value("set_k", Json::array())) {
    if (s[0].get<size_t>() != after) continue;
    auto k = s[2].get<uint8_t>();
    EXPECT_EQ(odt_trainer_set_k(board.trainer.get(), s[1].get<uint32_t>(), k, nullptr), ODT_OK);
  }
}

class RuleRunTest : public ::testing::TestWithParam<size_t> {};

TEST_P(RuleRunTest, LibraryDoesAsItSays) {
  const Json& run = runs()[GetParam()];
  Board board(run);
  if (HasFailure()) return;
  odt_trainer_t* t = board.trainer.get();
  start(board, run);
  for (size_t i = 0; i < run["steps"].size(); i++) {
    SCOPED_TRACE("step " + std::to_string(i));
    odt_step_record_t rec{};
    ASSERT_EQ(odt_trainer_step_resident(t, &board.samples, &rec, &board.err_), ODT_OK)
        << board.what();
    expect_record(rec, run["steps"][i]);
    expect_layers(board.state(), run["steps"][i]["after"]);
    if (HasFailure()) return;
    if (!odt_trainer_epoch_complete(t)) {
      steer(board, run, i);
      continue;
    }
    odt_epoch_record_t epoch = end_epoch(board, run);
    const Json& layers = run["steps"][i]["layers"];
    for (size_t l = 0; l < layers.size(); l++) {
      EXPECT_EQ(epoch.layers[l].e_d, layers[l]["e_d"].get<int>()) << l;
    }
  }
  EXPECT_TRUE(odt_trainer_done(t));
  expect_layers(board.state(), run["end"]);
  EXPECT_EQ(board.weights_sha256(), run["weights_sha256"].get<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Golden, RuleRunTest, ::testing::Range(size_t{0}, runs().size()),
                         [](const auto& param_info) {
                           return runs()[param_info.param]["name"].template get<std::string>();
                         });

class WideRunTest : public ::testing::TestWithParam<size_t> {};

TEST_P(WideRunTest, LibraryDoesAsItSays) {
  if (kLibraryHasChain32) GTEST_SKIP() << "these are of exact sums";
  const Json& run = wide()["runs"][GetParam()];
  Board board(run);
  if (HasFailure()) return;
  start(board, run);
  for (size_t i = 0; i < run["losses"].size(); i++) {
    odt_step_record_t rec{};
    ASSERT_EQ(odt_trainer_step_resident(board.trainer.get(), &board.samples, &rec, &board.err_),
              ODT_OK)
        << board.what();
    ASSERT_EQ(rec.loss, run["losses"][i].get<uint64_t>()) << "step " << i;
    if (odt_trainer_epoch_complete(board.trainer.get())) {
      end_epoch(board, run);
    } else {
      steer(board, run, i);
    }
  }
  EXPECT_EQ(board.weights_sha256(), run["weights_sha256"].get<std::string>());
}

INSTANTIATE_TEST_SUITE_P(
    Golden, WideRunTest, ::testing::Range(size_t{0}, wide()["runs"].size()),
    [](const auto& param_info) {
      return wide()["runs"][param_info.param]["name"].template get<std::string>();
    });

}  // namespace
}  // namespace odt::testing
