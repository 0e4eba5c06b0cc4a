#include "data/dataset.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace odt::data {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kMagic[] = "ODTD";
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 48;

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void pad4(std::string& out) { out.append((4 - out.size() % 4) % 4, '\0'); }

template <typename T>
T get(std::string_view in, std::size_t at) {
  T value;
  std::memcpy(&value, in.data() + at, sizeof value);
  return value;
}

Status bad(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("dataset file: ", what));
}

struct Layout {
  std::size_t text = 0, labels = 0, index = 0, ranges = 0, values = 0, total = 0;
};
Layout layout_of(std::size_t text_bytes, std::size_t samples, std::size_t sample_len,
                 std::size_t value_bytes) {
  const auto round4 = [](std::size_t n) { return (n + 3) / 4 * 4; };
  Layout l;
  l.text = kHeaderBytes;
  l.labels = l.text + round4(text_bytes);
  l.index = l.labels + round4(samples);
  l.ranges = l.index + 4 * samples;
  l.values = l.ranges + 8 * sample_len;
  l.total = l.values + samples * sample_len * value_bytes;
  return l;
}

Status parse_text(std::string_view text, std::uint32_t n_classes, Dataset& d) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("class_names") || !json["class_names"].is_array() ||
      json["class_names"].size() != n_classes)
    return bad("its text part is damaged");
  for (const auto& name : json["class_names"]) {
    if (!name.is_string()) return bad("a class name is not text");
    d.class_names.push_back(name.get<std::string>());
  }
  if (json.contains("unit") && json["unit"].is_string()) d.unit = json["unit"].get<std::string>();
  if (json.contains("source") && json["source"].is_string())
    d.source = json["source"].get<std::string>();
  return absl::OkStatus();
}

}  // namespace

std::size_t dtype_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::kS16:
      return 2;
    case Dtype::kF32:
      return 4;
    default:
      return 1;
  }
}

std::string dtype_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::kS8:
      return "i8";
    case Dtype::kU8:
      return "u8";
    case Dtype::kS16:
      return "i16";
    default:
      return "f32";
  }
}

std::uint32_t Dataset::sample_len() const {
  std::uint32_t n = 1;
  for (auto d : shape) n *= d;
  return n;
}

std::uint32_t Dataset::first(Split split) const {
  std::uint32_t at = 0;
  for (int s = 0; s < static_cast<int>(split); ++s) at += counts[s];
  return at;
}

float Dataset::value(std::uint32_t sample, std::uint32_t feature) const {
  const std::size_t at = std::size_t{sample} * sample_len() + feature;
  switch (dtype) {
    case Dtype::kS8:
      return static_cast<std::int8_t>(values[at]);
    case Dtype::kU8:
      return values[at];
    case Dtype::kS16: {
      std::int16_t v;
      std::memcpy(&v, values.data() + 2 * at, 2);
      return v;
    }
    default: {
      float v;
      std::memcpy(&v, values.data() + 4 * at, 4);
      return v;
    }
  }
}

std::vector<std::uint32_t> Dataset::class_counts() const {
  std::vector<std::uint32_t> n(class_names.size(), 0);
  for (auto l : labels) ++n[l];
  return n;
}

void measure_ranges(Dataset& d) {
  const std::uint32_t len = d.sample_len();
  d.feature_min.assign(len, 0);
  d.feature_max.assign(len, 0);
  for (std::uint32_t s = 0; s < d.samples(); ++s)
    for (std::uint32_t f = 0; f < len; ++f) {
      const float v = d.value(s, f);
      if (s == 0 || v < d.feature_min[f]) d.feature_min[f] = v;
      if (s == 0 || v > d.feature_max[f]) d.feature_max[f] = v;
    }
}

std::string encode_dataset(const Dataset& d) {
  const nlohmann::json text = {
      {"class_names", d.class_names}, {"source", d.source}, {"unit", d.unit}};
  const std::string text_bytes =
      text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out(kMagic, 4);
  put<std::uint16_t>(out, kVersion);
  put<std::uint8_t>(out, static_cast<std::uint8_t>(d.dtype));
  put<std::uint8_t>(out, static_cast<std::uint8_t>(d.shape.size()));
  for (std::size_t i = 0; i < 4; ++i) put<std::uint32_t>(out, i < d.shape.size() ? d.shape[i] : 0);
  put<std::uint32_t>(out, d.sample_len());
  for (auto c : d.counts) put<std::uint32_t>(out, c);
  put<std::uint32_t>(out, static_cast<std::uint32_t>(d.class_names.size()));
  put<std::uint32_t>(out, static_cast<std::uint32_t>(text_bytes.size()));
  out += text_bytes;
  pad4(out);
  out.append(reinterpret_cast<const char*>(d.labels.data()), d.labels.size());
  pad4(out);
  for (auto i : d.source_index) put<std::uint32_t>(out, i);
  for (std::uint32_t f = 0; f < d.sample_len(); ++f) {
    put<float>(out, d.feature_min[f]);
    put<float>(out, d.feature_max[f]);
  }
  out.append(reinterpret_cast<const char*>(d.values.data()), d.values.size());
  return out;
}

Result<Dataset> decode_dataset(std::string_view in) {
  if (in.size() < kHeaderBytes || in.substr(0, 4) != std::string_view(kMagic, 4))
    return bad("not a dataset (magic ODTD expected)");
  if (const auto v = get<std::uint16_t>(in, 4); v != kVersion)
    return bad(absl::StrCat("version ", v, "; this release reads version ", kVersion));
  Dataset d;
  const auto dtype = get<std::uint8_t>(in, 6);
  if (dtype < 1 || dtype > 4) return bad(absl::StrCat("dtype ", dtype, "; expected 1..4"));
  d.dtype = static_cast<Dtype>(dtype);
  const auto ndim = get<std::uint8_t>(in, 7);
  if (ndim < 1 || ndim > 4) return bad(absl::StrCat("ndim ", ndim, "; expected 1..4"));
  std::uint64_t len = 1;
  for (std::size_t i = 0; i < ndim; ++i) {
    d.shape.push_back(get<std::uint32_t>(in, 8 + 4 * i));
    len *= d.shape.back();
    if (len < 1 || len > kMaxSampleValues)
      return bad(absl::StrCat("values per sample ", len, "; expected 1..", kMaxSampleValues));
  }
  if (get<std::uint32_t>(in, 24) != len) return bad("shape and values per sample disagree");
  std::uint64_t samples = 0;
  for (int s = 0; s < 3; ++s) samples += d.counts[s] = get<std::uint32_t>(in, 28 + 4u * s);
  const auto n_classes = get<std::uint32_t>(in, 40);
  if (n_classes < 2 || n_classes > kMaxClasses)
    return bad(absl::StrCat(n_classes, " classes; expected 2..", kMaxClasses));
  const auto text_bytes = get<std::uint32_t>(in, 44);
  if (samples > in.size() || text_bytes > in.size()) return bad("truncated");
  const Layout l = layout_of(text_bytes, samples, len, dtype_bytes(d.dtype));
  if (l.total != in.size())
    return bad(absl::StrCat("truncated or damaged: ", in.size(), " bytes; expected ", l.total));
  ODT_TRY(parse_text(in.substr(l.text, text_bytes), n_classes, d));
  d.labels.assign(in.begin() + l.labels, in.begin() + l.labels + samples);
  for (auto label : d.labels)
    if (label >= n_classes) return bad(absl::StrCat("label ", label, " of ", n_classes));
  d.source_index.resize(samples);
  std::memcpy(d.source_index.data(), in.data() + l.index, 4 * samples);
  for (std::size_t f = 0; f < len; ++f) {
    d.feature_min.push_back(get<float>(in, l.ranges + 8 * f));
    d.feature_max.push_back(get<float>(in, l.ranges + 8 * f + 4));
  }
  d.values.assign(in.begin() + l.values, in.end());
  return d;
}

}  // namespace odt::data
