#include "data/dataset.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
constexpr std::uint16_t kPlain = 1, kExtended = 2;  // versions
constexpr std::size_t kHeaderBytes = 48, kExtendedBytes = 64;

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

struct Sizes {
  std::size_t header = kHeaderBytes, text = 0, samples = 0, sample_len = 0, value_bytes = 1;
  std::size_t outputs = 0, groups = 0;
};
struct Layout {
  std::size_t text = 0, labels = 0, index = 0, ranges = 0, target_ranges = 0, groups = 0,
              targets = 0, values = 0, total = 0;
};
Layout layout_of(const Sizes& s) {
  const auto round4 = [](std::size_t n) { return (n + 3) / 4 * 4; };
  Layout l;
  l.text = s.header;
  l.labels = l.text + round4(s.text);
  l.index = l.labels + round4(s.samples);
  l.ranges = l.index + 4 * s.samples;
  l.target_ranges = l.ranges + 8 * s.sample_len;
  l.groups = l.target_ranges + 8 * s.outputs;
  l.targets = l.groups + (s.groups > 0 ? 4 * s.samples : 0);
  l.values = l.targets + 4 * s.samples * s.outputs;
  l.total = l.values + s.samples * s.sample_len * s.value_bytes;
  return l;
}

using nlohmann::json;

// An array of `size` texts; absent: empty where that is allowed.
Result<std::vector<std::string>> texts(const json& from, const char* key, std::size_t size,
                                       bool optional) {
  const auto at = from.find(key);
  if (at == from.end() && optional) return std::vector<std::string>{};
  if (at == from.end() || !at->is_array() || (at->size() != size && !(optional && at->empty())))
    return bad(absl::StrCat("its text part is damaged (", key, ")"));
  std::vector<std::string> out;
  for (const auto& name : *at) {
    if (!name.is_string()) return bad(absl::StrCat("its text part is damaged (", key, ")"));
    out.push_back(name.get<std::string>());
  }
  return out;
}

Status parse_text(std::string_view text, std::size_t n_classes, std::size_t n_groups, Dataset& d) {
  const auto from = json::parse(text, nullptr, false);
  if (!from.is_object()) return bad("its text part is damaged");
  ODT_ASSIGN(d.class_names, texts(from, "class_names", n_classes, false));
  ODT_ASSIGN(d.group_names, texts(from, "group_names", n_groups, n_groups == 0));
  ODT_ASSIGN(d.target_names, texts(from, "target_names", d.outputs, true));
  const auto take = [&](const char* key, std::string& to) {
    if (from.contains(key) && from[key].is_string()) to = from[key].get<std::string>();
  };
  take("unit", d.unit);
  take("source", d.source);
  take("kind", d.kind);
  return absl::OkStatus();
}

template <typename T>
std::vector<T> array(std::string_view in, std::size_t at, std::size_t n) {
  std::vector<T> out(n);
  if (n > 0) std::memcpy(out.data(), in.data() + at, n * sizeof(T));
  return out;
}

void take_pairs(std::string_view in, std::size_t at, std::size_t n, std::vector<float>& first,
                std::vector<float>& second) {
  for (std::size_t i = 0; i < n; ++i) {
    first.push_back(get<float>(in, at + 8 * i));
    second.push_back(get<float>(in, at + 8 * i + 4));
  }
}

// Sizes by the header, checked but for the length of the file. Fills what they say of the dataset.
Result<Sizes> parse_header(std::string_view in, Dataset& d) {
  if (in.size() < kHeaderBytes || in.substr(0, 4) != std::string_view(kMagic, 4))
    return bad("not a dataset (magic ODTD expected)");
  const auto version = get<std::uint16_t>(in, 4);
  if (version != kPlain && version != kExtended)
    return bad(absl::StrCat("version ", version, "; this release reads versions 1 and 2"));
  Sizes s;
  if (version == kExtended) {
    s.header = kExtendedBytes;
    if (in.size() < s.header) return bad("truncated");
    d.outputs = get<std::uint32_t>(in, 48);
    s.groups = get<std::uint32_t>(in, 52);
    d.sample_rate = get<float>(in, 56);
    if (d.outputs > kMaxOutputs)
      return bad(absl::StrCat(d.outputs, " targets; expected 0..", kMaxOutputs));
    if (!std::isfinite(d.sample_rate) || d.sample_rate < 0) return bad("sample rate out of range");
    if (get<std::uint32_t>(in, 60) != 0) return bad("reserved field is not 0");
  }
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
  for (int n = 0; n < 3; ++n) samples += d.counts[n] = get<std::uint32_t>(in, 28 + 4u * n);
  s.text = get<std::uint32_t>(in, 44);
  if (samples > in.size() || s.text > in.size() || s.groups > in.size()) return bad("truncated");
  s.samples = samples;
  s.sample_len = len;
  s.value_bytes = dtype_bytes(d.dtype);
  s.outputs = d.outputs;
  return s;
}

Status check_classes(std::size_t n_classes, const Sizes& s, const Dataset& d) {
  const bool may_lack = s.header == kExtendedBytes && n_classes == 0;
  if ((n_classes < 2 && !may_lack) || n_classes > kMaxClasses)
    return bad(absl::StrCat(n_classes, " classes; expected 2..", kMaxClasses));
  for (auto label : d.labels)
    if (label >= std::max<std::size_t>(n_classes, 1))
      return bad(absl::StrCat("label ", label, " of ", n_classes));
  for (auto group : d.groups)
    if (group >= s.groups) return bad(absl::StrCat("group ", group, " of ", s.groups));
  for (auto target : d.targets)
    if (!std::isfinite(target)) return bad("a target is not a finite number");
  return absl::OkStatus();
}

// All but the values.
std::string encode_front(const Dataset& d) {
  json text = {{"class_names", d.class_names}, {"source", d.source}, {"unit", d.unit}};
  if (d.extended()) {
    text["group_names"] = d.group_names;
    text["kind"] = d.kind;
    text["target_names"] = d.target_names;
  }
  const std::string text_bytes = text.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string out(kMagic, 4);
  put<std::uint16_t>(out, d.extended() ? kExtended : kPlain);
  put<std::uint8_t>(out, static_cast<std::uint8_t>(d.dtype));
  put<std::uint8_t>(out, static_cast<std::uint8_t>(d.shape.size()));
  for (std::size_t i = 0; i < 4; ++i) put<std::uint32_t>(out, i < d.shape.size() ? d.shape[i] : 0);
  put<std::uint32_t>(out, d.sample_len());
  for (auto c : d.counts) put<std::uint32_t>(out, c);
  put<std::uint32_t>(out, static_cast<std::uint32_t>(d.class_names.size()));
  put<std::uint32_t>(out, static_cast<std::uint32_t>(text_bytes.size()));
  if (d.extended()) {
    put<std::uint32_t>(out, d.outputs);
    put<std::uint32_t>(out,
                       d.groups.empty() ? 0u : static_cast<std::uint32_t>(d.group_names.size()));
    put<float>(out, d.sample_rate);
    put<std::uint32_t>(out, 0);
  }
  out += text_bytes;
  pad4(out);
  out.append(reinterpret_cast<const char*>(d.labels.data()), d.labels.size());
  pad4(out);
  for (auto i : d.source_index) put<std::uint32_t>(out, i);
  for (std::uint32_t f = 0; f < d.sample_len(); ++f) {
    put<float>(out, d.feature_min[f]);
    put<float>(out, d.feature_max[f]);
  }
  for (std::uint32_t i = 0; i < d.outputs; ++i) {
    put<float>(out, d.target_min[i]);
    put<float>(out, d.target_max[i]);
  }
  for (auto group : d.groups) put<std::uint32_t>(out, group);
  for (auto target : d.targets) put<float>(out, target);
  return out;
}

std::string_view bytes_of(const std::vector<std::uint8_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size()};
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
  for (auto l : labels)
    if (l < n.size()) ++n[l];
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
  std::string out = encode_front(d);
  out += bytes_of(d.values);
  return out;
}

Result<Hash> write_dataset(const std::string& path, const Dataset& d) {
  ODT_TRY(write_file(path, {encode_front(d), bytes_of(d.values)}));
  return sha256_file(path);
}

Result<Dataset> decode_sample(std::string_view in, std::uint32_t sample) {
  Dataset d;
  Sizes s;
  ODT_ASSIGN(s, parse_header(in, d));
  const Layout l = layout_of(s);
  if (l.total != in.size())
    return bad(absl::StrCat("truncated or damaged: ", in.size(), " bytes; expected ", l.total));
  if (sample >= s.samples)
    return absl::OutOfRangeError(
        absl::StrCat("sample ", sample, "; the dataset has 0 to ", s.samples - 1));
  const auto n_classes = get<std::uint32_t>(in, 40);
  ODT_TRY(parse_text(in.substr(l.text, s.text), n_classes, s.groups, d));
  int split = 2;
  while (split > 0 && sample < d.first(static_cast<Split>(split))) --split;
  for (auto& count : d.counts) count = 0;
  d.counts[split] = 1;
  d.labels = array<std::uint8_t>(in, l.labels + sample, 1);
  d.source_index = array<std::uint32_t>(in, l.index + 4 * std::size_t{sample}, 1);
  if (s.groups > 0) d.groups = array<std::uint32_t>(in, l.groups + 4 * std::size_t{sample}, 1);
  d.targets = array<float>(in, l.targets + 4 * s.outputs * sample, s.outputs);
  const std::size_t bytes = s.sample_len * s.value_bytes;
  d.values = array<std::uint8_t>(in, l.values + bytes * sample, bytes);
  s.samples = 1;
  ODT_TRY(check_classes(n_classes, s, d));
  return d;
}

Result<Dataset> read_sample(const std::string& path, std::uint32_t sample) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about {};
  if (fd < 0 || ::fstat(fd, &about) != 0 || about.st_size == 0) {
    if (fd >= 0) ::close(fd);
    return absl::NotFoundError(path + ": cannot be read");
  }
  const auto size = static_cast<std::size_t>(about.st_size);
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  if (mapped == MAP_FAILED) return absl::InternalError(path + ": cannot be mapped");
  auto out = decode_sample({static_cast<const char*>(mapped), size}, sample);
  ::munmap(mapped, size);
  return out;
}

Result<Dataset> decode_dataset(std::string_view in) {
  Dataset d;
  Sizes s;
  ODT_ASSIGN(s, parse_header(in, d));
  const Layout l = layout_of(s);
  if (l.total != in.size())
    return bad(absl::StrCat("truncated or damaged: ", in.size(), " bytes; expected ", l.total));
  const auto n_classes = get<std::uint32_t>(in, 40);
  ODT_TRY(parse_text(in.substr(l.text, s.text), n_classes, s.groups, d));
  d.labels = array<std::uint8_t>(in, l.labels, s.samples);
  d.source_index = array<std::uint32_t>(in, l.index, s.samples);
  take_pairs(in, l.ranges, s.sample_len, d.feature_min, d.feature_max);
  take_pairs(in, l.target_ranges, s.outputs, d.target_min, d.target_max);
  if (s.groups > 0) d.groups = array<std::uint32_t>(in, l.groups, s.samples);
  d.targets = array<float>(in, l.targets, s.samples * s.outputs);
  d.values = array<std::uint8_t>(in, l.values, s.samples * s.sample_len * s.value_bytes);
  ODT_TRY(check_classes(n_classes, s, d));
  return d;
}

}  // namespace odt::data
