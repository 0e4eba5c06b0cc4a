// tests/golden/frames/frames.json, to the byte.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "decode.h"

namespace odt::testing {
namespace {

Bytes from_hex(const std::string& hex) {
  Bytes out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return out;
}

nlohmann::json golden() {
  std::ifstream in(ODT_GOLDEN_FRAMES);
  return nlohmann::json::parse(in);
}

TEST(GoldenFrames, EncodeToTheByte) {
  int checked = 0;
  const auto g = golden();
  for (const auto& v : g.at("valid")) {
    const Bytes wire = encode(v.at("type"), v.at("session"), v.at("id"), from_hex(v.at("payload")));
    EXPECT_EQ(wire, from_hex(v.at("wire"))) << v.at("name");
    checked++;
  }
  EXPECT_EQ(checked, 9);
}

TEST(GoldenFrames, DecodeAtEverySplit) {
  const auto g = golden();
  for (const auto& v : g.at("valid")) {
    const Bytes wire = from_hex(v.at("wire"));
    for (std::size_t step = 1; step <= wire.size(); step++) {
      Decoder d(FRAME_MTU_DEFAULT);
      const auto seen = d.feed(wire, step);
      ASSERT_EQ(seen.size(), 1u) << v.at("name");
      EXPECT_EQ(seen[0].event, FRAME_OK);
      EXPECT_EQ(seen[0].type, v.at("type").get<int>());
      EXPECT_EQ(seen[0].session, v.at("session").get<int>());
      EXPECT_EQ(seen[0].id, v.at("id").get<std::uint32_t>());
      EXPECT_EQ(seen[0].payload, from_hex(v.at("payload")));
    }
  }
}

TEST(GoldenFrames, Malformed) {
  const auto g = golden();
  for (const auto& v : g.at("malformed")) {
    const std::string hex = v.at("wire");
    Bytes wire;
    if (hex.find("...") != std::string::npos) {
      // "over the hard cap": 4200 zero bytes, as its note says; the encoder refuses it.
      Bytes raw{1, 0x83, 2, 0, 3, 0, 0, 0};
      raw.resize(raw.size() + 4200);
      const std::uint32_t crc = frame_crc32(0, raw.data(), raw.size());
      for (int i = 0; i < 4; i++) raw.push_back(static_cast<std::uint8_t>(crc >> (8 * i)));
      wire.push_back(0);
      for (std::size_t at = 0; at < raw.size();) {
        std::size_t run = 0;
        while (at + run < raw.size() && raw[at + run] != 0) run++;
        wire.push_back(static_cast<std::uint8_t>(run + 1));
        wire.insert(wire.end(), raw.begin() + static_cast<long>(at),
                    raw.begin() + static_cast<long>(at + run));
        at += run + 1;
      }
      wire.push_back(0);
      EXPECT_EQ(Bytes(wire.begin(), wire.begin() + 20), from_hex(hex.substr(0, 40)));
    } else {
      wire = from_hex(hex);
    }
    Decoder d(FRAME_MTU_MAX);
    d.feed(wire);
    EXPECT_EQ(d.counters().frames, v.at("frames").get<std::uint32_t>()) << v.at("name");
    if (v.contains("crc_errors")) {
      EXPECT_EQ(d.counters().crc_errors, v.at("crc_errors").get<std::uint32_t>()) << v.at("name");
    }
  }
}

}  // namespace
}  // namespace odt::testing
