#include "compiler/ir.h"

namespace odt::compiler {

std::uint64_t count_of(const Shape& shape) {
  std::uint64_t n = 1;
  for (auto d : shape) n *= d;
  return n;
}

Storage storage_of(std::int32_t lo, std::int32_t hi) {
  if (lo >= 0 && hi <= 255) return Storage::kU8;
  return lo >= -128 && hi <= 127 ? Storage::kS8 : Storage::kS16;
}

std::string shown(const std::string& text) {
  std::string out;
  for (char c : text.substr(0, 64)) out += c >= ' ' && c <= '~' ? c : '?';
  if (text.size() > 64) out += "...";
  return out;
}

}  // namespace odt::compiler
