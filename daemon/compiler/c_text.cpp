#include "compiler/c_text.h"

#include <cstdio>

namespace odt::compiler {

std::string c_float(float v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(v));
  std::string out = text;
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out + "f";
}

std::string c_comment(const std::string& text) {
  std::string out = shown(text);
  for (char& c : out)
    if (c == '*' || c == '\\' || c == '?') c = '_';
  return out;
}

std::string c_type(Storage storage) {
  return storage == Storage::kU8 ? "uint8_t" : storage == Storage::kS8 ? "int8_t" : "int16_t";
}

std::size_t first_trainable(const Network& net) {
  std::size_t n = 0;
  while (!net.layers[n].trainable) ++n;
  return n;
}

Storage cut_storage(const Network& net) {
  Storage storage = net.input_storage;
  for (std::size_t n = 0; n < first_trainable(net); ++n)
    if (net.layers[n].is_compute())
      storage = storage_of(net.layers[n].clip_lo, net.layers[n].clip_hi);
  return storage;
}

std::uint64_t cut_count(const Network& net) {
  return count_of(net.layers[first_trainable(net)].in_shape);
}

}  // namespace odt::compiler
