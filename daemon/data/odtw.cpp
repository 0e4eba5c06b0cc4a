#include "data/odtw.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>

namespace odt::data {
namespace {

class Reader {
 public:
  Reader(const std::string& bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Result<StoredWeights> run() {
    StoredWeights w;
    if (bytes_.size() < 44 || bytes_.compare(0, 4, "ODTW") != 0)
      return bad("not an odt_weights file (magic 'ODTW')");
    at_ = 4;
    if (const auto version = take<std::uint16_t>(); version != 1)
      return bad(absl::StrCat("odt_weights version ", version, "; expected 1"));
    w.rules_version = take<std::uint16_t>();
    w.rule_set = take<std::uint8_t>();
    const auto n_layers = take<std::uint8_t>();
    if (n_layers == 0) return bad("no layers");
    at_ += 2;
    std::copy_n(bytes_.begin() + 12, 32, reinterpret_cast<char*>(w.model_hash.bytes.data()));
    at_ = 44;
    for (std::size_t n = 0; n < n_layers; ++n) {
      w.layers.emplace_back();
      ODT_TRY(layer(n, w.layers.back()));
    }
    if (at_ != bytes_.size())
      return bad(absl::StrCat(bytes_.size() - at_, " bytes behind the last layer"));
    return w;
  }

 private:
  Status bad(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(file_, ": ", what));
  }
  template <typename T>
  T take() {
    T v;
    std::memcpy(&v, bytes_.data() + at_, sizeof v);
    at_ += sizeof v;
    return v;
  }
  // n values of T, zero-padded to 4.
  template <typename T, typename Out>
  bool values(std::uint64_t n, std::vector<Out>& out) {
    const std::uint64_t bytes = (n * sizeof(T) + 3) / 4 * 4;
    if (bytes > bytes_.size() - at_) return false;
    const std::size_t end = at_ + static_cast<std::size_t>(bytes);
    for (std::uint64_t i = 0; i < n; ++i) out.push_back(static_cast<Out>(take<T>()));
    at_ = end;
    return true;
  }

  Status layer(std::size_t n, StoredLayer& l) {
    const auto wrong = [&](const std::string& what) {
      return bad(absl::StrCat("layer ", n, ": ", what));
    };
    if (bytes_.size() - at_ < 20) return wrong("truncated");
    l.kind = take<std::uint8_t>();
    l.dtype = take<std::uint8_t>();
    l.k = take<std::int8_t>();
    const auto ndim = take<std::uint8_t>();
    std::uint16_t dims[4];
    for (auto& d : dims) d = take<std::uint16_t>();
    const auto n_weights = take<std::uint32_t>(), n_offsets = take<std::uint32_t>();
    if (l.kind != 2 && l.kind != 3)
      return wrong(absl::StrCat("kind ", l.kind, "; expected 2 or 3"));
    if (l.dtype != 1 && l.dtype != 3 && l.dtype != 4 && l.dtype != 5)
      return wrong(absl::StrCat("dtype ", l.dtype, "; expected 1, 3, 4 or 5"));
    if (!l.dfp16() && (l.k < 2 || l.k > 16 || (l.k > 8) != (l.dtype == 3)))
      return wrong(absl::StrCat("precision k ", l.k, " stored as dtype ", l.dtype));
    if (ndim > 4) return wrong(absl::StrCat(ndim, " dimensions"));
    l.shape.assign(dims, dims + ndim);
    std::uint64_t count = 1;
    for (auto d : l.shape) count *= d;
    if (n_weights != 0 && n_weights != count)
      return wrong(absl::StrCat(n_weights, " weights; its shape has ", count));
    const bool there = (l.dtype == 1 ? values<std::int8_t>(n_weights, l.values)
                                     : values<std::int16_t>(n_weights, l.values)) &&
                       values<std::int32_t>(n_offsets, l.offsets) &&
                       (!l.blocked() || values<std::int8_t>(n_offsets, l.exponents));
    return there ? absl::OkStatus() : wrong("truncated");
  }

  const std::string& bytes_;
  const std::string& file_;
  std::size_t at_ = 0;
};

class Writer {
 public:
  template <typename T>
  void put(T v) {
    char raw[sizeof v];
    std::memcpy(raw, &v, sizeof v);
    out.append(raw, sizeof v);
  }
  // As T, zero-padded to 4.
  template <typename T, typename In>
  void values(const std::vector<In>& in) {
    for (const In v : in) put(static_cast<T>(v));
    while (out.size() % 4 != 0) out.push_back('\0');
  }

  std::string out;
};

void write_layer(const StoredLayer& l, Writer& w) {
  w.put(l.kind);
  w.put(l.dtype);
  w.put(l.k);
  w.put(static_cast<std::uint8_t>(l.shape.size()));
  for (std::size_t i = 0; i < 4; ++i)
    w.put(static_cast<std::uint16_t>(i < l.shape.size() ? l.shape[i] : 0));
  w.put(static_cast<std::uint32_t>(l.values.size()));
  w.put(static_cast<std::uint32_t>(l.offsets.size()));
  if (l.dtype == 1)
    w.values<std::int8_t>(l.values);
  else
    w.values<std::int16_t>(l.values);
  w.values<std::int32_t>(l.offsets);
  if (l.blocked()) w.values<std::int8_t>(l.exponents);
}

}  // namespace

std::string weights_bytes(const StoredWeights& weights) {
  Writer w;
  w.out = "ODTW";
  w.put(std::uint16_t{1});
  w.put(weights.rules_version);
  w.put(weights.rule_set);
  w.put(static_cast<std::uint8_t>(weights.layers.size()));
  w.put(std::uint16_t{0});
  w.out += weights.model_hash.str();
  for (const StoredLayer& layer : weights.layers) write_layer(layer, w);
  return w.out;
}

Result<StoredWeights> parse_weights(const std::string& bytes, const std::string& file) {
  return Reader(bytes, file).run();
}

}  // namespace odt::data
