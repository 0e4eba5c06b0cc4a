// A trained board that is left to itself: its windows' classes on console, log and LED.
#include "capture_rig.h"

namespace odt::testing {
namespace {

pb::Response commit_whole(BoardRig& rig, std::uint32_t id) {
  pb::Request q;
  q.mutable_nvm_commit()->set_commit_id(id);
  pb::Response r = rig.request(q);
  for (int i = 0; i < 200 && r.accepted_ms() != 0; i++) {
    rig.turns(20);
    r = rig.request(q);
  }
  return r;
}

struct Alone : Capture {};

}  // namespace

// Windows of the fake sensor, scaled; then a power cycle, and nobody says HELLO.
TEST_F(Alone, ACommittedBoardClassifiesItsWindowsAlone) {
  Fake::next = 40, Fake::lose = 0;
  const hal_sensor_t sensor = {
      .channels = kChannels, .dtype = 2, .rate_milli_hz = 26000, .read = Fake::read};
  RigNvm memory(64 * 1024);
  RigOptions options;
  options.nvm = &memory;
  options.sensor = &sensor;
  begin(options);
  settings.clear_channels();
  settings.clear_dtype();
  settings.set_slots(10);
  settings.add_mul(3);
  settings.add_add(-50);
  settings.set_shift(1);
  ASSERT_FALSE(start().has_error());
  Fake::next = 0;
  rig->settle();
  ASSERT_EQ(windows().captured(), 10u);
  const auto class_of = [&](std::uint32_t id) {
    EXPECT_FALSE(rig->push(pb::RESOURCE_INFER_INPUT, pull(pb::RESOURCE_WINDOW, id)).has_error());
    pb::Request infer;
    infer.mutable_infer();
    return std::to_string(rig->request(infer).infer().predicted());
  };
  const std::string first = class_of(7), last = class_of(10);
  ASSERT_FALSE(commit_whole(*rig, 1).has_error());
  const std::uint32_t sequence = rig->app().nvm.sequence;
  ASSERT_FALSE(commit_whole(*rig, 2).has_error());
  EXPECT_EQ(rig->app().nvm.sequence, sequence) << "the same again: no wear";
  settings.set_shift(2);
  ASSERT_FALSE(start().has_error());
  ASSERT_FALSE(commit_whole(*rig, 3).has_error());
  EXPECT_EQ(rig->app().nvm.sequence, sequence + 1) << "other settings are another content";
  settings.set_shift(1);
  ASSERT_FALSE(start().has_error());
  ASSERT_FALSE(commit_whole(*rig, 4).has_error());

  rig->restart();
  rig->raw.clear();
  rig->settle();
  EXPECT_EQ(rig->raw, "") << "no window, no text";
  Fake::next = 24;  // what windows 7 to 10 were made of
  rig->settle();
  EXPECT_EQ(rig->raw, "window 1: class " + first + "\r\n") << "one line a second";
  EXPECT_EQ(rig->led, last != "0") << "the LED has no limit";
  rig->advance_ms(1001);
  Fake::next = 36;
  rig->settle();
  EXPECT_EQ(rig->raw.substr(rig->raw.find('\n') + 1),
            "window 5: class " + last + ", 3 windows before it not shown\r\n");
  // With a host it is a line of the log; the console is the protocol's then.
  rig->hello();
  rig->raw.clear();
  rig->advance_ms(1001);
  Fake::next = 36;
  rig->settle();
  ASSERT_FALSE(rig->logs.empty());
  EXPECT_EQ(rig->logs.back(), "window 6: class " + last);
  // Without capture's settings a commit leaves a board that says nothing.
  pb::Request erase;
  erase.mutable_nvm_erase()->set_commit_id(9);
  rig->request(erase);
  rig->settle();
  rig->restart();
  rig->raw.clear();
  Fake::next = 24;
  rig->settle();
  EXPECT_EQ(rig->raw, "");
}

}  // namespace odt::testing
