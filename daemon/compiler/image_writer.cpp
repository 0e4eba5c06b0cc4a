#include "compiler/image_writer.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>

namespace odt::compiler {
namespace {

constexpr std::size_t kHeaderBytes = 64, kTensorBytes = 16, kOpBytes = 96;
constexpr std::size_t kNameBytes = 16, kOpNameBytes = 32;
constexpr std::uint8_t kOpConv = 2, kOpLinear = 3, kOpFlatten = 4;
constexpr std::uint8_t kFlagRelu = 1, kFlagTrainable = 2;
constexpr std::uint16_t kNoTensor = 0xFFFF;

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
    Storage storage = net_.input_storage;
    ODT_TRY(tensor(tensors, net_.layers[0].in_shape, storage));
    for (std::size_t n = 0; n < n_ops; ++n) {
      const Layer& l = net_.layers[n];
      if (l.is_compute()) storage = storage_of(l.clip_lo, l.clip_hi);
      ODT_TRY(tensor(tensors + (n + 1) * kTensorBytes, l.out_shape, storage));
      op(ops + n * kOpBytes, n, l);
    }
    const Calibration& c = net_.calibration;
    set<std::uint32_t>(28, section(c.target_correct.data(), c.target_correct.size()));
    set<std::uint32_t>(32, section(c.target_wrong.data(), c.target_wrong.size()));
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

  // Appends data, padded to 4; its offset.
  std::uint32_t section(const void* data, std::size_t bytes) {
    const auto at = static_cast<std::uint32_t>(out_.size());
    out_.append(static_cast<const char*>(data), bytes);
    out_.append((4 - out_.size() % 4) % 4, '\0');
    return at;
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
    const std::uint8_t kind = l.kind == LayerKind::kConv     ? kOpConv
                              : l.kind == LayerKind::kLinear ? kOpLinear
                                                             : kOpFlatten;
    set<std::uint8_t>(at, kind);
    set<std::uint8_t>(at + 1, static_cast<std::uint8_t>((l.relu ? kFlagRelu : 0) |
                                                        (l.trainable ? kFlagTrainable : 0)));
    set<std::uint16_t>(at + 2, static_cast<std::uint16_t>(index));
    set<std::uint16_t>(at + 4, kNoTensor);
    set<std::uint16_t>(at + 6, static_cast<std::uint16_t>(index + 1));
    set_name(at + 64, kOpNameBytes, shown(l.name));
    if (!l.is_compute()) return;
    set<std::int32_t>(at + 8, l.clip_lo);
    set<std::int32_t>(at + 12, l.clip_hi);
    set<std::uint32_t>(at + 16, section(l.weights.data(), l.weights.size()));
    set<std::uint32_t>(at + 20, static_cast<std::uint32_t>(l.weights.size()));
    set<std::uint32_t>(at + 24, section(l.offset.data(), 4 * l.offset.size()));
    set<std::uint32_t>(at + 28, l.n_out());
    set<std::uint32_t>(at + 32, section(l.k.data(), l.k.size()));
    if (std::any_of(l.mult.begin(), l.mult.end(), [](auto m) { return m != 1; }))
      set<std::uint32_t>(at + 36, section(l.mult.data(), l.mult.size()));
    if (l.kind != LayerKind::kConv) return;
    const ConvGeometry& g = l.conv;
    const std::uint16_t fields[] = {g.k_h,   g.k_w,   g.stride_h, g.stride_w, g.pad_t, g.pad_l,
                                    g.pad_b, g.pad_r, g.dil_h,    g.dil_w,    g.groups};
    for (std::size_t n = 0; n < std::size(fields); ++n) set(at + 40 + 2 * n, fields[n]);
  }

  const Network& net_;
  std::string out_;
};

}  // namespace

Result<std::string> write_image(const Network& net) { return Writer(net).run(); }

}  // namespace odt::compiler
