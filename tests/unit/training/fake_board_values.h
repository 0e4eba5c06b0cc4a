#pragma once

#include <cstdint>
#include <cstring>
#include <string>

// How a fake board computes: its "weights" are one number, its blobs carry it.
namespace odt::test {

inline std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ull;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}
inline void put64(std::string& s, std::size_t at, std::uint64_t v) {
  std::memcpy(s.data() + at, &v, 8);
}
inline std::uint64_t get64(const std::string& s, std::size_t at) {
  std::uint64_t v;
  std::memcpy(&v, s.data() + at, 8);
  return v;
}
inline std::uint32_t sum_of(const std::string& blob) {
  std::uint32_t sum = 0;
  for (const unsigned char c : blob.substr(16)) sum = sum * 31 + c;
  return sum;
}

}  // namespace odt::test
