#include "data/report.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "data/import.h"
#include "temp_files.h"

namespace odt::data::report_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Values, one sample a row, all in `counts` splits.
Dataset dataset(std::vector<std::uint32_t> counts, std::vector<std::vector<std::uint8_t>> rows,
                std::vector<std::uint8_t> labels) {
  Dataset d;
  d.shape = {static_cast<std::uint32_t>(rows[0].size())};
  for (int i = 0; i < 3; ++i) d.counts[i] = counts[static_cast<std::size_t>(i)];
  d.class_names = {"a", "b"};
  d.labels = std::move(labels);
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    d.values.insert(d.values.end(), rows[i].begin(), rows[i].end());
    d.source_index.push_back(i);
  }
  measure_ranges(d);
  return d;
}

TEST(Report, BalancedDataWithoutFaultsHasNoWarnings) {
  const auto d = dataset({2, 1, 1}, {{1, 2}, {3, 4}, {5, 6}, {7, 8}}, {0, 1, 0, 1});
  const Report r = make_report(d, {});
  EXPECT_THAT(r.warnings, IsEmpty());
  EXPECT_EQ(r.duplicates, 0u);
  EXPECT_THAT(r.class_counts[0], ElementsAre(1, 1));
  EXPECT_THAT(r.class_counts[2], ElementsAre(0, 1));
  EXPECT_EQ(r.features[0].mean, 4);
  EXPECT_NEAR(r.features[0].deviation, 2.2360679, 1e-6);
}

TEST(Report, DuplicatesLeaksAndConflicts) {
  // 0 and 1 are equal; 3 (held-out) and 4 (test, other label) are in train too.
  const auto d = dataset({3, 1, 1}, {{1, 2}, {1, 2}, {9, 9}, {9, 9}, {1, 2}}, {0, 0, 1, 1, 1});
  const Report r = make_report(d, {});
  EXPECT_EQ(r.duplicates, 3u);
  EXPECT_EQ(r.leaked, 2u);
  EXPECT_EQ(r.conflicting, 1u);
  EXPECT_THAT(r.warnings, Contains(HasSubstr("2 held-out or test samples have the values of one in "
                                             "train")));
  EXPECT_THAT(r.warnings, Contains(HasSubstr("3 of 5 samples are exact duplicates")));
}

TEST(Report, ImbalanceAndAbsentClasses) {
  std::vector<std::vector<std::uint8_t>> rows;
  std::vector<std::uint8_t> labels;
  for (std::uint8_t i = 0; i < 11; ++i) {
    rows.push_back({i, static_cast<std::uint8_t>(255 - i)});
    labels.push_back(i == 0);
  }
  EXPECT_THAT(make_report(dataset({11, 0, 0}, rows, labels), {}).warnings,
              Contains(HasSubstr("unbalanced: 'a' has 10 samples in train, 'b' 1")));
  labels[0] = 0;
  EXPECT_THAT(make_report(dataset({11, 0, 0}, rows, labels), {}).warnings,
              Contains(HasSubstr("no sample to train on of class 'b'")));
}

TEST(Report, FilesThatAreNotWholeAreNamed) {
  const auto d = dataset({2, 1, 1}, {{1, 2}, {3, 4}, {5, 6}, {7, 8}}, {0, 1, 0, 1});
  ImportNotes notes;
  notes.info.faults = {"a.wav: cut off"};
  EXPECT_THAT(make_report(d, notes).warnings, ElementsAre("1 file is not whole: a.wav: cut off"));
  notes.info.faults.assign(7, "b.wav: cut off");
  EXPECT_THAT(make_report(d, notes).warnings[0], HasSubstr("7 files are not whole: b.wav"));
  EXPECT_THAT(make_report(d, notes).warnings[0], HasSubstr("and 2 more"));
}

// Empty because groups stay whole, not because nobody asked for it.
TEST(Report, EmptySplitsHaveTheirReason) {
  auto d = dataset({4, 0, 0}, {{1, 2}, {3, 4}, {5, 6}, {7, 8}}, {0, 1, 0, 1});
  d.groups = {0, 0, 1, 1};
  d.group_names = {"r0", "r1"};
  ImportNotes notes;
  EXPECT_THAT(make_report(d, notes).warnings, IsEmpty());  // 100,0,0
  notes.wanted[1] = 1;
  EXPECT_THAT(make_report(d, notes).warnings,
              ElementsAre(HasSubstr("the held-out split is empty: the samples of a group stay "
                                    "together, and none of the 2 groups fits into 1 of 4")));
  notes.wanted[2] = 1;
  EXPECT_THAT(make_report(d, notes).warnings[0], HasSubstr("the held-out and test splits are"));
  notes.own_test = true;
  EXPECT_THAT(make_report(d, notes).warnings[0], HasSubstr("the held-out split is empty"));
  d.groups = {0, 0, 0, 0};
  EXPECT_THAT(make_report(d, notes).warnings[0], HasSubstr("there is 1 group, which trains"));
}

TEST(Report, ConstantAndMissingValuesByName) {
  const auto d = dataset({2, 1, 1}, {{1, 7}, {3, 7}, {5, 7}, {6, 7}}, {0, 1, 0, 1});
  ImportNotes notes;
  notes.info.value_names = {"temp", "dead"};
  notes.missing = {3, 0};
  notes.missing_cells = 3;
  const Report r = make_report(d, notes);
  EXPECT_THAT(r.warnings, Contains("1 of 2 values are the same in every sample: dead"));
  EXPECT_THAT(r.warnings, Contains("3 missing values were filled: temp (3)"));
  const auto j = report_json(r, d);
  EXPECT_EQ(j["constant"], 1);
  EXPECT_EQ(j["features"][0]["missing"], 3);
  EXPECT_EQ(j["features"][1]["name"], "dead");
  EXPECT_EQ(j["splits"][0]["samples"], 2);
  EXPECT_THAT(report_text(r, d), HasSubstr("warning: 1 of 2 values"));
}

TEST(Preview, AFewSamplesOfEachClassWithTheirValues) {
  std::vector<std::vector<std::uint8_t>> rows;
  std::vector<std::uint8_t> labels;
  for (std::uint8_t i = 0; i < 50; ++i) {
    rows.push_back({i});
    labels.push_back(i >= 40);
  }
  const auto d = dataset({45, 5, 0}, rows, labels);
  const auto j = preview_json(d, {"t"});
  ASSERT_EQ(j["samples"].size(), 6u);
  EXPECT_EQ(j["kind"], "table");
  EXPECT_EQ(j["samples"][3]["label"], "b");
  EXPECT_EQ(j["samples"][3]["index"], 40);
  EXPECT_EQ(j["samples"][3]["values"][0], 40);
}

TEST(Preview, StaysSmallForLargeSamples) {
  Dataset d = dataset(
      {4, 0, 0}, std::vector<std::vector<std::uint8_t>>(4, std::vector<std::uint8_t>(65000, 1)),
      {0, 1, 0, 1});
  EXPECT_EQ(preview_json(d, {})["samples"].size(), 2u);
}

#if !defined(__SANITIZE_ADDRESS__)

std::uint64_t peak_kib() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6));
  return 0;
}

// A file of many times the memory that the import may take beside its result.
TEST(BoundedMemory, ACsvImportTakesTheDatasetAndLittleMore) {
  TempFiles files;
  std::string text = "a,b,c,d,e,f,g,h,kind\n";
  for (int i = 0; text.size() < 24u << 20; ++i) {
    for (int k = 0; k < 8; ++k) text += std::to_string((i * 31 + k * 7) % 200) + ".000000,";
    text += i % 3 == 0 ? "up\n" : "down\n";
  }
  ImportRequest r;
  r.format = "csv";
  r.data_path = files.put("big.csv", text);
  text = {};
  text.shrink_to_fit();
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak is the present size again
  const std::uint64_t before = peak_kib();
  const auto d = import_dataset(r, [](auto, const auto&) {});
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(d->dtype, Dtype::kU8);
  const std::uint64_t result_kib = encode_dataset(*d).size() / 1024;  // 9 + 4 bytes a row
  EXPECT_LT(peak_kib() - before, 2 * result_kib + 8 * 1024) << "result " << result_kib << " KiB";
}

#endif

}  // namespace
}  // namespace odt::data::report_test
