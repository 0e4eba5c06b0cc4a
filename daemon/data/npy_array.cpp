#include "data/npy_array.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace odt::data {
namespace {

constexpr std::size_t kBlock = std::size_t{4} << 20;
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 33;

// The header is a Python dict of three known keys; nothing else is read of the language.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : text_(text) {}
  // What stands behind 'key': up to the end; empty: not there.
  std::string_view after(const std::string& key) const {
    for (const char quote : {'\'', '"'}) {
      const std::string quoted = absl::StrCat(std::string(1, quote), key, std::string(1, quote));
      const auto at = text_.find(quoted);
      if (at == std::string_view::npos) continue;
      auto rest = text_.substr(at + quoted.size());
      const auto start = rest.find_first_not_of(" :");
      return start == std::string_view::npos ? std::string_view() : rest.substr(start);
    }
    return {};
  }

 private:
  std::string_view text_;
};

struct Header {
  char kind = 0;
  std::size_t bytes = 0;
  bool big_endian = false, fortran = false;
  std::vector<std::uint64_t> dims;
};

Status parse_descr(std::string_view text, Header& h) {
  const auto refuse = [&](std::string_view got) {
    std::string shown;
    for (char c : got.substr(0, 24)) shown += c >= ' ' && c < 127 ? c : '?';
    return absl::InvalidArgumentError(
        absl::StrCat("dtype ", shown,
                     " is not supported; expected numbers (b1, i1..i8, u1..u8, "
                     "f2..f8) or text (S, U)"));
  };
  if (text.empty() || (text[0] != '\'' && text[0] != '"')) return refuse(text);
  const auto end = text.find(text[0], 1);
  if (end == std::string_view::npos || end < 4) return refuse(text);
  const std::string_view descr = text.substr(1, end - 1);
  if (std::string_view("<>|=").find(descr[0]) == std::string_view::npos) return refuse(descr);
  h.big_endian = descr[0] == '>';
  h.kind = descr[1];
  std::uint32_t n;
  if (!absl::SimpleAtoi(std::string(descr.substr(2)), &n)) return refuse(descr);
  const bool numeric = (std::string_view("iu").find(h.kind) != std::string_view::npos &&
                        (n == 1 || n == 2 || n == 4 || n == 8)) ||
                       (h.kind == 'f' && (n == 2 || n == 4 || n == 8)) || (h.kind == 'b' && n == 1);
  const bool text_kind = (h.kind == 'S' || h.kind == 'U') && n >= 1 && n <= 1024;
  if (!numeric && !text_kind) return refuse(descr);
  h.bytes = h.kind == 'U' ? 4 * std::size_t{n} : n;
  return absl::OkStatus();
}

Status parse_shape(std::string_view text, Header& h) {
  const Status bad = absl::InvalidArgumentError("its header has no shape");
  const auto end = text.find(')');
  if (text.empty() || text[0] != '(' || end == std::string_view::npos) return bad;
  std::uint64_t elements = 1;
  std::string_view rest = text.substr(1, end - 1);
  while (rest.find_first_not_of(" ,") != std::string_view::npos) {
    rest.remove_prefix(rest.find_first_not_of(" ,"));
    const auto stop = std::min(rest.find_first_of(" ,"), rest.size());
    std::uint64_t n;
    if (!absl::SimpleAtoi(std::string(rest.substr(0, stop)), &n) || h.dims.size() == 8) return bad;
    rest.remove_prefix(stop);
    h.dims.push_back(n);
    if (n > kMaxElements || (elements *= n) > kMaxElements)
      return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxElements, " values"));
  }
  return absl::OkStatus();
}

Result<Header> parse_header(std::string_view text) {
  const HeaderText header(text);
  Header h;
  ODT_TRY(parse_descr(header.after("descr"), h));
  ODT_TRY(parse_shape(header.after("shape"), h));
  const auto order = header.after("fortran_order");
  if (!order.starts_with("True") && !order.starts_with("False"))
    return absl::InvalidArgumentError("its header has no fortran_order");
  h.fortran = order.starts_with("True") && h.dims.size() > 1;
  return h;
}

template <typename T>
T load_as(const char* at) {
  T v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

float half_to_float(std::uint16_t h) {
  const int exponent = h >> 10 & 31, fraction = h & 1023;
  const float sign = (h & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31)
    return fraction == 0 ? sign * HUGE_VALF : std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), -24)
                              : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return sign * magnitude;
}

void append_utf8(std::uint32_t c, std::string& out) {
  if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) c = 0xFFFD;
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int tail = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  const int lead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(lead[tail] | (c >> (6 * tail)));
  for (int i = tail - 1; i >= 0; --i) out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3F));
}

}  // namespace

Result<NpyArray> NpyArray::open(FileRange file, std::string name) {
  const auto fault = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", what));
  };
  unsigned char head[12] = {};
  if (file.size() < 10) return fault("not an NPY file (its magic is missing)");
  ODT_TRY(file.read(0, head, 10));
  if (std::memcmp(head, "\x93NUMPY", 6) != 0)
    return fault("not an NPY file (its magic is missing)");
  if (head[6] < 1 || head[6] > 3)
    return fault(absl::StrCat("NPY version ", static_cast<int>(head[6]), "; expected 1 to 3"));
  std::uint64_t start = 10, length = head[8] | head[9] << 8;
  if (head[6] > 1) {
    if (file.size() < 12) return fault("truncated inside the header");
    ODT_TRY(file.read(10, head + 10, 2));
    length |= std::uint64_t{head[10]} << 16 | std::uint64_t{head[11]} << 24;
    start = 12;
  }
  if (length > 65536 || start + length > file.size()) return fault("truncated inside the header");
  std::string text(length, '\0');
  ODT_TRY(file.read(start, text.data(), length));
  const auto h = parse_header(text);
  if (!h.ok()) return fault(std::string(h.status().message()));
  std::uint64_t bytes = h->bytes;
  for (auto n : h->dims) bytes *= n;
  if (file.size() - start - length != bytes)
    return fault(absl::StrCat(file.size() - start - length, " bytes of values; expected ", bytes,
                              " by its header (truncated?)"));
  NpyArray a;
  a.data_ = file.part(start + length, bytes);
  a.name_ = std::move(name);
  a.dims_ = h->dims;
  a.kind_ = h->kind;
  a.bytes_ = h->bytes;
  a.big_endian_ = h->big_endian;
  a.fortran_ = h->fortran;
  return a;
}

std::uint64_t NpyArray::row_len() const {
  std::uint64_t n = 1;
  for (std::size_t i = 1; i < dims_.size(); ++i) n *= dims_[i];
  return n;
}

// In Fortran order the first index runs fastest: one read gives the same element of many rows.
Status NpyArray::load(std::uint64_t row) {
  if (row >= first_ && row < first_ + held_) return absl::OkStatus();
  const std::uint64_t len = row_len(), row_bytes = std::max<std::uint64_t>(len * bytes_, 1);
  const std::uint64_t n = std::min(rows() - row, std::max<std::uint64_t>(kBlock / row_bytes, 1));
  block_.resize(n * row_bytes);
  first_ = row;
  held_ = n;
  if (!fortran_) return data_.read(row * row_bytes, block_.data(), n * len * bytes_);
  std::string column(n * bytes_, '\0');
  for (std::uint64_t i = 0; i < len; ++i) {
    // Place of C-order element i among the columns of the file.
    std::uint64_t rest = i, at = 0;
    for (std::size_t d = dims_.size(); d-- > 1; rest /= dims_[d]) {
      std::uint64_t stride = 1;
      for (std::size_t e = 1; e < d; ++e) stride *= dims_[e];
      at += rest % dims_[d] * stride;
    }
    ODT_TRY(data_.read((at * rows() + row) * bytes_, column.data(), column.size()));
    for (std::uint64_t r = 0; r < n; ++r)
      std::memcpy(block_.data() + r * row_bytes + i * bytes_, column.data() + r * bytes_, bytes_);
  }
  return absl::OkStatus();
}

std::uint64_t NpyArray::bits(const char* at) const {
  char raw[8] = {};
  std::memcpy(raw, at, bytes_);
  if (big_endian_) std::reverse(raw, raw + bytes_);
  const auto v = load_as<std::uint64_t>(raw);
  const auto shift = static_cast<int>(64 - 8 * bytes_);
  return kind_ == 'i' ? static_cast<std::uint64_t>(static_cast<std::int64_t>(v << shift) >> shift)
                      : v;
}

float NpyArray::value(const char* at) const {
  const std::uint64_t v = bits(at);
  if (kind_ == 'i') return static_cast<float>(static_cast<std::int64_t>(v));
  if (!is_float()) return static_cast<float>(v);
  const char* raw = reinterpret_cast<const char*>(&v);
  return bytes_ == 2   ? half_to_float(load_as<std::uint16_t>(raw))
         : bytes_ == 4 ? load_as<float>(raw)
                       : static_cast<float>(load_as<double>(raw));
}

Status NpyArray::read(std::uint64_t row, std::vector<float>& values) {
  ODT_TRY(load(row));
  const std::uint64_t len = row_len();
  values.resize(len);
  const char* at = block_.data() + (row - first_) * len * bytes_;
  for (std::uint64_t i = 0; i < len; ++i) values[i] = value(at + i * bytes_);
  return absl::OkStatus();
}

std::string NpyArray::element_text(const char* at) const {
  std::string out;
  if (kind_ == 'S') {
    out.assign(at, bytes_);
    out.resize(out.find_last_not_of('\0') + 1);
    return out;
  }
  for (std::size_t i = 0; i < bytes_; i += 4) {
    auto c = load_as<std::uint32_t>(at + i);
    if (big_endian_) c = __builtin_bswap32(c);
    if (c == 0) break;
    append_utf8(c, out);
  }
  return out;
}

Result<std::string> NpyArray::text(std::uint64_t row) {
  ODT_TRY(load(row));
  const char* at = block_.data() + (row - first_) * bytes_;
  if (is_text()) return element_text(at);
  if (kind_ == 'i') return absl::StrCat(static_cast<std::int64_t>(bits(at)));
  if (!is_float()) return absl::StrCat(bits(at));
  const float v = value(at);
  if (v == std::floor(v) && std::abs(v) < 1e9f) return absl::StrCat(static_cast<std::int64_t>(v));
  return absl::StrCat(v);
}

}  // namespace odt::data
