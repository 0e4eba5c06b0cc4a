#include "compiler/image_writer.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>

namespace odt::compiler {
namespace {

constexpr std::size_t kHeaderBytes = 64, kTensorBytes = 16, kOpBytes = 96;
constexpr std::size_t kNameBytes = 16, kOpNameBytes = 32;
constexpr std::uint8_t kFlagRelu = 1, kFlagTrainable = 2;

class Writer {
 public:
  explicit Writer(const Network& net) : net_(net) {}

  Result<std::string> run() {
    if (net_.layers.size() > 64)
      return absl::OutOfRangeError(
          absl::StrCat("the model has ", net_.layers.size(), " operators; at most 64"));
    const std::size_t n_ops = net_.layers.size(), n_tensors = n_ops + 1;
    const std::size_t tensors = kHeaderBytes, ops = tensors + n_tensors * kTensorBytes;
    out_.assign(ops + n_ops * kOpBytes, '\0');
    header(n_tensors, n_ops, tensors, ops);
    ODT_TRY(tensor(tensors, network_input().in_shape, net_.input_storage));
    set<std::int8_t>(tensors + 2, net_.input_exponent);
    for (std::size_t n = 0; n < n_ops; ++n) {
      const Layer& l = net_.layers[n];
      ODT_TRY(tensor(tensors + (n + 1) * kTensorBytes, l.out_shape,
                     storage_of_tensor(net_, static_cast<std::uint16_t>(n + 1))));
      if (net_.arithmetic == Arithmetic::kInteger)
        set<std::int8_t>(tensors + (n + 1) * kTensorBytes + 2, l.e_out);
      op(ops + n * kOpBytes, n, l);
    }
    if (net_.arithmetic == Arithmetic::kDfp16)
      set<std::int8_t>(tensors + n_ops * kTensorBytes + 2, net_.target_exponent);
    const Calibration& c = net_.calibration;
    if (!c.target_correct.empty()) {
      set<std::uint32_t>(28, section(c.target_correct));
      set<std::uint32_t>(32, section(c.target_wrong));
    }
    set<std::uint32_t>(8, static_cast<std::uint32_t>(out_.size()));
    return std::move(out_);
  }

 private:
  template <typename T>
  void set(std::size_t at, T value) {
    std::memcpy(out_.data() + at, &value, sizeof value);
  }
  void set_name(std::size_t at, std::size_t size, const std::string& name) {
    std::memcpy(out_.data() + at, name.data(), std::min(size, name.size()));
  }

  // Appends values, padded to 4; their offset.
  template <typename T>
  std::uint32_t section(const std::vector<T>& values) {
    const auto at = static_cast<std::uint32_t>(out_.size());
    out_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    out_.append((4 - out_.size() % 4) % 4, '\0');
    return at;
  }

  // The first layer that reads tensor 0.
  const Layer& network_input() const {
    return *std::find_if(net_.layers.begin(), net_.layers.end(),
                         [](const Layer& l) { return l.in0 == 0; });
  }

  void header(std::size_t n_tensors, std::size_t n_ops, std::size_t tensors, std::size_t ops) {
    const auto n_layers = std::count_if(net_.layers.begin(), net_.layers.end(),
                                        [](const Layer& l) { return l.trainable; });
    std::memcpy(out_.data(), "ODTM", 4);
    set<std::uint16_t>(4, 1);
    set<std::uint16_t>(6, kHeaderBytes);
    set<std::uint16_t>(12, static_cast<std::uint16_t>(n_tensors));
    set<std::uint16_t>(14, static_cast<std::uint16_t>(n_ops));
    set<std::uint16_t>(16, static_cast<std::uint16_t>(n_layers));
    set<std::uint16_t>(18, static_cast<std::uint16_t>(net_.n_classes()));
    set<std::uint32_t>(20, static_cast<std::uint32_t>(tensors));
    set<std::uint32_t>(24, static_cast<std::uint32_t>(ops));
    set<std::uint16_t>(36, net_.calibration.ce_scale);
    set<std::uint8_t>(38, static_cast<std::uint8_t>(net_.task));
    set<std::uint8_t>(39, static_cast<std::uint8_t>(net_.arithmetic));
    set<std::uint32_t>(40, net_.calibration.src_correct);
    set<std::uint32_t>(44, net_.calibration.src_total);
    set_name(48, kNameBytes, net_.name);
  }

  Status tensor(std::size_t at, const Shape& shape, Storage storage) {
    if (count_of(shape) > 65535)
      return absl::OutOfRangeError(
          absl::StrCat("a tensor of ", count_of(shape), " values per sample; at most 65535"));
    set<std::uint8_t>(at, static_cast<std::uint8_t>(storage));
    set<std::uint8_t>(at + 1, static_cast<std::uint8_t>(shape.size()));
    for (std::size_t n = 0; n < shape.size(); ++n)
      set<std::uint16_t>(at + 4 + 2 * n, static_cast<std::uint16_t>(shape[n]));
    set<std::uint32_t>(at + 12, static_cast<std::uint32_t>(count_of(shape)));
    return absl::OkStatus();
  }

  void op(std::size_t at, std::size_t index, const Layer& l) {
    set<std::uint8_t>(at, static_cast<std::uint8_t>(l.kind));
    set<std::uint8_t>(at + 1, static_cast<std::uint8_t>((l.relu ? kFlagRelu : 0) |
                                                        (l.trainable ? kFlagTrainable : 0)));
    set<std::uint16_t>(at + 2, l.in0);
    set<std::uint16_t>(at + 4, l.in1);
    set<std::uint16_t>(at + 6, static_cast<std::uint16_t>(index + 1));
    set_name(at + 64, kOpNameBytes, shown(l.name));
    set<std::int32_t>(at + 8, l.clip_lo);
    set<std::int32_t>(at + 12, l.clip_hi);
    if (!l.weights.empty()) {
      set<std::uint32_t>(
          at + 16, net_.arithmetic == Arithmetic::kDfp16
                       ? section(l.weights)
                       : section(std::vector<std::int8_t>(l.weights.begin(), l.weights.end())));
      set<std::uint32_t>(at + 20, static_cast<std::uint32_t>(l.weights.size()));
    }
    if (!l.offset.empty()) {
      set<std::uint32_t>(at + 24, section(l.offset));
      set<std::uint32_t>(at + 28, l.n_out());
    }
    if (!l.k.empty()) set<std::uint32_t>(at + 32, section(l.k));
    if (std::any_of(l.mult.begin(), l.mult.end(), [](auto m) { return m != 1; }))
      set<std::uint32_t>(at + 36, section(l.mult));
    set<std::int8_t>(at + 62, l.e_w);
    set<std::int8_t>(at + 63, l.e_b);
    const bool pool = l.kind == LayerKind::kMaxPool || l.kind == LayerKind::kAvgPool;
    if (l.kind != LayerKind::kConv && !pool) return;
    const ConvGeometry& g = l.conv;
    const std::uint16_t fields[] = {g.k_h,   g.k_w,   g.stride_h, g.stride_w, g.pad_t, g.pad_l,
                                    g.pad_b, g.pad_r, g.dil_h,    g.dil_w,    g.groups};
    for (std::size_t n = 0; n < (pool ? 8 : std::size(fields)); ++n)
      set(at + 40 + 2 * n, fields[n]);
  }

  const Network& net_;
  std::string out_;
};

}  // namespace

Result<std::string> write_image(const Network& net) { return Writer(net).run(); }

}  // namespace odt::compiler
