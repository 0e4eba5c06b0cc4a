#include "base/ids.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>

namespace odt {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Sha256 {
 public:
  Sha256() : ctx_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    EVP_DigestInit_ex(ctx_.get(), EVP_sha256(), nullptr);
  }
  void update(const void* data, std::size_t size) { EVP_DigestUpdate(ctx_.get(), data, size); }
  Hash final() {
    Hash hash;
    EVP_DigestFinal_ex(ctx_.get(), hash.bytes.data(), nullptr);
    return hash;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> ctx_;
};

}  // namespace

std::string to_hex(const std::uint8_t* data, std::size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out(size * 2, '0');
  for (std::size_t i = 0; i < size; ++i) {
    out[2 * i] = kDigits[data[i] >> 4];
    out[2 * i + 1] = kDigits[data[i] & 15];
  }
  return out;
}

Result<Bytes> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0)
    return absl::InvalidArgumentError("hex text of odd length " + std::to_string(hex.size()));
  Bytes out(hex.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int hi = hex_value(hex[2 * i]), lo = hex_value(hex[2 * i + 1]);
    if (hi < 0 || lo < 0)
      return absl::InvalidArgumentError("'" + std::string(hex) + "' is not hex");
    out[i] = static_cast<std::uint8_t>(hi << 4 | lo);
  }
  return out;
}

Result<BoardUid> BoardUid::from_bytes(std::string_view raw) {
  if (raw.size() < 8 || raw.size() > 16)
    return absl::InvalidArgumentError("board uid of " + std::to_string(raw.size()) +
                                      " bytes; expected 8 to 16");
  return BoardUid{Bytes(raw.begin(), raw.end())};
}

Uuid new_uuid() {
  static std::mutex mutex;
  static std::uint64_t last =
      0;  // milliseconds << 12 | counter: keeps ids increasing within a millisecond
  const auto ms =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
  std::uint64_t stamp;
  {
    std::lock_guard lock(mutex);
    stamp = std::max(ms << 12, last + 1);
    last = stamp;
  }
  Uuid id;
  RAND_bytes(id.bytes.data() + 8, 8);
  for (int i = 0; i < 6; ++i) id.bytes[i] = static_cast<std::uint8_t>(stamp >> (12 + 8 * (5 - i)));
  id.bytes[6] = static_cast<std::uint8_t>(0x70 | ((stamp >> 8) & 0x0F));
  id.bytes[7] = static_cast<std::uint8_t>(stamp);
  id.bytes[8] = static_cast<std::uint8_t>(0x80 | (id.bytes[8] & 0x3F));
  return id;
}

Hash sha256(const void* data, std::size_t size) {
  Sha256 sha;
  sha.update(data, size);
  return sha.final();
}

Result<Hash> sha256_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(path + ": cannot be read");
  Sha256 sha;
  std::vector<char> buffer(1 << 16);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0)
    sha.update(buffer.data(), static_cast<std::size_t>(in.gcount()));
  if (in.bad()) return absl::DataLossError(path + ": read error");
  return sha.final();
}

}  // namespace odt
