#include "auth/secret.h"

#include <absl/strings/escaping.h>
#include <openssl/rand.h>

#include <array>
#include <cctype>
#include <cstdlib>

namespace odt::auth {
namespace {

constexpr char kCodeLetters[] = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";  // without 0 O 1 I
constexpr std::size_t kCodeLength = 10;

template <std::size_t N>
std::array<std::uint8_t, N> random_bytes() {
  std::array<std::uint8_t, N> raw{};
  if (RAND_bytes(raw.data(), static_cast<int>(raw.size())) != 1) std::abort();
  return raw;
}

}  // namespace

std::string new_secret() {
  const auto raw = random_bytes<32>();
  return "odt_" +
         absl::WebSafeBase64Escape({reinterpret_cast<const char*>(raw.data()), raw.size()});
}

std::string new_login_code() {
  const auto raw = random_bytes<kCodeLength>();
  std::string out;
  for (std::size_t i = 0; i < kCodeLength; ++i) {
    if (i == kCodeLength / 2) out += '-';
    out += kCodeLetters[raw[i] & 31u];
  }
  return out;
}

std::string plain_login_code(std::string_view typed) {
  std::string out;
  for (const char c : typed)
    if (c != '-' && c != ' ') out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

Hash secret_hash(std::string_view secret) { return sha256(secret); }

std::string_view bearer_token(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size()) return {};
  for (std::size_t i = 0; i < kScheme.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(authorization[i])) != kScheme[i]) return {};
  authorization.remove_prefix(kScheme.size());
  while (!authorization.empty() && authorization.front() == ' ') authorization.remove_prefix(1);
  return authorization;
}

}  // namespace odt::auth
