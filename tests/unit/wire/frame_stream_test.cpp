#include "wire/frame_stream.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/ids.h"

namespace odt::wire {
namespace {

std::string unhex(const std::string& hex) {
  const Result<Bytes> bytes = from_hex(hex);
  EXPECT_TRUE(bytes.ok()) << hex;
  return bytes.ok() ? std::string(bytes->begin(), bytes->end()) : "";
}

struct Seen {
  std::vector<Frame> frames;
  std::vector<std::string> lines;
  int bad = 0;

  FrameStream stream{{[this](Frame f) { frames.push_back(std::move(f)); },
                      [this](const std::string& line) { lines.push_back(line); },
                      [this](const char*) { ++bad; }}};
};

nlohmann::json golden_frames() {
  std::ifstream in(ODT_FRAMES_JSON);
  return nlohmann::json::parse(in);
}

TEST(FrameStream, GoldenFramesBothWays) {
  int checked = 0;
  const nlohmann::json frames = golden_frames();
  for (const auto& golden : frames.at("valid")) {
    const std::string wire = golden.at("wire");
    if (wire.find("...") != std::string::npos) continue;
    Frame frame;
    frame.type = golden.at("type");
    frame.session = golden.at("session");
    frame.id = golden.at("id");
    frame.payload = unhex(golden.at("payload"));
    EXPECT_EQ(encode_frame(frame), unhex(wire)) << golden.at("name");
    Seen seen;
    seen.stream.feed(unhex(wire));
    ASSERT_EQ(seen.frames.size(), 1u) << golden.at("name");
    EXPECT_EQ(seen.frames[0].type, frame.type);
    EXPECT_EQ(seen.frames[0].session, frame.session);
    EXPECT_EQ(seen.frames[0].id, frame.id);
    EXPECT_EQ(seen.frames[0].payload, frame.payload);
    ++checked;
  }
  EXPECT_GE(checked, 5);
}

TEST(FrameStream, GoldenMalformedFrames) {
  int checked = 0;
  const nlohmann::json frames = golden_frames();
  for (const auto& golden : frames.at("malformed")) {
    const std::string wire = golden.at("wire");
    if (wire.find("...") != std::string::npos) continue;
    Seen seen;
    seen.stream.feed(unhex(wire));
    EXPECT_EQ(seen.frames.size(), golden.at("frames").get<std::size_t>()) << golden.at("name");
    if (golden.contains("crc_errors")) {
      EXPECT_EQ(seen.stream.errors(), golden.at("crc_errors").get<std::uint64_t>())
          << golden.at("name");
    }
    ++checked;
  }
  EXPECT_GE(checked, 5);
}

TEST(FrameStream, OneByteAtATime) {
  const std::string wire = encode_frame({FRAME_RSP, 5, 77, std::string(300, '\0')});
  Seen seen;
  for (const char c : wire) seen.stream.feed({&c, 1});
  ASSERT_EQ(seen.frames.size(), 1u);
  EXPECT_EQ(seen.frames[0].payload, std::string(300, '\0'));
}

TEST(FrameStream, Report13_MtuAndOneMore) {
  Seen seen;
  seen.stream.feed(encode_frame({FRAME_EVENT, 1, 1, std::string(FRAME_MTU_MAX, 'x')}));
  EXPECT_EQ(seen.frames.size(), 1u);
  EXPECT_TRUE(encode_frame({FRAME_EVENT, 1, 2, std::string(FRAME_MTU_MAX + 1, 'x')}).empty());
  // Longer than any frame, as COBS of zeros: skipped to the next delimiter.
  seen.stream.feed(std::string(1, '\0') + std::string(5000, '\1') + std::string(1, '\0'));
  EXPECT_EQ(seen.frames.size(), 1u);
  EXPECT_EQ(seen.bad, 1);
  seen.stream.feed(encode_frame({FRAME_EVENT, 1, 3, "ok"}));
  EXPECT_EQ(seen.frames.size(), 2u);
}

TEST(FrameStream, Report02_LogTextBetweenFramesIsConsoleAndCostsNoFrame) {
  Seen seen;
  seen.stream.feed("ets Jun  8 2016 00:22:57\r\nrst:0x1 (POWERON)\r\n" +
                   encode_frame({FRAME_HELLO_ACK, 1, 0, "a"}));
  EXPECT_EQ(seen.frames.size(), 1u);
  EXPECT_EQ(seen.lines,
            (std::vector<std::string>{"ets Jun  8 2016 00:22:57", "rst:0x1 (POWERON)"}));
  EXPECT_EQ(seen.bad, 0);
}

TEST(FrameStream, Report04_GarbageBeforeAFrameCostsNoFrame) {
  std::mt19937 random(7);
  std::string garbage;
  for (int i = 0; i < 300; ++i) garbage.push_back(static_cast<char>(0x80 | random() % 0x80));
  Seen seen;
  seen.stream.feed(garbage + "ets Jun 8" + encode_frame({FRAME_HELLO_ACK, 1, 0, "a"}));
  EXPECT_EQ(seen.frames.size(), 1u);
}

TEST(FrameStream, Report02_LogTextInsideAFrameLosesThatFrameOnly) {
  std::string wire = encode_frame({FRAME_EVENT, 1, 1, std::string(100, 'q')});
  wire.insert(40, "[00:00:01] WRN something happened\r\n");
  Seen seen;
  seen.stream.feed(wire + encode_frame({FRAME_EVENT, 1, 2, "next"}));
  ASSERT_EQ(seen.frames.size(), 1u);
  EXPECT_EQ(seen.frames[0].id, 2u);
}

TEST(FrameStream, PanicWithoutDelimiterComesWithFlush) {
  Seen seen;
  seen.stream.feed("HardFault at 0x08001234");
  EXPECT_TRUE(seen.lines.empty());
  seen.stream.flush();
  EXPECT_EQ(seen.lines, (std::vector<std::string>{"HardFault at 0x08001234"}));
}

TEST(FrameStream, Report23_ConsoleLinesAreSanitisedAndBounded) {
  Seen seen;
  seen.stream.feed("evil \x1b[2J title" + std::string(1000, 'y') + '\0');
  ASSERT_FALSE(seen.lines.empty());
  EXPECT_EQ(seen.lines[0].rfind("evil ?[2J title", 0), 0u);
  for (const std::string& line : seen.lines) EXPECT_LE(line.size(), 240u);
}

TEST(FrameStream, RandomBytesYieldNoFrame) {
  std::mt19937 random(3);
  Seen seen;
  std::string block(1 << 20, '\0');
  for (char& c : block) c = static_cast<char>(random());
  seen.stream.feed(block);
  EXPECT_TRUE(seen.frames.empty());
  EXPECT_GT(seen.bad, 1000);
}

TEST(Crc32, KnownValue) { EXPECT_EQ(crc32("123456789"), 0xCBF43926u); }

}  // namespace
}  // namespace odt::wire
