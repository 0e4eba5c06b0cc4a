#include "data/weight_files.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <zlib.h>

#include <nlohmann/json.hpp>

namespace odt::data {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::uint32_t kDosDate = 0x0021;  // 1980-01-01: the same bytes every time

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 255));
}

// What local and central headers have in common, from the version needed on.
void put_entry(std::string& out, const std::string& content, const std::string& name) {
  const auto crc = crc32(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(content.data()),
                         static_cast<uInt>(content.size()));
  put(out, 20, 2);
  put(out, 0, 2);  // flags
  put(out, 0, 2);  // stored
  put(out, 0, 2);  // time
  put(out, kDosDate, 2);
  put(out, crc, 4);
  put(out, content.size(), 4);
  put(out, content.size(), 4);
  put(out, name.size(), 2);
  put(out, 0, 2);  // extra
}

template <typename T>
std::string npy(const std::vector<T>& values, const std::vector<std::uint32_t>& shape,
                const char* descr) {
  std::string dims;
  for (const auto d : shape) absl::StrAppend(&dims, d, ", ");
  std::string head =
      absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", dims, "), }");
  constexpr std::size_t kFixed = 10;
  while ((kFixed + head.size() + 1) % 64 != 0) head.push_back(' ');
  head.push_back('\n');
  std::string out("\x93NUMPY\x01\x00", 8);
  put(out, head.size(), 2);
  out += head;
  for (const T v : values) put(out, static_cast<std::uint64_t>(v), sizeof(T));
  return out;
}

std::vector<std::int8_t> bytes_of(const std::vector<std::int16_t>& values) {
  std::vector<std::int8_t> out;
  for (const auto v : values) out.push_back(static_cast<std::int8_t>(v));
  return out;
}

std::uint32_t size_of(const std::vector<std::int32_t>& values) {
  return static_cast<std::uint32_t>(values.size());
}

std::string name_of(const WeightsTitle& title, std::size_t layer) {
  return layer < title.layer_names.size() ? title.layer_names[layer] : std::string();
}

Json head_of(const StoredWeights& w, const WeightsTitle& title) {
  return {{"format", "odt-weights"}, {"weights_hash", title.hash.hex()},
          {"model", title.model},    {"model_hash", w.model_hash.hex()},
          {"rule_set", w.rule_set},  {"rules_version", w.rules_version}};
}

Json head_of(const StoredLayer& l, const std::string& name) {
  Json out = {{"name", name}, {"kind", l.conv() ? "conv" : "linear"}, {"shape", l.shape}};
  if (!l.dfp16())
    out["k"] = l.k;
  else if (!l.blocked())
    out["exponent"] = l.k;
  return out;
}

// Without what could end a comment or a line.
std::string comment(const std::string& text) {
  std::string out;
  for (const char c : text)
    out.push_back(static_cast<unsigned char>(c) < ' ' || c == '*' || c == '\\' ? '_' : c);
  return out;
}

template <typename T>
void c_array(std::string& out, const char* type, const std::string& name,
             const std::vector<T>& values) {
  if (values.empty()) return;
  absl::StrAppend(&out, "static const ", type, " ", name, "[", values.size(), "] = {");
  for (std::size_t i = 0; i < values.size(); ++i) {
    absl::StrAppend(&out, i % 16 == 0 ? "\n    " : " ");
    // INT32_MIN has no literal of its own type.
    if (static_cast<std::int64_t>(values[i]) == INT32_MIN)
      absl::StrAppend(&out, "(-2147483647 - 1),");
    else
      absl::StrAppend(&out, static_cast<int>(values[i]), ",");
  }
  out += "\n};\n";
}

}  // namespace

std::string zip_stored(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string out, directory;
  for (const auto& [name, content] : members) {
    const std::size_t at = out.size();
    put(out, 0x04034b50, 4);
    put_entry(out, content, name);
    out += name + content;
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    put_entry(directory, content, name);
    put(directory, 0, 2);  // comment
    put(directory, 0, 2);  // disk
    put(directory, 0, 2);  // attributes
    put(directory, 0, 4);
    put(directory, at, 4);
    directory += name;
  }
  const std::size_t at = out.size();
  out += directory;
  put(out, 0x06054b50, 4);
  put(out, 0, 4);  // disks
  put(out, members.size(), 2);
  put(out, members.size(), 2);
  put(out, directory.size(), 4);
  put(out, at, 4);
  put(out, 0, 2);
  return out;
}

std::string weights_npz(const StoredWeights& weights, const WeightsTitle& title) {
  std::vector<std::pair<std::string, std::string>> members;
  Json manifest = head_of(weights, title);
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const StoredLayer& l = weights.layers[i];
    const std::string name = absl::StrCat("layer", i);
    manifest["layers"].push_back(head_of(l, name_of(title, i)));
    if (!l.values.empty())
      members.emplace_back(name + ".weight.npy", l.dtype == 1
                                                     ? npy(bytes_of(l.values), l.shape, "|i1")
                                                     : npy(l.values, l.shape, "<i2"));
    members.emplace_back(name + ".offset.npy", npy(l.offsets, {size_of(l.offsets)}, "<i4"));
    if (!l.exponents.empty())
      members.emplace_back(
          name + ".exponent.npy",
          npy(l.exponents, {static_cast<std::uint32_t>(l.exponents.size())}, "|i1"));
  }
  members.emplace_back("manifest.json",
                       manifest.dump(1, ' ', false, Json::error_handler_t::replace));
  return zip_stored(members);
}

std::string weights_c(const StoredWeights& weights, const WeightsTitle& title) {
  std::string out =
      absl::StrCat("/* Weights ", title.hash.hex(), "\n   of model ", comment(title.model), " (",
                   weights.model_hash.hex(), "), rules version ", weights.rules_version, ". */\n",
                   "#ifndef ODT_WEIGHTS_H\n#define ODT_WEIGHTS_H\n\n"
                   "#include <stdint.h>\n\n#define ODT_WEIGHTS_LAYERS ",
                   weights.layers.size(), "\n");
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const StoredLayer& l = weights.layers[i];
    const std::string name = absl::StrCat("odt_layer", i);
    absl::StrAppend(&out, "\n/* ", comment(name_of(title, i)), ": ", l.conv() ? "conv" : "linear",
                    " [", absl::StrJoin(l.shape, "]["), "] */\n");
    if (!l.blocked())
      absl::StrAppend(&out, "#define ODT_LAYER", i, l.dfp16() ? "_EXPONENT (" : "_K (",
                      static_cast<int>(l.k), ")\n");
    if (l.dtype == 1)
      c_array(out, "int8_t", name + "_weight", bytes_of(l.values));
    else
      c_array(out, "int16_t", name + "_weight", l.values);
    c_array(out, "int32_t", name + "_offset", l.offsets);
    c_array(out, "int8_t", name + "_exponent", l.exponents);
  }
  return out + "\n#endif\n";
}

std::string weights_json(const StoredWeights& weights, const WeightsTitle& title) {
  Json out = head_of(weights, title);
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const StoredLayer& l = weights.layers[i];
    Json item = head_of(l, name_of(title, i));
    item["weights"] = l.values;
    item["offsets"] = l.offsets;
    if (!l.exponents.empty()) item["exponents"] = l.exponents;
    out["layers"].push_back(std::move(item));
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace odt::data
