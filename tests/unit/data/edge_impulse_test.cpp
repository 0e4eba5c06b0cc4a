#include "data/edge_impulse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "data/open_series.h"
#include "temp_files.h"

namespace odt::data::edge_impulse_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json recording(const json& values, double interval_ms = 10) {
  const json sensors = {{{"name", "x"}, {"units", "m/s2"}}, {{"name", "y"}, {"units", "m/s2"}}};
  return {{"protected", {{"ver", "v1"}, {"alg", "none"}}},
          {"signature", "00"},
          {"payload",
           {{"device_type", "TEST"},
            {"interval_ms", interval_ms},
            {"sensors", sensors},
            {"values", values}}}};
}
json ramp(int steps) {
  json values = json::array();
  for (int i = 0; i < steps; ++i) values.push_back({i, -i});
  return values;
}

std::string refusal(const std::string& text) {
  const auto clip = read_edge_impulse(text, false, "a.json");
  return clip.ok() ? "accepted" : std::string(clip.status().message());
}

TEST(EdgeImpulseTest, PayloadIsRead) {
  const auto clip = read_edge_impulse(recording({{1, 2.5}, {-3, 1e-3}}).dump(), false, "a");
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_EQ(clip->interval_ms, 10);
  EXPECT_THAT(clip->sensors, ElementsAre("x", "y"));
  EXPECT_THAT(clip->units, ElementsAre("m/s2", "m/s2"));
  EXPECT_THAT(clip->values, ElementsAre(1, 2.5f, -3, 1e-3f));
}

TEST(EdgeImpulseTest, CborIsTheSame) {
  const auto bytes = json::to_cbor(recording({{1, 2.5}, {-3, 1e-3}}));
  const auto clip =
      read_edge_impulse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, true, "a");
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_THAT(clip->values, ElementsAre(1, 2.5f, -3, 1e-3f));
  EXPECT_THAT(clip->sensors, ElementsAre("x", "y"));
}

TEST(EdgeImpulseTest, OneSensorMayHaveFlatValues) {
  json r = recording({1, 2, 3});
  r["payload"]["sensors"] = {{{"name", "audio"}, {"units", "wav"}}};
  const auto clip = read_edge_impulse(r.dump(), false, "a");
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_EQ(clip->steps(), 3u);
}

TEST(EdgeImpulseTest, NullIsAMissingValue) {
  const auto clip = read_edge_impulse(recording({{1, nullptr}, {2, 3}}).dump(), false, "a");
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_TRUE(std::isnan(clip->values[1]));
}

TEST(EdgeImpulseTest, BadFilesAreRefusedByName) {
  EXPECT_THAT(refusal("{\"payload\": "), HasSubstr("a.json: not well-formed at byte"));
  EXPECT_THAT(refusal("{}"), HasSubstr("a.json: no payload.values"));
  EXPECT_THAT(refusal("[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]"), HasSubstr("levels deep"));
  EXPECT_THAT(refusal(recording(json::array()).dump()), HasSubstr("payload.values is empty"));
  EXPECT_EQ(refusal(recording({{1, 2}, {3}}).dump()), "a.json: step 1 has 1 values; expected 2");
  EXPECT_EQ(refusal(recording({{1, 2, 3}}).dump()), "a.json: 3 values a step for 2 sensors");
  EXPECT_THAT(refusal(recording({{1, 2}, 3}).dump()), HasSubstr("steps of one and of more"));
  EXPECT_THAT(refusal(recording({3, {1, 2}}).dump()), HasSubstr("expected 1"));
  EXPECT_THAT(refusal(recording({{1, "2"}}).dump()), HasSubstr("text, not a number"));
  EXPECT_THAT(refusal(recording({{1, true}}).dump()), HasSubstr("not a number"));
  EXPECT_THAT(refusal(recording({{1, json::object()}}).dump()), HasSubstr("not a number"));
  EXPECT_THAT(refusal(recording({{1, {2}}}).dump()), HasSubstr("a step holds an array"));
  EXPECT_THAT(refusal(recording({{1, 1e300}}).dump()), HasSubstr("too large"));
  EXPECT_THAT(refusal(recording({{1, 2}}, 0).dump()), HasSubstr("interval_ms is 0"));
}

class EdgeImpulseFolderTest : public testing::Test {
 protected:
  EdgeImpulseFolderTest() {
    request_.format = "edge-impulse";
    request_.window_steps = 4;
  }
  std::vector<Row> rows(Status* status = nullptr) {
    auto source = open_edge_impulse_rows(request_, files_.folder(), "set");
    if (!source.ok() && status != nullptr) *status = source.status();
    if (!source.ok()) return {};
    info_ = (*source)->info();
    shape_ = (*source)->shape();
    return rows_of(**source, status);
  }
  std::string refusal() {
    Status status;
    rows(&status);
    return std::string(status.message());
  }
  TempFiles files_;
  ImportRequest request_;
  SourceInfo info_;
  std::vector<std::uint32_t> shape_;
};

TEST_F(EdgeImpulseFolderTest, LabelIsTheFirstPartOfTheName) {
  files_.put("circle.json.66.json", recording(ramp(10)).dump());
  files_.put("idle.1.json", recording(ramp(4)).dump());
  const auto r = rows();
  ASSERT_EQ(r.size(), 3u);
  EXPECT_EQ(r[0].label, "circle");
  EXPECT_EQ(r[0].group, "set/circle.json.66.json");
  EXPECT_THAT(r[1].values, ElementsAre(4, 5, 6, 7, -4, -5, -6, -7));
  EXPECT_EQ(r[2].label, "idle");
  EXPECT_THAT(shape_, ElementsAre(2, 4, 1));
  EXPECT_EQ(info_.sample_rate, 100);
  EXPECT_EQ(info_.unit, "m/s2");
  EXPECT_THAT(info_.value_names, ElementsAre("x", "y"));
}

TEST_F(EdgeImpulseFolderTest, InfoLabelsHasTheLastWord) {
  files_.put("a.1.json", recording(ramp(4)).dump());
  files_.put("b.1.json", recording(ramp(4)).dump());
  const json labels = {{"version", 1},
                       {"files",
                        {{{"path", "a.1.json"},
                          {"category", "training"},
                          {"label", {{"type", "label"}, {"label", "up"}}}},
                         {{"path", "b.1.json"},
                          {"category", "testing"},
                          {"label", {{"type", "label"}, {"label", "down"}}}}}}};
  files_.put("info.labels", labels.dump());
  const auto r = rows();
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r[0].label, "up");
  EXPECT_FALSE(r[0].own_test);
  EXPECT_EQ(r[1].label, "down");
  EXPECT_TRUE(r[1].own_test);
}

TEST_F(EdgeImpulseFolderTest, AFoldersOwnLabelsGoBeforeThoseAboveIt) {
  files_.put("a/x.1.json", recording(ramp(4)).dump());
  const auto labels = [](const char* path, const char* label) {
    return json{{"files", {{{"path", path}, {"label", {{"type", "label"}, {"label", label}}}}}}}
        .dump();
  };
  files_.put("info.labels", labels("a/x.1.json", "above"));
  files_.put("a/info.labels", labels("x.1.json", "own"));
  const auto r = rows();
  ASSERT_EQ(r.size(), 1u);
  EXPECT_EQ(r[0].label, "own");
}

TEST_F(EdgeImpulseFolderTest, BadFoldersAreRefusedByFile) {
  EXPECT_THAT(refusal(), HasSubstr("set: no Edge Impulse files"));
  files_.put("a.1.json", recording(ramp(4)).dump());
  files_.put("b.1.json", recording(ramp(4), 20).dump());
  EXPECT_EQ(refusal(), "set/b.1.json: a step of 20 ms; the first file has 10 ms");
  json other = recording(ramp(4));
  other["payload"]["sensors"][1]["name"] = "z";
  files_.put("b.1.json", other.dump());
  EXPECT_THAT(refusal(), HasSubstr("set/b.1.json: its sensors differ from those of set/a.1.json"));
  files_.put("b.1.json", recording(ramp(3)).dump());
  EXPECT_THAT(refusal(), HasSubstr("set/b.1.json: 3 steps, shorter than the window of 4"));
  request_.short_recordings = "drop";
  EXPECT_EQ(rows().size(), 1u);
  request_.short_recordings = "pad";
  EXPECT_EQ(rows().size(), 2u);
  files_.put("info.labels", R"({"files": [{"path": "a.1.json", "label": {"type": "unlabeled"}}]})");
  EXPECT_THAT(refusal(), HasSubstr("set/a.1.json: no single label"));
  files_.put("info.labels", "[]");
  EXPECT_THAT(refusal(), HasSubstr("set/info.labels: expected"));
}

}  // namespace
}  // namespace odt::data::edge_impulse_test
