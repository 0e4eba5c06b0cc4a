#include <gtest/gtest.h>

#include <random>

#include "decode.h"

namespace odt::testing {
namespace {

Bytes random_bytes(std::mt19937& rng, std::size_t n) {
  Bytes b(n);
  for (auto& x : b) x = static_cast<std::uint8_t>(rng());
  return b;
}

TEST(FrameCrc, IsTheCommonCrc32) {
  EXPECT_EQ(frame_crc32(0, "123456789", 9), 0xCBF43926u);
  EXPECT_EQ(frame_crc32(frame_crc32(0, "1234", 4), "56789", 5), 0xCBF43926u);
}

TEST(FrameEncoder, RefusesWhatDoesNotFit) {
  const Bytes payload(100, 7);
  const frame_t f{FRAME_REQ, 1, 1, payload.data(), 100};
  Bytes out(FRAME_WIRE_SIZE(100));
  EXPECT_EQ(frame_encode(&f, out.data(), out.size() - 1), 0u);
  EXPECT_GT(frame_encode(&f, out.data(), out.size()), 0u);
  const Bytes big(FRAME_MTU_MAX + 1);
  const frame_t g{FRAME_REQ, 1, 1, big.data(), FRAME_MTU_MAX + 1};
  Bytes room(8192);
  EXPECT_EQ(frame_encode(&g, room.data(), room.size()), 0u);
}

TEST(FrameEncoder, EncodesInPlace) {
  std::mt19937 rng(3);
  for (const std::uint32_t n : {0u, 1u, 253u, 254u, 255u, 576u, 4096u}) {
    for (int kind = 0; kind < 3; kind++) {
      Bytes payload = random_bytes(rng, n);
      if (kind == 1) std::fill(payload.begin(), payload.end(), 0xFF);
      if (kind == 2) std::fill(payload.begin(), payload.end(), 0);
      Bytes buffer(FRAME_IN_PLACE_SIZE(n) + FRAME_WIRE_SIZE(n));
      std::copy(payload.begin(), payload.end(), buffer.begin() + FRAME_IN_PLACE_OFFSET);
      const frame_t f{FRAME_EVENT, 9, 8, buffer.data() + FRAME_IN_PLACE_OFFSET, n};
      const std::size_t size = frame_encode(&f, buffer.data(), FRAME_IN_PLACE_SIZE(n));
      ASSERT_GT(size, 0u) << n;
      buffer.resize(size);
      EXPECT_EQ(buffer, encode(FRAME_EVENT, 9, 8, payload)) << n;
    }
  }
}

TEST(FrameDecoder, EverySizeWithStrayBytesInFront) {
  std::mt19937 rng(1);
  for (std::size_t n = 0; n <= FRAME_MTU_DEFAULT; n++) {
    const Bytes payload = random_bytes(rng, n);
    Bytes wire = random_bytes(rng, n % 4);
    const Bytes frame = encode(FRAME_RSP, 77, static_cast<std::uint32_t>(n), payload);
    wire.insert(wire.end(), frame.begin(), frame.end());
    Decoder d(FRAME_MTU_DEFAULT);
    const auto seen = d.feed(wire, 1 + n % 13);
    ASSERT_FALSE(seen.empty());
    EXPECT_EQ(seen.back().event, FRAME_OK);
    EXPECT_EQ(seen.back().payload, payload);
  }
}

TEST(FrameDecoder, RejectsEveryFlippedBit) {
  const Bytes wire = encode(FRAME_REQ, 0x1234, 42, Bytes{1, 0, 2, 0, 0, 3, 255});
  for (std::size_t i = 1; i + 1 < wire.size(); i++) {
    for (int bit = 0; bit < 8; bit++) {
      Bytes broken = wire;
      broken[i] ^= static_cast<std::uint8_t>(1 << bit);
      Decoder d(FRAME_MTU_DEFAULT);
      for (const auto& s : d.feed(broken)) EXPECT_NE(s.event, FRAME_OK);
    }
  }
}

TEST(FrameDecoder, ResynchronisesOnTheNextFrame) {
  const Bytes good = encode(FRAME_PING, 1, 5, {});
  Bytes wire = encode(FRAME_REQ, 1, 4, Bytes(40, 9));
  wire.resize(20);
  wire.insert(wire.end(), good.begin(), good.end());
  Decoder d(FRAME_MTU_DEFAULT);
  const auto seen = d.feed(wire);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].event, FRAME_BAD);
  EXPECT_EQ(seen[1].event, FRAME_OK);
  EXPECT_EQ(d.counters().crc_errors + d.counters().short_errors, 1u);
}

TEST(FrameDecoder, MtuAtLimitAndBeyond) {
  Decoder d(200);
  d.raw().max_payload = 128;
  EXPECT_EQ(d.feed(encode(FRAME_REQ, 3, 1, Bytes(128, 1)))[0].event, FRAME_OK);
  const auto over = d.feed(encode(FRAME_REQ, 3, 2, Bytes(129, 1)));
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].event, FRAME_OVERSIZE);
  EXPECT_EQ(over[0].size, 129u);
  EXPECT_EQ(over[0].session, 3u);
  const auto skipped = d.feed(encode(FRAME_REQ, 3, 3, Bytes(300, 1)));
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_EQ(skipped[0].event, FRAME_OVERSIZE);
  EXPECT_GT(skipped[0].size, 300u);
  EXPECT_EQ(d.feed(encode(FRAME_PING, 3, 4, {}))[0].event, FRAME_OK);
  EXPECT_EQ(d.counters().oversize, 2u);
}

TEST(FrameDecoder, TextBetweenFramesIsConsole) {
  Decoder d(FRAME_MTU_DEFAULT);
  const std::string line = "[00:00:01] WRN brown-out\r\n";
  Bytes wire(line.begin(), line.end());
  const Bytes frame = encode(FRAME_PING, 1, 1, {});
  wire.insert(wire.end(), frame.begin(), frame.end());
  const auto seen = d.feed(wire);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].event, FRAME_TEXT);
  EXPECT_EQ(text(seen[0]), line);
  EXPECT_EQ(seen[1].event, FRAME_OK);
  EXPECT_EQ(d.counters().crc_errors, 0u);
}

TEST(FrameDecoder, LongTextComesInPieces) {
  Decoder d(FRAME_MTU_MIN);
  Bytes wire(1000, 'x');
  wire.push_back(0);
  std::size_t bytes = 0;
  for (const auto& s : d.feed(wire)) {
    EXPECT_EQ(s.event, FRAME_TEXT);
    bytes += s.payload.size();
  }
  EXPECT_EQ(bytes, 1000u);
  EXPECT_EQ(d.feed(encode(FRAME_PING, 1, 1, {})).back().event, FRAME_OK);
}

TEST(FrameDecoder, APrintablePayloadDoesNotMakeAFrameText) {
  Decoder d(FRAME_MTU_MIN);
  EXPECT_EQ(d.feed(encode(FRAME_REQ, 3, 3, Bytes(300, 'x')))[0].event, FRAME_OVERSIZE);
  Bytes broken = encode(FRAME_LOG, 0x4141, 0x41414141, Bytes(100, 'x'));
  broken[50] ^= 1;
  EXPECT_EQ(d.feed(broken)[0].event, FRAME_BAD);
  EXPECT_EQ(d.counters().crc_errors, 1u);
}

TEST(FrameDecoder, FlushGivesUpUnfinishedText) {
  Decoder d(FRAME_MTU_DEFAULT);
  const std::string line = "!FAULT cfsr=00010000";
  d.feed(Bytes(line.begin(), line.end()));
  ASSERT_EQ(d.flush().size(), 1u);
  EXPECT_TRUE(d.flush().empty());
  EXPECT_EQ(d.feed(encode(FRAME_PING, 1, 1, {})).back().event, FRAME_OK);
}

TEST(FrameDecoder, FlushKeepsHalfAFrame) {
  const Bytes wire = encode(FRAME_REQ, 1, 1, Bytes(30, 200));
  Decoder d(FRAME_MTU_DEFAULT);
  d.feed(Bytes(wire.begin(), wire.begin() + 20));
  EXPECT_TRUE(d.flush().empty());
  EXPECT_EQ(d.feed(Bytes(wire.begin() + 20, wire.end())).back().event, FRAME_OK);
}

TEST(FrameDecoder, GarbageGivesNoFrames) {
  std::mt19937 rng(2026);
  Decoder d(FRAME_MTU_DEFAULT);
  for (int i = 0; i < 256; i++) d.feed(random_bytes(rng, 8192));
  EXPECT_EQ(d.counters().frames, 0u);
  EXPECT_GT(d.counters().crc_errors, 1000u);
}

}  // namespace
}  // namespace odt::testing
