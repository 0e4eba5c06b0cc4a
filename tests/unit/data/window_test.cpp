#include "data/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <map>
#include <set>

#include "data/import.h"
#include "temp_files.h"

namespace odt::data::window_test {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

// Recordings of one class each; value = 100 * recording + step, and the negative of it.
class Ramps : public RecordingSource {
 public:
  explicit Ramps(std::vector<int> steps) : steps_(std::move(steps)) {}
  std::uint32_t channels() const override { return 2; }
  double sample_rate() const override { return 10; }
  Result<bool> next(Recording& r) override {
    if (at_ == steps_.size()) return false;
    r.label = "c" + std::to_string(at_ % 2);
    r.group = "";
    r.name = "r" + std::to_string(at_);
    r.values.clear();
    for (int i = 0; i < steps_[at_]; ++i) {
      const auto v = static_cast<float>(100 * static_cast<int>(at_) + i);
      r.values.insert(r.values.end(), {v, -v});
    }
    ++at_;
    return true;
  }
  Status rewind() override {
    at_ = 0;
    return absl::OkStatus();
  }
  double progress() const override { return 0; }
  std::string describe() const override { return "ramps"; }
  SourceInfo info() const override { return {}; }

 private:
  std::vector<int> steps_;
  std::size_t at_ = 0;
};

Result<std::unique_ptr<Source>> windows(std::vector<int> steps, std::uint32_t length,
                                        std::uint32_t stride, const std::string& features = "") {
  WindowOptions o;
  o.length = length;
  o.stride = stride;
  ODT_ASSIGN(o.features, parse_features(features));
  return open_windows(std::make_unique<Ramps>(std::move(steps)), o);
}
std::vector<Row> rows(std::vector<int> steps, std::uint32_t length, std::uint32_t stride,
                      const std::string& features = "") {
  auto source = windows(std::move(steps), length, stride, features);
  EXPECT_TRUE(source.ok()) << source.status();
  return source.ok() ? rows_of(**source) : std::vector<Row>{};
}
std::string refusal(std::uint32_t length, std::uint32_t stride, const std::string& features) {
  return std::string(windows({10}, length, stride, features).status().message());
}

TEST(WindowTest, OnlyWholeWindowsOfOneRecordingAreTaken) {
  const auto r = rows({5, 4}, 3, 2);
  ASSERT_EQ(r.size(), 3u);  // steps 0 and 2 of the first, 0 of the second
  EXPECT_THAT(r[1].values, ElementsAre(2, 3, 4, -2, -3, -4));
  EXPECT_THAT(r[2].values, ElementsAre(100, 101, 102, -100, -101, -102));
  EXPECT_EQ(r[0].group, "r0");
  EXPECT_EQ(r[2].group, "r1");
  EXPECT_EQ(r[1].index, 1u);
  EXPECT_EQ(r[1].name, "r0, steps from 2");
}

TEST(WindowTest, LengthOfTheRecordingGivesOneWindow) {
  EXPECT_EQ(rows({3}, 3, 1).size(), 1u);
  EXPECT_EQ(rows({4}, 3, 1).size(), 2u);
}

TEST(WindowTest, SecondPassGivesTheSameRows) {
  auto source = windows({5, 4}, 3, 2);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto first = rows_of(**source);
  ASSERT_TRUE((*source)->rewind().ok());
  const auto second = rows_of(**source);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].values, second[i].values);
    EXPECT_EQ(first[i].index, second[i].index);
  }
}

TEST(WindowTest, DecimationIsTheMeanOfSteps) {
  const auto r = rows({6}, 5, 0, "decimate:2");
  ASSERT_EQ(r.size(), 1u);
  EXPECT_THAT(r[0].values, ElementsAre(0.5f, 2.5f, -0.5f, -2.5f));
}

TEST(WindowTest, StatisticsAreOfEachChannel) {
  const auto r = rows({4}, 4, 0, "stats");
  ASSERT_EQ(r.size(), 1u);
  const float std = std::sqrt(1.25f), rms = std::sqrt(3.5f);
  EXPECT_THAT(r[0].values, ElementsAre(1.5f, FloatEq(std), 0, 3, FloatEq(rms), -1.5f, FloatEq(std),
                                       -3, 0, FloatEq(rms)));
  EXPECT_THAT(rows({4}, 0, 0, "stats:max,min")[0].values, ElementsAre(3, 0, 0, -3));
}

TEST(WindowTest, BadOptionsAreRefused) {
  EXPECT_THAT(refusal(0, 0, "raw"), HasSubstr("need a window length"));
  EXPECT_THAT(refusal(0, 4, "stats"), HasSubstr("a stride needs a window length"));
  EXPECT_THAT(refusal(4, 0, "decimate:5"), HasSubstr("expected 1..4"));
  EXPECT_THAT(refusal(4, 0, "decimate:0"), HasSubstr("expected decimate:N"));
  EXPECT_THAT(refusal(4, 0, "stats:median"), HasSubstr("expected mean, std"));
  EXPECT_THAT(refusal(40000, 0, "raw"), HasSubstr("80000 values; expected 1..65535"));
  EXPECT_THAT(refusal(4, 0, "spectrogram:16"), HasSubstr("expected FRAMESxBANDS"));
  EXPECT_THAT(refusal(4, 0, "spectrogram:4x4,colour=red"), HasSubstr("'colour' is not known"));
  EXPECT_THAT(refusal(4, 0, "spectrogram:4x4,bands=bark"), HasSubstr("bands is mel or linear"));
}

TEST(WindowTest, ShortRecordingsAreRefusedPaddedOrDropped) {
  WindowOptions o;
  o.length = 3;
  const auto run = [&](WindowOptions::Short when, Status* status = nullptr) {
    o.when_short = when;
    auto source = open_windows(std::make_unique<Ramps>(std::vector<int>{2, 3}), o);
    EXPECT_TRUE(source.ok()) << source.status();
    return rows_of(**source, status);
  };
  Status status;
  run(WindowOptions::Short::kRefuse, &status);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("r0: 2 steps, shorter than the window of 3"));
  EXPECT_THAT(run(WindowOptions::Short::kPad)[0].values, ElementsAre(0, 1, 0, 0, -1, 0));
  EXPECT_EQ(run(WindowOptions::Short::kDrop).size(), 1u);
}

TEST(WindowTest, SecondsBecomeSteps) {
  EXPECT_EQ(*steps_of(1, 104, "window"), 104u);
  EXPECT_EQ(*steps_of(0.125, 104, "window"), 13u);
  EXPECT_THAT(std::string(steps_of(1, 0, "window").status().message()),
              HasSubstr("needs a sample rate"));
  EXPECT_FALSE(steps_of(0.001, 104, "window").ok());
  EXPECT_FALSE(steps_of(1e9, 104, "window").ok());
}

// A table of time steps: 12 recordings of 40 steps, class by recording.
std::string steps_csv() {
  std::string csv = "x,y,run,class\n";
  for (int r = 0; r < 12; ++r)
    for (int i = 0; i < 40; ++i)
      csv += std::to_string(r * 50 + i) + "," + std::to_string(i % 7) + ",run" + std::to_string(r) +
             (r % 2 == 0 ? ",walk\n" : ",rest\n");
  return csv;
}

ImportRequest steps_request(const std::string& path) {
  ImportRequest r;
  r.format = "csv";
  r.data_path = path;
  r.label_column = "class";
  r.group_column = "run";
  r.series = "steps";
  r.window_steps = 10;
  r.stride_steps = 5;
  return r;
}

TEST(WindowCsvTest, NoWindowLeaksAcrossSplits) {
  TempFiles files;
  const auto d =
      import_dataset(steps_request(files.put("steps.csv", steps_csv())), [](auto, const auto&) {});
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_THAT(d->shape, ElementsAre(2, 10, 1));
  EXPECT_EQ(d->samples(), 12u * 7);
  EXPECT_GT(d->count(Split::kTest), 0u);
  // The recording is told by its values; windows of it overlap, so that a leak would show.
  std::map<int, std::set<int>> splits;
  for (std::uint32_t s = 0; s < d->samples(); ++s) {
    const int split = s < d->first(Split::kHeldout) ? 0 : s < d->first(Split::kTest) ? 1 : 2;
    splits[static_cast<int>(d->value(s, 0)) / 50].insert(split);
    EXPECT_EQ(static_cast<int>(d->value(s, 9)) / 50, static_cast<int>(d->value(s, 0)) / 50);
  }
  EXPECT_EQ(splits.size(), 12u);
  for (const auto& [run, in] : splits) EXPECT_EQ(in.size(), 1u) << run;
}

TEST(WindowCsvTest, RecordingsThatAreTornOrMixedAreRefused) {
  TempFiles files;
  const auto refused = [&](const std::string& csv) {
    auto r = steps_request(files.put("steps.csv", csv));
    r.window_steps = 1;
    return std::string(import_dataset(r, [](auto, const auto&) {}).status().message());
  };
  EXPECT_THAT(refused("x,run,class\n1,a,p\n2,b,q\n3,a,p\n"),
              HasSubstr("recording 'a' goes on behind another one"));
  EXPECT_THAT(refused("x,run,class\n1,a,p\n2,a,q\n"),
              HasSubstr("class 'q' in a recording of class 'p'"));
}

TEST(WindowCsvTest, RowsMayBeWholeRecordings) {
  TempFiles files;
  ImportRequest r;
  r.format = "csv";
  r.series = "rows";
  r.channels = 2;
  r.window_steps = 2;
  r.features = "decimate:2";
  r.split = {100, 0, 0};
  r.data_path = files.put("rows.csv", "a,b,c,d,class\n1,10,3,30,p\n5,50,7,70,q\n");
  const auto d = import_dataset(r, [](auto, const auto&) {});
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_THAT(d->shape, ElementsAre(2, 1, 1));
  std::set<std::pair<float, float>> seen;
  for (std::uint32_t i = 0; i < 2; ++i) seen.insert({d->value(i, 0), d->value(i, 1)});
  EXPECT_THAT(seen, ElementsAre(std::pair(2.f, 20.f), std::pair(6.f, 60.f)));
  r.channels = 3;
  EXPECT_THAT(std::string(import_dataset(r, [](auto, const auto&) {}).status().message()),
              HasSubstr("4 values a row; not a multiple of 3 channels"));
}

TEST(FileSetTest, TextFromOutsideIsMadePrintable) {
  EXPECT_EQ(printable("a\nb\x1b[31m\x7f", 99), "a_b_[31m_");
  EXPECT_EQ(printable("gr\xc3\xbc\xc3\x9f", 99), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(printable("\xc3(\xff\xc2\x85\xed\xa0\x80", 99), "_(_____");
  EXPECT_EQ(printable("gr\xc3\xbc", 3), "gr");
}

TEST(FileSetTest, FilesAreSortedAndLimitsHold) {
  TempFiles files;
  files.put("b/1", "x");
  files.put("a", "yy");
  const auto set = open_files(files.folder(), "set");
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ((*set)->entries().size(), 2u);
  EXPECT_EQ((*set)->entries()[0].path, "a");
  EXPECT_EQ((*set)->entries()[1].path, "b/1");
  EXPECT_EQ(*(*set)->read(0), "yy");
  files.put("1/2/3/4/5/6/7/8/9/x", "deep");
  EXPECT_THAT(std::string(open_files(files.folder(), "set").status().message()),
              HasSubstr("more than 8 folders deep"));
  EXPECT_EQ(open_files(files.path("none"), "").status().code(), absl::StatusCode::kNotFound);
}

// A stored entry of each name.
std::string zip_of(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string out, directory;
  const auto put = [](std::string& to, std::uint32_t v, int bytes) {
    for (int i = 0; i < bytes; ++i) to += static_cast<char>(i < 4 ? v >> (8 * i) : 0);
  };
  for (const auto& [name, content] : files) {
    const auto crc = static_cast<std::uint32_t>(crc32(
        0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
    std::string common;
    put(common, 20, 2);
    put(common, 0, 2);
    put(common, 0, 2);
    put(common, 0, 4);
    put(common, crc, 4);
    put(common, static_cast<std::uint32_t>(content.size()), 4);
    put(common, static_cast<std::uint32_t>(content.size()), 4);
    put(common, static_cast<std::uint32_t>(name.size()), 2);
    put(common, 0, 2);
    put(directory, 0x02014B50, 4);
    put(directory, 20, 2);
    directory += common;
    put(directory, 0, 10);
    put(directory, 0, 2);
    directory.resize(directory.size() - 2);
    put(directory, static_cast<std::uint32_t>(out.size()), 4);
    directory += name;
    put(out, 0x04034B50, 4);
    out += common + name + content;
  }
  const auto start = static_cast<std::uint32_t>(out.size());
  out += directory;
  put(out, 0x06054B50, 4);
  put(out, 0, 4);
  put(out, static_cast<std::uint32_t>(files.size()), 2);
  put(out, static_cast<std::uint32_t>(files.size()), 2);
  put(out, static_cast<std::uint32_t>(directory.size()), 4);
  put(out, start, 4);
  put(out, 0, 2);
  return out;
}

TEST(FileSetTest, ArchivesAreReadLikeFolders) {
  TempFiles files;
  const auto path = files.put("a.zip", zip_of({{"b/2.txt", "two"},
                                               {"a.txt", "one"},
                                               {"b/", ""},
                                               {"__MACOSX/x", "no"},
                                               {"b/.x", "no"}}));
  const auto set = open_files(path, "");
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ((*set)->entries().size(), 2u);
  EXPECT_EQ((*set)->entries()[1].path, "b/2.txt");
  EXPECT_EQ((*set)->shown(1), "a.zip/b/2.txt");
  EXPECT_EQ(*(*set)->read(1), "two");
  EXPECT_EQ(*guess_format(files.put("b.zip", zip_of({{"README.md", ""}, {"x/a.WAV", ""}}))), "wav");
}

TEST(FileSetTest, UnsafeNamesInArchivesAreRefused) {
  TempFiles files;
  for (const char* name : {"../x", "/etc/x", "a/../../x", "a\\x"}) {
    const auto path = files.put("a.zip", zip_of({{name, "x"}}));
    EXPECT_THAT(std::string(open_files(path, "").status().message()), HasSubstr("unsafe name"))
        << name;
  }
}

}  // namespace
}  // namespace odt::data::window_test
