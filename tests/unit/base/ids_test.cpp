#include "base/ids.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace odt {
namespace {

TEST(Hex, GoesThereAndBack) {
  Bytes all(256);
  for (int i = 0; i < 256; ++i) all[i] = static_cast<std::uint8_t>(i);
  const std::string hex = to_hex(all.data(), all.size());
  EXPECT_EQ(hex.substr(0, 8), "00010203");
  EXPECT_EQ(hex.substr(508), "feff");
  EXPECT_EQ(*from_hex(hex), all);
  EXPECT_EQ(*from_hex("aBFf"), (Bytes{0xAB, 0xFF}));
  EXPECT_TRUE(from_hex("")->empty());
}

TEST(Hex, RefusesOddLengthAndOtherCharacters) {
  for (const char* text : {"a", "abc", "0g", "g0", " 1", "0x"})
    EXPECT_TRUE(absl::IsInvalidArgument(from_hex(text).status())) << text;
}

TEST(FixedId, TakesOnlyItsLength) {
  EXPECT_TRUE(Hash::from_bytes(std::string(32, 'x')).ok());
  EXPECT_FALSE(Hash::from_bytes(std::string(31, 'x')).ok());
  EXPECT_FALSE(Hash::from_bytes(std::string(33, 'x')).ok());
  EXPECT_FALSE(Uuid::from_bytes("").ok());
  EXPECT_TRUE(Hash().is_zero());
  EXPECT_EQ(Hash::from_bytes(std::string(32, 'x'))->str(), std::string(32, 'x'));
}

TEST(BoardUid, IsEightToSixteenBytes) {
  EXPECT_FALSE(BoardUid::from_bytes(std::string(7, 'u')).ok());
  EXPECT_TRUE(BoardUid::from_bytes(std::string(8, 'u')).ok());
  EXPECT_TRUE(BoardUid::from_bytes(std::string(16, 'u')).ok());
  EXPECT_FALSE(BoardUid::from_bytes(std::string(17, 'u')).ok());
}

TEST(Uuid, IsVersionSevenOfNow) {
  const Uuid id = new_uuid();
  EXPECT_EQ(id.bytes[6] >> 4, 7);
  EXPECT_EQ(id.bytes[8] >> 6, 2);
  std::uint64_t ms = 0;
  for (int i = 0; i < 6; ++i) ms = ms << 8 | id.bytes[i];
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  EXPECT_NEAR(static_cast<double>(ms), static_cast<double>(now), 60'000);
}

TEST(Uuid, IncreasesStrictlyAndIsUniqueOverThreads) {
  std::vector<std::vector<Uuid>> made(4);
  std::vector<std::thread> threads;
  for (auto& ids : made)
    threads.emplace_back([&ids] {
      for (int i = 0; i < 10'000; ++i) ids.push_back(new_uuid());
    });
  for (auto& thread : threads) thread.join();
  std::set<Uuid> all;
  for (const auto& ids : made) {
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
    all.insert(ids.begin(), ids.end());
  }
  EXPECT_EQ(all.size(), 40'000u);
}

// FIPS 180-4 examples.
TEST(Sha256, GivesThePublishedValues) {
  EXPECT_EQ(sha256("abc").hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("").hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')).hex(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, OfAFileIsThatOfItsContent) {
  const auto path = std::filesystem::temp_directory_path() / ("odt-" + new_uuid().hex());
  const std::string content((1 << 16) + 7, 'q');  // more than one buffer
  std::ofstream(path, std::ios::binary) << content;
  EXPECT_EQ(*sha256_file(path), sha256(content));
  std::filesystem::remove(path);
  EXPECT_TRUE(absl::IsNotFound(sha256_file(path).status()));
}

}  // namespace
}  // namespace odt
