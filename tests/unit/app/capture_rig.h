// A board that captures windows: 2 channels of 4 steps, 3 classes.
#pragma once

#include "board_rig.h"
#include "image_builder.h"

namespace odt::testing {

inline constexpr std::uint32_t kSteps = 4, kChannels = 2, kClasses = 3;

// 2 channels of 4 steps, u8 -> 3 classes.
inline std::string image(std::uint8_t task = 0) {
  NetSpec net;
  net.task = task;
  net.input_dtype = DType::kU8;
  net.input_dims = {kChannels, kSteps, 1};
  net.n_classes = kClasses;
  net.target_correct.assign(kClasses, 90);
  net.target_wrong.assign(kClasses, -90);
  LayerSpec flat;
  flat.kind = OpKind::kFlatten;
  flat.clip_lo = 0, flat.clip_hi = 255;
  LayerSpec dense;
  dense.trainable = true;
  dense.outputs = kClasses;
  std::uint32_t seed = 3;
  for (std::uint32_t i = 0; i < kSteps * kChannels * kClasses; i++)
    dense.weights.push_back(static_cast<std::int8_t>((seed = seed * 1664525u + 1013904223u) >> 25));
  dense.offsets.assign(kClasses, 0);
  dense.k.assign(kClasses, 7);
  net.layers = {flat, dense};
  const auto bytes = build_image(net);
  return {bytes.begin(), bytes.end()};
}

// Steps of two channels, s16.
inline std::string steps(const std::vector<std::pair<int, int>>& values) {
  std::string out;
  for (const auto& [a, b] : values)
    for (const int v : {a, b}) {
      out.push_back(static_cast<char>(v & 0xff));
      out.push_back(static_cast<char>(v >> 8 & 0xff));
    }
  return out;
}

struct Capture : ::testing::Test {
  void SetUp() override { begin({}); }

  void begin(RigOptions options, std::uint8_t task = 0) {
    rig = std::make_unique<BoardRig>(options);
    rig->hello();
    ASSERT_FALSE(rig->push(pb::RESOURCE_MODEL_IMAGE, image(task)).has_error());
    taken = 0;
    settings.Clear();
    settings.set_window_steps(kSteps);
    settings.set_slots(4);
    settings.set_channels(kChannels);
    settings.set_dtype(3);
  }
  pb::Response start() {
    pb::Request q;
    *q.mutable_capture_start() = settings;
    taken = 0;
    return rig->request(q);
  }
  pb::Response feed(const std::vector<std::pair<int, int>>& values) {
    pb::Request q;
    q.mutable_feed_sensor()->set_first(taken);
    q.mutable_feed_sensor()->set_steps(steps(values));
    taken += values.size();
    return rig->request(q);
  }
  // A window whose values all are v.
  pb::Response feed_window(int v) { return feed(std::vector<std::pair<int, int>>(kSteps, {v, v})); }
  pb::Windows windows(std::uint32_t from = 0) {
    pb::Request q;
    q.mutable_get_windows()->set_from_id(from);
    const auto r = rig->request(q);
    EXPECT_FALSE(r.has_error()) << r.ShortDebugString();
    return r.windows();
  }
  pb::Response label(std::uint32_t id, std::uint32_t label, pb::SampleRole keep) {
    pb::Request q;
    q.mutable_label_window()->set_window_id(id);
    q.mutable_label_window()->set_label(label);
    q.mutable_label_window()->set_keep(keep);
    return rig->request(q);
  }
  std::string pull(pb::Resource resource, std::uint32_t index) {
    return rig->pull(resource, index);
  }

  std::unique_ptr<BoardRig> rig;
  pb::CaptureStart settings;
  std::uint64_t taken = 0;
};

// Counts up to 40: two channels, u8.
struct Fake {
  static std::uint32_t read(void*, void* out, std::uint32_t n, std::uint32_t* lost) {
    auto* p = static_cast<std::uint8_t*>(out);
    std::uint32_t got = 0;
    while (got < n && next < 40) {
      *p++ = static_cast<std::uint8_t>(next);
      *p++ = static_cast<std::uint8_t>(100 + next);
      next++, got++;
    }
    *lost = lose;
    lose = 0;
    return got;
  }
  inline static std::uint32_t next, lose;
};

}  // namespace odt::testing
