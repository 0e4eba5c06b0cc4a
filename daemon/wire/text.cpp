#include "wire/text.h"

#include <cstdint>

namespace odt::wire {
namespace {

// Length of the sound UTF-8 sequence at the start of `s`; 0: none. Refuses overlong forms,
// surrogates, and C1 controls, which some terminals obey.
std::size_t sequence_length(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(s[i]); };
  const std::uint8_t lead = byte(0);
  std::size_t n = 0;
  std::uint32_t code = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    n = 2;
    code = lead & 0x1Fu;
  } else if ((lead & 0xF0) == 0xE0) {
    n = 3;
    code = lead & 0x0Fu;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    n = 4;
    code = lead & 0x07u;
  }
  if (n == 0 || s.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool overlong = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  // Bidirectional overrides can reorder what a terminal shows.
  const bool bidi = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  if (overlong || surrogate || bidi || code > 0x10FFFF || code < 0xA0) return 0;
  return n;
}

}  // namespace

std::string sanitise(std::string_view text, std::size_t limit) {
  std::string out;
  while (!text.empty()) {
    const auto c = static_cast<std::uint8_t>(text[0]);
    std::size_t n = 1;
    bool good = c >= 0x20 && c < 0x7f;
    if (c >= 0x80) {
      const std::size_t sequence = sequence_length(text);
      good = sequence != 0;
      if (good) n = sequence;
    }
    if (out.size() + n > limit) break;
    if (good) {
      out.append(text.substr(0, n));
    } else {
      out.push_back('?');
    }
    text.remove_prefix(n);
  }
  return out;
}

}  // namespace odt::wire
