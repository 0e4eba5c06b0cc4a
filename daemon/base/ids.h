#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace odt {

using Bytes = std::vector<std::uint8_t>;

// Lower-case hex of bytes, and back. Errors of from_hex: INVALID_ARGUMENT (odd length, not hex).
std::string to_hex(const std::uint8_t* data, std::size_t size);
Result<Bytes> from_hex(std::string_view hex);

// Fixed-size identity; Tag keeps the kinds apart.
template <typename Tag, std::size_t N>
struct FixedId {
  std::array<std::uint8_t, N> bytes{};

  static constexpr std::size_t kSize = N;
  auto operator<=>(const FixedId&) const = default;
  bool is_zero() const {
    for (auto b : bytes)
      if (b != 0) return false;
    return true;
  }
  std::string hex() const { return to_hex(bytes.data(), N); }
  std::string str() const { return std::string(reinterpret_cast<const char*>(bytes.data()), N); }
  // Errors: INVALID_ARGUMENT where `raw` has not N bytes.
  static Result<FixedId> from_bytes(std::string_view raw) {
    if (raw.size() != N)
      return absl::InvalidArgumentError("id of " + std::to_string(raw.size()) +
                                        " bytes; expected " + std::to_string(N));
    FixedId id;
    std::memcpy(id.bytes.data(), raw.data(), N);
    return id;
  }
};

struct HashTag {};
struct UuidTag {};
using Hash = FixedId<HashTag, 32>;  // SHA-256; zero: none
using Uuid = FixedId<UuidTag, 16>;  // UUIDv7 of run, job, dataset, command, upload; zero: none
using GatewayId = FixedId<struct GatewayTag, 16>;

// A board's chip uid, 8..16 bytes.
struct BoardUid {
  Bytes bytes;
  auto operator<=>(const BoardUid&) const = default;
  bool empty() const { return bytes.empty(); }
  std::string hex() const { return to_hex(bytes.data(), bytes.size()); }
  std::string str() const { return std::string(bytes.begin(), bytes.end()); }
  static Result<BoardUid> from_bytes(std::string_view raw);  // INVALID_ARGUMENT: not 8..16 bytes
};

// UUIDv7 from the host clock and the system's random source; strictly increasing within a process.
Uuid new_uuid();

Hash sha256(const void* data, std::size_t size);
inline Hash sha256(std::string_view data) { return sha256(data.data(), data.size()); }
Result<Hash> sha256_file(const std::string& path);

struct IdHash {
  template <typename Tag, std::size_t N>
  std::size_t operator()(const FixedId<Tag, N>& id) const {
    std::size_t h;
    static_assert(N >= sizeof h);
    std::memcpy(&h, id.bytes.data() + (N - sizeof h), sizeof h);
    return h;
  }
  std::size_t operator()(const BoardUid& uid) const {
    return std::hash<std::string_view>{}(
        {reinterpret_cast<const char*>(uid.bytes.data()), uid.bytes.size()});
  }
};

}  // namespace odt
