#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Varints for what telemetry.db holds. Inside of the room.
namespace odt::store {

inline void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

inline std::uint64_t zigzag(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}

inline std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// Reads what was put; after the end everything is 0 and ok() false.
class ByteReader {
 public:
  explicit ByteReader(std::string_view data) : data_(data) {}
  std::uint8_t byte() {
    if (at_ >= data_.size()) {
      ok_ = false;
      return 0;
    }
    return static_cast<std::uint8_t>(data_[at_++]);
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t b = byte();
      value |= static_cast<std::uint64_t>(b & 0x7F) << shift;
      if (b < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  std::int64_t signed_varint() { return unzigzag(varint()); }
  std::string_view bytes(std::size_t count) {
    if (count > left()) {
      ok_ = false;
      at_ = data_.size();
      return {};
    }
    const std::string_view out = data_.substr(at_, count);
    at_ += count;
    return out;
  }
  std::size_t left() const { return data_.size() - at_; }
  bool ok() const { return ok_; }

 private:
  std::string_view data_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace odt::store
