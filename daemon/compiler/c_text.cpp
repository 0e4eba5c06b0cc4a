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

std::string c_dtype(Storage storage) {
  return storage == Storage::kU8 ? "ODT_U8" : storage == Storage::kS8 ? "ODT_S8" : "ODT_S16";
}

}  // namespace odt::compiler
