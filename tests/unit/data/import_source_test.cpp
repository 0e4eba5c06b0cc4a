#include "data/import_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace odt::data::source_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Rows : public Source {
 public:
  explicit Rows(std::vector<Row> rows) : rows_(std::move(rows)) {
    shape_ = {rows_.empty() ? 1u : static_cast<std::uint32_t>(rows_[0].values.size())};
    for (std::uint32_t i = 0; i < rows_.size(); ++i) {
      rows_[i].index = i;
      if (rows_[i].name.empty()) rows_[i].name = "row " + std::to_string(i);
    }
  }
  const std::vector<std::uint32_t>& shape() const override { return shape_; }
  Result<bool> next(Row& row) override {
    if (at_ == rows_.size()) return false;
    row = rows_[at_++];
    return true;
  }
  Status rewind() override {
    at_ = 0;
    return absl::OkStatus();
  }
  double progress() const override { return 0; }
  std::string describe() const override { return "rows"; }
  std::vector<Row> rows_;

 private:
  std::vector<std::uint32_t> shape_;
  std::size_t at_ = 0;
};

Row row(const std::string& label, std::vector<float> values, const std::string& group = "") {
  Row r;
  r.label = label;
  r.values = std::move(values);
  r.group = group;
  return r;
}

Result<Dataset> import(std::vector<Row> rows, const SplitOptions& o = {},
                       Missing missing = Missing::kRefuse, ImportNotes* notes = nullptr) {
  Rows source(std::move(rows));
  return import_source(
      source, o, missing, [](auto, const auto&) {}, notes);
}

std::string refusal(std::vector<Row> rows, const SplitOptions& o = {}) {
  const auto d = import(std::move(rows), o);
  EXPECT_FALSE(d.ok());
  return std::string(d.status().message());
}

// `n` rows of class c, 10 times as many of class 0 as of class 1.
std::vector<Row> skewed(std::uint32_t n) {
  std::vector<Row> rows;
  for (std::uint32_t i = 0; i < n; ++i)
    rows.push_back(row(i % 11 == 0 ? "rare" : "often", {static_cast<float>(i)}));
  return rows;
}

std::map<int, std::uint32_t> of_class(const Dataset& d, std::uint8_t c) {
  std::map<int, std::uint32_t> n;
  for (int split = 0; split < 3; ++split)
    for (std::uint32_t i = 0; i < d.counts[split]; ++i)
      n[split] += d.labels[d.first(static_cast<Split>(split)) + i] == c;
  return n;
}

TEST(ImportSource, EveryClassIsSplitInProportion) {
  const auto d = import(skewed(1100));
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_THAT(d->counts, ElementsAre(880, 110, 110));
  EXPECT_THAT(d->class_names, ElementsAre("often", "rare"));
  EXPECT_THAT(of_class(*d, 1), ElementsAre(std::pair(0, 80), std::pair(1, 10), std::pair(2, 10)));
}

TEST(ImportSource, CountsAreExactAndStillInProportion) {
  SplitOptions o;
  o.train = 101;
  o.heldout = 11;
  o.test = 22;
  const auto d = import(skewed(1100), o);
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_THAT(d->counts, ElementsAre(101, 11, 22));
  EXPECT_THAT(of_class(*d, 1), ElementsAre(std::pair(0, 9), std::pair(1, 1), std::pair(2, 2)));
}

TEST(ImportSource, TheSeedDecidesAndSkipDrawsDisjoint) {
  SplitOptions o;
  o.train = 500;
  o.heldout = 50;
  o.seed = 7;
  const auto a = import(skewed(1100), o), again = import(skewed(1100), o);
  ASSERT_TRUE(a.ok() && again.ok());
  EXPECT_EQ(encode_dataset(*a), encode_dataset(*again));
  o.skip = 550;
  const auto b = import(skewed(1100), o);
  ASSERT_TRUE(b.ok()) << b.status();
  std::set<std::uint32_t> both(a->source_index.begin(), a->source_index.end());
  both.insert(b->source_index.begin(), b->source_index.end());
  EXPECT_EQ(both.size(), 1100u);
}

TEST(ImportSource, PartsOfTheWhole) {
  SplitOptions o;
  o.parts[0] = 50;
  o.parts[1] = 25;
  o.parts[2] = 25;
  const auto d = import(skewed(400), o);
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_THAT(d->counts, ElementsAre(200, 100, 100));
}

TEST(ImportSource, ARecordingStaysInOneSplit) {
  std::vector<Row> rows;
  for (int g = 0; g < 40; ++g)
    for (int i = 0; i < 10; ++i)
      rows.push_back(row(g % 2 == 0 ? "a" : "b", {static_cast<float>(g * 10 + i)},
                         "recording " + std::to_string(g)));
  for (const std::uint32_t train : {0u, 205u}) {
    SplitOptions o;
    o.train = train;
    o.heldout = train > 0 ? 35 : 0;
    const auto d = import(rows, o);
    ASSERT_TRUE(d.ok()) << d.status();
    std::map<std::uint32_t, std::set<int>> splits;
    for (int split = 0; split < 3; ++split)
      for (std::uint32_t i = 0; i < d->counts[split]; ++i)
        splits[d->groups[d->first(static_cast<Split>(split)) + i]].insert(split);
    for (const auto& [group, in] : splits) EXPECT_EQ(in.size(), 1u) << group;
    if (train == 0)
      EXPECT_THAT(d->counts, ElementsAre(320, 40, 40));
    else
      EXPECT_THAT(d->counts, ElementsAre(205, 35, 0));
    EXPECT_NEAR(of_class(*d, 0)[0], d->counts[0] / 2.0, 10);
  }
}

TEST(ImportSource, TooManyOfWholeRecordingsIsRefused) {
  std::vector<Row> rows;
  for (int i = 0; i < 40; ++i)
    rows.push_back(row(i < 20 ? "a" : "b", {1}, i < 20 ? "r1" : i < 30 ? "r2" : "r3"));
  SplitOptions o;
  o.train = 25;
  o.heldout = 15;
  EXPECT_THAT(refusal(rows, o), HasSubstr("whole recordings leave"));
  o = {};
  o.skip = 1;
  EXPECT_THAT(refusal(rows, o), HasSubstr("skip does not go with recordings"));
}

TEST(ImportSource, TheNarrowestTypeThatHoldsAllValues) {
  const std::pair<float, Dtype> cases[] = {{255, Dtype::kU8},    {-128, Dtype::kS8},
                                           {256, Dtype::kS16},   {-32768, Dtype::kS16},
                                           {32768, Dtype::kF32}, {0.5f, Dtype::kF32}};
  for (const auto& [value, dtype] : cases) {
    const auto d = import({row("a", {value}), row("b", {0}), row("b", {1})});
    ASSERT_TRUE(d.ok()) << d.status();
    EXPECT_EQ(d->dtype, dtype) << value;
    EXPECT_EQ(d->feature_min[0], std::min(value, 0.0f));
  }
}

TEST(ImportSource, MissingValues) {
  const float nan = std::nanf("");
  const std::vector<Row> rows = {row("a", {1, 2}), row("b", {nan, 4}), row("a", {4, 6})};
  EXPECT_THAT(refusal(rows), HasSubstr("row 1: value 0 is missing"));
  ImportNotes notes;
  auto d = import(rows, {}, Missing::kMean, &notes);
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(notes.missing_cells, 1u);
  EXPECT_THAT(notes.missing, ElementsAre(1, 0));
  for (std::uint32_t i = 0; i < 3; ++i)
    if (d->source_index[i] == 1) {
      EXPECT_EQ(d->value(i, 0), 2) << "2.5, whole as its column is";
    }
  d = import(rows, {}, Missing::kZero);
  ASSERT_TRUE(d.ok());
  EXPECT_EQ(d->feature_min[0], 0);
  d = import({row("a", {1, 2}), row("b", {nan, 4}), row("b", {4, 6})}, {}, Missing::kDrop, &notes);
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(d->samples(), 2u);
  EXPECT_EQ(notes.dropped, 1u);
}

TEST(ImportSource, BadRowsAreNamed) {
  EXPECT_THAT(refusal(std::vector<Row>()), HasSubstr("no rows"));
  EXPECT_THAT(refusal({row("a", {1}), row("a", {2})}), HasSubstr("at least 2 classes"));
  EXPECT_THAT(refusal({row("a", {1}), row("", {2})}), HasSubstr("row 1: no label"));
  EXPECT_THAT(refusal({row("a", {1}), row("b", {INFINITY})}), HasSubstr("row 1: value 0 is inf"));
  EXPECT_THAT(refusal({row("a", {1}), row("b", {1, 2})}), HasSubstr("row 1: 2 values; expected 1"));
  EXPECT_THAT(refusal({row("a", {1}, "r"), row("b", {1})}), HasSubstr("row 1: no recording"));
  std::vector<Row> many;
  for (int i = 0; i <= 128; ++i) many.push_back(row("c" + std::to_string(i), {1}));
  EXPECT_THAT(refusal(many), HasSubstr("row 128: more than 128"));
  many.pop_back();
  EXPECT_TRUE(import(many).ok());
}

TEST(ImportSource, OwnTestRowsAreTheTestSplit) {
  auto rows = skewed(100);
  for (int i = 0; i < 30; ++i) {
    rows.push_back(row(i % 2 == 0 ? "rare" : "often", {500}));
    rows.back().own_test = true;
  }
  const auto d = import(rows);
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_THAT(d->counts, ElementsAre(90, 10, 30));
  EXPECT_EQ(d->value(d->first(Split::kTest), 0), 500);
  EXPECT_THAT(of_class(*d, 1)[2], 15);
}

TEST(ImportSource, RegressionKeepsTargetsAndTheirRanges) {
  std::vector<Row> rows;
  for (int i = 0; i < 20; ++i) {
    rows.push_back(row("", {static_cast<float>(i)}));
    rows.back().targets = {static_cast<float>(i) * 0.5f, -1};
  }
  const auto d = import(rows);
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(d->outputs, 2u);
  for (std::uint32_t i = 0; i < 20; ++i) EXPECT_EQ(d->targets[2 * i] * 2, d->value(i, 0));
  EXPECT_THAT(d->target_max, ElementsAre(9.5f, -1));
  const auto back = decode_dataset(encode_dataset(*d));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->targets, d->targets);
  rows[7].targets.pop_back();
  EXPECT_THAT(refusal(rows), HasSubstr("row 7: 1 targets; the first row has 2"));
}

TEST(DatasetFileV2, OneSampleAlone) {
  std::vector<Row> rows;
  for (int i = 0; i < 20; ++i)
    rows.push_back(row(i % 2 == 0 ? "a" : "b",
                       {static_cast<float>(i), static_cast<float>(i) * 0.5f},
                       "r" + std::to_string(i)));
  const auto all = *import(rows);
  const std::string bytes = encode_dataset(all);
  for (std::uint32_t n = 0; n < all.samples(); ++n) {
    const auto one = decode_sample(bytes, n);
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_EQ(one->samples(), 1u);
    EXPECT_EQ(one->value(0, 0), all.value(n, 0));
    EXPECT_EQ(one->value(0, 1), all.value(n, 1));
    EXPECT_EQ(one->labels[0], all.labels[n]);
    EXPECT_EQ(one->source_index[0], all.source_index[n]);
    EXPECT_EQ(one->group_names[one->groups[0]], all.group_names[all.groups[n]]);
    const auto split = n < all.counts[0]                   ? Split::kTrain
                       : n < all.counts[0] + all.counts[1] ? Split::kHeldout
                                                           : Split::kTest;
    EXPECT_EQ(one->count(split), 1u) << n;
  }
  EXPECT_EQ(decode_sample(bytes, all.samples()).status().code(), absl::StatusCode::kOutOfRange);
  const std::string path = testing::TempDir() + "one-sample.odtd";
  ASSERT_TRUE(write_file(path, bytes).ok());
  EXPECT_EQ(read_sample(path, 3)->value(0, 0), all.value(3, 0));
  std::remove(path.c_str());
  EXPECT_TRUE(absl::IsNotFound(read_sample(path, 3).status()));
}

TEST(DatasetFileV2, RoundTripAndEveryTruncationIsAnError) {
  auto d = *import({row("a", {1}, "r1"), row("b", {2.5f}, "r2"), row("a", {3}, "r3")});
  d.sample_rate = 104;
  d.kind = "series";
  const std::string bytes = encode_dataset(d);
  EXPECT_EQ(bytes[4], 2);
  const auto back = decode_dataset(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(encode_dataset(*back), bytes);
  EXPECT_EQ(back->group_names, d.group_names);
  EXPECT_EQ(back->sample_rate, 104);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(decode_dataset(bytes.substr(0, n)).ok()) << n;
    EXPECT_FALSE(decode_sample(bytes.substr(0, n), 0).ok()) << n;
  }
  for (std::size_t n = 0; n < 64; ++n) {
    std::string bad = bytes;
    bad[n] = static_cast<char>(bad[n] ^ 0xff);
    (void)decode_dataset(bad);
  }
}

}  // namespace
}  // namespace odt::data::source_test
