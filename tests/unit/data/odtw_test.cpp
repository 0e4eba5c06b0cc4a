#include "data/odtw.h"

#include <gtest/gtest.h>

namespace odt::data {
namespace {

StoredLayer layer(std::uint8_t dtype, std::int8_t k, std::vector<std::uint32_t> shape,
                  std::vector<std::int16_t> values, std::vector<std::int32_t> offsets) {
  StoredLayer l;
  l.kind = 3;
  l.dtype = dtype;
  l.k = k;
  l.shape = std::move(shape);
  l.values = std::move(values);
  l.offsets = std::move(offsets);
  return l;
}

StoredWeights sample() {
  StoredWeights w;
  w.rules_version = 1;
  w.rule_set = 1;
  w.model_hash.bytes[3] = 7;
  w.layers.push_back(layer(1, 8, {3, 1}, {-128, 0, 127}, {-5, 2147483647, -2147483647}));
  w.layers.push_back(layer(3, 15, {1, 3}, {-16384, 1, 16383}, {9}));
  w.layers.push_back(layer(1, 6, {2, 2}, {}, {1, 2}));  // only its offsets are trained
  w.layers.push_back(layer(5, 0, {2, 1}, {-300, 300}, {4, 5}));
  w.layers.back().exponents = {-3, 2};
  return w;
}

TEST(Odtw, WhatIsWrittenIsReadAgain) {
  const StoredWeights w = sample();
  const std::string bytes = weights_bytes(w);
  const auto read = parse_weights(bytes, "w");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, w);
  EXPECT_EQ(weights_bytes(*read), bytes);
}

TEST(Odtw, EveryCutIsAnError) {
  const std::string bytes = weights_bytes(sample());
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(parse_weights(bytes.substr(0, n), "w").ok()) << n;
  EXPECT_FALSE(parse_weights(bytes + '\0', "w").ok());
}

}  // namespace
}  // namespace odt::data
