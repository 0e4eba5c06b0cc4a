// Windows of a sensor: how they are cut, scaled, labelled, kept; training on them.
#include <gmock/gmock.h>

#include "capture_rig.h"

namespace odt::testing {
namespace {

struct Entry {
  std::uint32_t id, time_ms;
  int label, flags;
};

std::vector<Entry> entries(const pb::Windows& w) {
  std::vector<Entry> out;
  const auto* p = reinterpret_cast<const std::uint8_t*>(w.entries().data());
  const auto u32 = [](const std::uint8_t* q) {
    return q[0] | q[1] << 8 | q[2] << 16 | static_cast<std::uint32_t>(q[3]) << 24;
  };
  for (std::size_t i = 0; i + 12 <= w.entries().size(); i += 12)
    out.push_back({u32(p + i), u32(p + i + 4), static_cast<std::int8_t>(p[i + 8]), p[i + 9]});
  return out;
}

TEST_F(Capture, AWindowIsChannelByChannelAndScaled) {
  settings.add_mul(1);
  settings.add_mul(-3);
  settings.add_add(101);
  settings.set_shift(1);
  ASSERT_FALSE(start().has_error());
  ASSERT_FALSE(feed({{0, 1}, {101, 2}, {-300, 3}, {32767, -32768}}).has_error());
  const auto all = entries(windows());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].id, 1u);
  EXPECT_EQ(all[0].label, -1);
  // (v * mul + 101) >> 1, limited to u8.
  const std::string want{'\x32', '\x65', '\x00', '\xff', '\x31', '\x2f', '\x2e', '\xff'};
  EXPECT_EQ(pull(pb::RESOURCE_WINDOW, 1), want);
}

TEST_F(Capture, WindowsOverlapByTheStride) {
  settings.set_stride_steps(2);
  ASSERT_FALSE(start().has_error());
  std::vector<std::pair<int, int>> ramp;
  for (int i = 0; i < 9; i++) ramp.emplace_back(i, 10 * i);
  ASSERT_FALSE(feed(ramp).has_error());
  EXPECT_EQ(windows().captured(), 3u);
  EXPECT_EQ(pull(pb::RESOURCE_WINDOW, 1), (std::string{0, 1, 2, 3, 0, 10, 20, 30}));
  EXPECT_EQ(pull(pb::RESOURCE_WINDOW, 3), (std::string{4, 5, 6, 7, 40, 50, 60, 70}));
}

TEST_F(Capture, ARepeatedFeedIsWithoutEffect) {
  ASSERT_FALSE(start().has_error());
  pb::Request q;
  q.mutable_feed_sensor()->set_steps(steps({{1, 1}, {2, 2}, {3, 3}}));
  ASSERT_EQ(rig->request(q).windows().steps(), 3u);
  ASSERT_EQ(rig->request(q).windows().steps(), 3u);
  q.mutable_feed_sensor()->set_first(2);  // one of them is new
  q.mutable_feed_sensor()->set_steps(steps({{3, 3}, {4, 4}}));
  EXPECT_EQ(rig->request(q).windows().captured(), 1u);
  EXPECT_EQ(pull(pb::RESOURCE_WINDOW, 1), (std::string{1, 2, 3, 4, 1, 2, 3, 4}));
  q.mutable_feed_sensor()->set_first(9);
  EXPECT_EQ(rig->request(q).error().code(), pb::STATUS_CODE_OUT_OF_RANGE);
}

TEST_F(Capture, ALevelBeginsAWindow) {
  settings.set_trigger(pb::CaptureStart::TRIGGER_LEVEL);
  settings.set_trigger_channel(1);
  settings.set_trigger_level(50);
  ASSERT_FALSE(start().has_error());
  ASSERT_FALSE(feed({{1, 0}, {2, 49}, {3, -50}, {4, 0}, {5, 0}, {6, 0}, {7, 0}, {8, 60}, {9, 0}})
                   .has_error());
  EXPECT_EQ(windows().captured(), 1u);
  EXPECT_EQ(pull(pb::RESOURCE_WINDOW, 1).substr(0, 4), (std::string{3, 4, 5, 6}));
  ASSERT_FALSE(feed({{10, 0}, {11, 0}}).has_error());
  EXPECT_EQ(pull(pb::RESOURCE_WINDOW, 2).substr(0, 4), (std::string{8, 9, 10, 11}));
}

TEST_F(Capture, AButtonCutsAndLabels) {
  begin({.has_button = true});
  settings.set_trigger(pb::CaptureStart::TRIGGER_BUTTON);
  settings.set_button_label(2);
  ASSERT_FALSE(start().has_error());
  ASSERT_FALSE(feed_window(1).has_error());
  EXPECT_EQ(windows().captured(), 0u);
  rig->button = true;
  ASSERT_FALSE(feed({{5, 5}, {5, 5}}).has_error());
  rig->button = false;  // let go before the window was whole
  ASSERT_FALSE(feed_window(6).has_error());
  rig->button = true;
  ASSERT_FALSE(feed_window(7).has_error());
  const auto all = entries(windows());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].label, 1);
  EXPECT_EQ(all[0].flags, 8);
  EXPECT_EQ(pull(pb::RESOURCE_WINDOW, 1), std::string(8, 7));
}

TEST_F(Capture, RulesLabelInTheirOrder) {
  const auto rule = [&](pb::LabelRule::Of of, std::uint32_t channel, int min, int max, int label) {
    auto* r = settings.add_rules();
    r->set_of(of), r->set_channel(channel), r->set_min(min), r->set_max(max), r->set_label(label);
  };
  rule(pb::LabelRule::OF_RANGE, 0, 100, 65535, 2);
  rule(pb::LabelRule::OF_MEAN, 1, -8, -3, 1);  // -9 / 4 is -3, towards minus infinity
  rule(pb::LabelRule::OF_MAX, 0, 7, 7, 0);
  settings.set_slots(8);
  ASSERT_FALSE(start().has_error());
  ASSERT_FALSE(feed({{-50, 0}, {50, 0}, {0, 0}, {7, 0}}).has_error());
  ASSERT_FALSE(feed({{7, -2}, {0, -2}, {0, -2}, {0, -3}}).has_error());
  ASSERT_FALSE(feed({{7, 0}, {0, 0}, {0, 0}, {0, 0}}).has_error());
  ASSERT_FALSE(feed({{8, 0}, {0, 0}, {0, 0}, {0, 0}}).has_error());
  std::vector<int> labels;
  for (const auto& e : entries(windows())) labels.push_back(e.label);
  EXPECT_THAT(labels, ::testing::ElementsAre(2, 1, 0, -1));
}

TEST_F(Capture, TheOldestUnlabelledGivesWay) {
  ASSERT_FALSE(start().has_error());
  for (int v = 1; v <= 4; v++) ASSERT_FALSE(feed_window(v).has_error());
  ASSERT_FALSE(label(1, 0, pb::SAMPLE_ROLE_UNSPECIFIED).has_error());
  ASSERT_FALSE(feed_window(5).has_error());
  std::vector<std::uint32_t> ids;
  for (const auto& e : entries(windows())) ids.push_back(e.id);
  EXPECT_THAT(ids, ::testing::ElementsAre(1, 3, 4, 5));
  for (const std::uint32_t id : {3u, 4u, 5u})
    ASSERT_FALSE(label(id, 1, pb::SAMPLE_ROLE_UNSPECIFIED).has_error());
  ASSERT_FALSE(feed_window(6).has_error());
  EXPECT_EQ(windows().lost_windows(), 1u);
  // A sample is in the set: its window may go.
  ASSERT_FALSE(label(4, 1, pb::SAMPLE_ROLE_TRAIN).has_error());
  ASSERT_FALSE(feed_window(7).has_error());
  ids.clear();
  for (const auto& e : entries(windows())) ids.push_back(e.id);
  EXPECT_THAT(ids, ::testing::ElementsAre(1, 3, 5, 7));
}

TEST_F(Capture, ListsGoOnWhereTheyEnded) {
  settings.set_slots(60);
  ASSERT_FALSE(start().has_error());
  for (int v = 0; v < 60; v++) ASSERT_FALSE(feed_window(v).has_error());
  std::vector<std::uint32_t> ids;
  std::uint32_t from = 0;
  for (bool more = true; more;) {
    const auto w = windows(from);
    for (const auto& e : entries(w)) ids.push_back(e.id);
    from = ids.back() + 1;
    more = w.more();
  }
  ASSERT_EQ(ids.size(), 60u);
  for (std::uint32_t i = 0; i < 60; i++) EXPECT_EQ(ids[i], i + 1);
}

// What is kept is a resident set like one that was sent, to the byte.
TEST_F(Capture, KeptWindowsAreTheSetThatTheHostWouldSend) {
  settings.set_label(3);
  settings.set_keep(pb::SAMPLE_ROLE_TRAIN);
  settings.set_heldout_every(3);
  ASSERT_FALSE(start().has_error());
  for (int v = 0; v < 14; v++) ASSERT_FALSE(feed_window(v).has_error());
  const auto w = windows();
  EXPECT_EQ(w.kept_train(), 10u);
  EXPECT_EQ(w.kept_heldout(), 4u);
  std::vector<std::int8_t> labels[2];
  std::vector<std::uint8_t> data[2];
  for (int v = 0; v < 14; v++) {
    const int set = v % 3 == 2;
    labels[set].push_back(2);
    data[set].insert(data[set].end(), kSteps * kChannels, static_cast<std::uint8_t>(v));
  }
  std::string blob[2];
  for (int set = 0; set < 2; set++) {
    const auto b =
        build_samples(DType::kU8, kSteps * kChannels,
                      static_cast<std::uint32_t>(labels[set].size()), 0, labels[set], data[set]);
    blob[set].assign(b.begin(), b.end());
    EXPECT_EQ(pull(pb::RESOURCE_SAMPLES, set == 0 ? 1 : 2), blob[set]);
  }
  const auto s = state_of(*rig);
  EXPECT_EQ(s.samples_train(), 10u);
  EXPECT_EQ(s.samples_heldout(), 4u);
  EXPECT_EQ(s.sample_set_hash(), sample_set_hash(blob[0], blob[1]));

  // Trained on them, the board ends where one ends that was sent them.
  const auto train = [&](BoardRig& board) {
    auto spec = small_spec(blob[0], blob[1]);
    spec.set_train_samples(10);
    spec.set_heldout_samples(4);
    spec.set_batch(2);
    spec.set_epochs(2);
    spec.set_hold_at_epoch(false);
    const auto r = board.request(start_request(spec));
    EXPECT_FALSE(r.has_error()) << r.ShortDebugString();
    board.settle();
    const auto end = state_of(board);
    EXPECT_EQ(end.job(), pb::JOB_STATE_DONE);
    return end.state_hash();
  };
  BoardRig sent;
  sent.hello();
  ASSERT_FALSE(sent.push(pb::RESOURCE_MODEL_IMAGE, image()).has_error());
  ASSERT_FALSE(sent.push(pb::RESOURCE_SAMPLES, blob[0], 1).has_error());
  ASSERT_FALSE(sent.push(pb::RESOURCE_SAMPLES, blob[1], 2).has_error());
  EXPECT_EQ(train(*rig), train(sent));
}

TEST_F(Capture, SamplesOfARunStayAsTheyAre) {
  settings.set_label(1);
  settings.set_keep(pb::SAMPLE_ROLE_TRAIN);
  ASSERT_FALSE(start().has_error());
  for (int v = 0; v < 8; v++) ASSERT_FALSE(feed_window(v).has_error());
  auto spec = small_spec(pull(pb::RESOURCE_SAMPLES, 1));
  spec.set_train_samples(8);
  spec.set_batch(2);
  spec.set_epochs(50);
  ASSERT_FALSE(rig->request(start_request(spec)).has_error());
  ASSERT_FALSE(feed_window(9).has_error());
  EXPECT_EQ(windows().not_kept(), 1u);
  EXPECT_EQ(state_of(*rig).samples_train(), 8u);
  EXPECT_EQ(label(9, 0, pb::SAMPLE_ROLE_TRAIN).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
}

TEST_F(Capture, AFullMemoryIsSaidAndNothingIsLost) {
  begin({.arena = 2048});
  settings.set_label(1);
  settings.set_keep(pb::SAMPLE_ROLE_TRAIN);
  ASSERT_FALSE(start().has_error());
  int v = 0;
  while (windows().not_kept() == 0 && v < 300) ASSERT_FALSE(feed_window(v++ % 100).has_error());
  ASSERT_LT(v, 300);
  const auto w = windows();
  const std::string set = pull(pb::RESOURCE_SAMPLES, 1);
  ASSERT_EQ(state_of(*rig).samples_train(), w.kept_train());
  for (std::uint32_t i = 0; i < w.kept_train(); i++)
    EXPECT_EQ(set.substr(set.size() - (w.kept_train() - i) * 8, 8),
              std::string(8, static_cast<char>(i % 100)));
  const auto last = entries(w).back();
  const auto refused = label(last.id, 0, pb::SAMPLE_ROLE_TRAIN);
  EXPECT_EQ(refused.error().code(), pb::STATUS_CODE_RESOURCE_EXHAUSTED);
}

// A set that grows while another is evaluated may take the trainer's room: it is made again, or the
// evaluation ends.
TEST_F(Capture, AGrowingSetAndAnEvaluationKeepApart) {
  std::vector<std::int8_t> labels(240, 1);
  std::vector<std::uint8_t> data;
  for (int i = 0; i < 1920; i++) data.push_back(static_cast<std::uint8_t>(i * 37));
  const auto b = build_samples(DType::kU8, kSteps * kChannels, 240, 0, labels, data);
  const std::string blob(b.begin(), b.end());
  pb::Request q;
  q.mutable_evaluate()->set_eval_id(1);
  q.mutable_evaluate()->set_role(pb::SAMPLE_ROLE_TEST);
  ASSERT_FALSE(rig->push(pb::RESOURCE_SAMPLES, blob, 3).has_error());
  ASSERT_FALSE(rig->request(q).has_error());
  rig->settle();
  const auto want = rig->events.back().second.eval();
  int ended = 0, whole = 0;
  for (std::uint32_t arena = 3300; arena < 4200; arena += 8) {
    begin({.arena = arena});
    if (rig->push(pb::RESOURCE_SAMPLES, blob, 3).has_error()) continue;
    settings.set_label(2);
    settings.set_keep(pb::SAMPLE_ROLE_TRAIN);
    settings.set_slots(1);
    if (start().has_error() || rig->request(q).has_error()) continue;
    rig->work_us = 4000;  // a sample a turn
    for (int v = 0; v < 20; v++) ASSERT_FALSE(feed_window(v).has_error());
    rig->settle();
    pb::Request get;
    get.set_get_eval(1);
    const auto got = rig->request(get).eval();
    ended += !got.done();
    whole += got.done();
    if (!got.done()) continue;
    EXPECT_EQ(got.loss(), want.loss()) << arena;
  }
  EXPECT_GT(ended, 0);
  EXPECT_GT(whole, 10);
}

TEST_F(Capture, LabellingAgainIsWithoutEffect) {
  ASSERT_FALSE(start().has_error());
  ASSERT_FALSE(feed_window(1).has_error());
  for (int i = 0; i < 2; i++) ASSERT_FALSE(label(1, 2, pb::SAMPLE_ROLE_HELDOUT).has_error());
  EXPECT_EQ(windows().kept_heldout(), 1u);
  EXPECT_EQ(label(1, 1, pb::SAMPLE_ROLE_HELDOUT).error().code(),
            pb::STATUS_CODE_FAILED_PRECONDITION);
  EXPECT_EQ(label(1, 2, pb::SAMPLE_ROLE_TRAIN).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  EXPECT_EQ(label(7, 2, pb::SAMPLE_ROLE_TRAIN).error().code(), pb::STATUS_CODE_NOT_FOUND);
  EXPECT_EQ(label(1, kClasses, pb::SAMPLE_ROLE_TRAIN).error().code(),
            pb::STATUS_CODE_INVALID_ARGUMENT);
}

TEST_F(Capture, ARepeatedStartKeepsTheWindowsAndAnotherReplacesThem) {
  ASSERT_FALSE(start().has_error());
  ASSERT_FALSE(feed_window(1).has_error());
  EXPECT_EQ(start().windows().captured(), 1u);
  settings.set_slots(3);
  EXPECT_EQ(start().windows().captured(), 0u);
  pb::Request stop;
  stop.mutable_capture_stop();
  ASSERT_FALSE(feed_window(1).has_error());
  EXPECT_FALSE(rig->request(stop).windows().active());
  EXPECT_EQ(feed_window(2).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  EXPECT_EQ(entries(windows()).size(), 1u) << "windows stay";
  ASSERT_FALSE(rig->push(pb::RESOURCE_MODEL_IMAGE, image()).has_error());
  EXPECT_EQ(entries(windows()).size(), 0u) << "they belong to the model";
}

TEST_F(Capture, ASensorOfItsOwnIsReadBetweenTheTurns) {
  Fake::next = Fake::lose = 0;
  const hal_sensor_t sensor = {
      .channels = kChannels, .dtype = 2, .rate_milli_hz = 26000, .read = Fake::read};
  begin({.sensor = &sensor});
  EXPECT_EQ(start().error().code(), pb::STATUS_CODE_INVALID_ARGUMENT) << "it has its own";
  settings.clear_channels();
  settings.clear_dtype();
  Fake::next = 38;
  ASSERT_FALSE(start().has_error());
  EXPECT_EQ(windows().steps(), 0u) << "what came before the start";
  Fake::next = 0;
  Fake::lose = 5;  // what is on both sides of a gap is no window
  rig->settle();
  const auto w = windows();
  EXPECT_EQ(w.lost_steps(), 5u);
  EXPECT_EQ(w.captured(), 10u);
  const auto s = state_of(*rig);
  EXPECT_EQ(s.sensor_channels(), kChannels);
  EXPECT_EQ(s.sensor_rate_milli_hz(), 26000u);
  EXPECT_EQ(pull(pb::RESOURCE_WINDOW, 10),
            (std::string{36, 37, 38, 39, char(136), char(137), char(138), char(139)}));
}

TEST_F(Capture, BadSettingsAreOneErrorEach) {
  const auto code = [&](auto change) {
    const auto kept = settings;
    change(settings);
    const auto r = start();
    settings = kept;
    EXPECT_TRUE(r.has_error());
    EXPECT_FALSE(r.error().text().empty());
    return r.error().code();
  };
  using S = pb::CaptureStart;
  const auto bad = pb::STATUS_CODE_INVALID_ARGUMENT;
  EXPECT_EQ(code([](S& s) { s.set_window_steps(5); }), bad);
  EXPECT_EQ(code([](S& s) { s.set_window_steps(0); }), bad);
  EXPECT_EQ(code([](S& s) { s.set_window_steps(0x80000002u), s.set_channels(4); }), bad);
  EXPECT_EQ(code([](S& s) { s.set_slots(0); }), bad);
  EXPECT_EQ(code([](S& s) { s.set_slots(256); }), bad);
  EXPECT_EQ(code([](S& s) { s.set_channels(0); }), bad);
  EXPECT_EQ(code([](S& s) { s.set_channels(65); }), bad);
  EXPECT_EQ(code([](S& s) { s.set_dtype(4); }), bad);
  EXPECT_EQ(code([](S& s) { s.set_shift(41); }), bad);
  EXPECT_EQ(code([](S& s) { s.add_add((std::int64_t{1} << 60) + 1); }), bad);
  EXPECT_EQ(code([](S& s) { s.add_mul(1), s.add_mul(1), s.add_mul(1); }), bad);
  EXPECT_EQ(code([](S& s) { s.add_add(1), s.add_add(1), s.add_add(1); }), bad);
  EXPECT_EQ(code([](S& s) { s.set_trigger(static_cast<S::Trigger>(3)); }), bad);
  EXPECT_EQ(code([](S& s) { s.set_trigger_channel(2); }), bad);
  EXPECT_EQ(code([](S& s) { s.set_label(kClasses + 1); }), bad);
  EXPECT_EQ(code([](S& s) { s.set_keep(pb::SAMPLE_ROLE_TEST); }), bad);
  EXPECT_EQ(code([](S& s) { s.add_rules(); }), bad);
  EXPECT_EQ(code([](S& s) {
              auto* r = s.add_rules();
              r->set_of(pb::LabelRule::OF_MAX), r->set_min(1);
            }),
            bad);
  EXPECT_EQ(code([](S& s) { s.set_button_label(1); }), pb::STATUS_CODE_UNIMPLEMENTED);
  EXPECT_EQ(windows().captured(), 0u);
  begin({.arena = 1024});
  settings.set_slots(255);
  EXPECT_EQ(start().error().code(), pb::STATUS_CODE_RESOURCE_EXHAUSTED);
  EXPECT_EQ(feed_window(1).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  BoardRig empty;
  empty.hello();
  pb::Request q;
  *q.mutable_capture_start() = settings;
  EXPECT_EQ(empty.request(q).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
}

}  // namespace
}  // namespace odt::testing
