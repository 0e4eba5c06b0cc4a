#pragma once

#include <absl/strings/str_cat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/c_graph.h"
#include "compiler/c_writer.h"

// C source text; used by c_*.cpp only.
namespace odt::compiler {

// A literal of the very float: 9 digits, always with point or exponent.
std::string c_float(float v);
// Text of a file's names inside a comment.
std::string c_comment(const std::string& text);

// "  1, 2, 3,\n": values, `per_row` in a line.
template <typename T>
std::string c_values(const T* v, std::size_t n, std::size_t per_row) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) {
    if (i % per_row == 0) out += "  ";
    if constexpr (std::is_same_v<T, float>)
      out += c_float(v[i]);
    else
      absl::StrAppend(&out, static_cast<int>(v[i]));
    out += i % per_row == per_row - 1 || i + 1 == n ? ",\n" : ", ";
  }
  return out;
}
// "TYPE name[n] = {...};"
template <typename T>
std::string c_array(const std::string& declaration, const std::vector<T>& v,
                    std::size_t per_row = 16) {
  return absl::StrCat(declaration, "[", v.size(), "] = {\n", c_values(v.data(), v.size(), per_row),
                      "};\n");
}
// "TYPE name[rows][n] = {{...}, ...};": declaration has both dimensions.
template <typename T>
std::string c_rows(const std::string& declaration, const std::vector<T>& v, std::size_t columns) {
  std::string out = absl::StrCat(declaration, " = {\n");
  if (v.empty()) out += "  {0},\n";
  for (std::size_t at = 0; at < v.size(); at += columns)
    absl::StrAppend(&out, "  {\n", c_values(v.data() + at, columns, 12), "  },\n");
  return out + "};\n";
}

// int8_t, uint8_t or int16_t.
std::string c_type(Storage storage);
// ODT_S8, ODT_U8 or ODT_S16.
std::string c_dtype(Storage storage);

std::vector<CFile> write_c_config(const CModel& model, const Hash& model_hash);
std::vector<CFile> write_c_frozen(const CModel& model);
std::vector<CFile> write_c_data(const CData& data, const Network& net);
Result<std::vector<CFile>> write_c_vectors(const Compiled& compiled, const CModel& model,
                                           const CData* data);

}  // namespace odt::compiler
