#include "training/gavg.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace odt::training {
namespace {

constexpr std::size_t kHead = 64, kTensorBytes = 16, kOpBytes = 96;
constexpr unsigned kConv = 2, kLinear = 3, kTrainable = 2;

class Image {
 public:
  explicit Image(const std::string& bytes)
      : p_(reinterpret_cast<const unsigned char*>(bytes.data())), size_(bytes.size()) {}
  bool holds(std::uint64_t at, std::uint64_t n) const { return at <= size_ && n <= size_ - at; }
  unsigned u8(std::size_t at) const { return p_[at]; }
  int s8(std::size_t at) const { return static_cast<signed char>(p_[at]); }
  unsigned u16(std::size_t at) const { return p_[at] | p_[at + 1] << 8; }
  std::uint32_t u32(std::size_t at) const { return u16(at) | std::uint32_t{u16(at + 2)} << 16; }

 private:
  const unsigned char* p_;
  std::uint64_t size_;
};

}  // namespace

Result<Exponents> read_exponents(const std::string& bytes) {
  const Image image(bytes);
  if (!image.holds(0, kHead) || std::memcmp(bytes.data(), "ODTM", 4) != 0)
    return absl::InvalidArgumentError("not a model image (magic 'ODTM')");
  const unsigned n_tensors = image.u16(12), n_ops = image.u16(14);
  const std::uint32_t tensors = image.u32(20), ops = image.u32(24);
  if (n_ops == 0 || !image.holds(tensors, n_tensors * kTensorBytes) ||
      !image.holds(ops, n_ops * kOpBytes))
    return absl::InvalidArgumentError("model image: tables are cut off");
  const auto exponent = [&](unsigned tensor) {
    return tensor < n_tensors ? image.s8(tensors + tensor * kTensorBytes + 2) : 0;
  };
  Exponents out;
  for (unsigned i = 0; i < n_ops; ++i) {
    const std::size_t op = ops + i * kOpBytes;
    const unsigned kind = image.u8(op);
    if ((kind != kConv && kind != kLinear) || (image.u8(op + 1) & kTrainable) == 0) continue;
    out.layers.push_back({image.s8(op + 62), exponent(image.u16(op + 2)), image.u32(op + 20)});
  }
  out.logits = exponent(image.u16(ops + (n_ops - 1) * kOpBytes + 6));
  return out;
}

std::uint64_t gavg_q8(const model::LayerEpoch& r, const Exponents::Layer& layer, int logits,
                      model::LossKind loss, std::uint32_t batch) {
  const std::int64_t span = std::int64_t{r.w_max} - r.w_min;
  if (r.sum_n == 0 || layer.n_weights == 0 || batch == 0 || span <= 0 || r.k < 2 || r.k > 16)
    return 0;
  const double count = static_cast<double>(r.sum_n) * layer.n_weights * batch;
  const double unit = loss == model::LossKind::kCe ? 1.0 / 127 : std::ldexp(1.0, logits);
  const int e_d = std::clamp(r.e_d, -4096, 4096);
  const double g = std::ldexp(static_cast<double>(r.sum_abs_g) / count * unit, e_d + layer.input);
  const int grid = layer.weights - (static_cast<int>(r.k) - 8);
  const double eps = std::ldexp(static_cast<double>(span), grid) / ((1u << r.k) - 1);
  const double q8 = g / eps * 256;
  return q8 < 9e18 ? static_cast<std::uint64_t>(q8) : std::uint64_t{1} << 63;
}

}  // namespace odt::training
