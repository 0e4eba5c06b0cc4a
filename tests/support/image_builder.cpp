#include "image_builder.h"

#include <algorithm>
#include <cstring>

namespace odt::testing {
namespace {

class Writer {
 public:
  explicit Writer(size_t head) : bytes_(head) {}

  template <class T>
  void put(size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  template <class T>
  uint32_t add(const std::vector<T>& values) {
    auto at = static_cast<uint32_t>(bytes_.size());
    bytes_.resize((at + values.size() * sizeof(T) + 3) & ~size_t{3});
    if (!values.empty()) std::memcpy(bytes_.data() + at, values.data(), values.size() * sizeof(T));
    return at;
  }
  uint32_t reserve(size_t n) { return add(std::vector<uint8_t>(n)); }
  void text(size_t at, const std::string& s, size_t limit) {
    std::memcpy(bytes_.data() + at, s.data(), std::min(s.size(), limit));
  }
  std::vector<uint8_t> take() { return std::move(bytes_); }
  size_t size() const { return bytes_.size(); }

 private:
  std::vector<uint8_t> bytes_;
};

void put_tensor(Writer& w, size_t at, DType dtype, const std::vector<uint16_t>& dims,
                int8_t exponent) {
  w.put(at, static_cast<uint8_t>(dtype));
  w.put(at + 1, static_cast<uint8_t>(dims.size()));
  w.put(at + 2, exponent);
  for (size_t i = 0; i < dims.size(); i++) w.put(at + 4 + 2 * i, dims[i]);
  w.put(at + 12, count(dims));
}

void put_constants(Writer& w, size_t at, const LayerSpec& l, bool dfp16) {
  if (!l.weights16.empty()) {
    w.put(at + 16, w.add(l.weights16));
    w.put(at + 20, static_cast<uint32_t>(l.weights16.size()));
  } else if (!l.weights.empty()) {
    w.put(at + 16, w.add(l.weights));
    w.put(at + 20, static_cast<uint32_t>(l.weights.size()));
  }
  if (!l.offsets.empty()) w.put(at + 24, w.add(l.offsets));
  w.put(at + 28, l.outputs);
  if (!l.k.empty() && !dfp16) w.put(at + 32, w.add(l.k));
  if (l.kind == OpKind::kPrequant) {
    w.put(at + 36, w.add(l.prequant_mult));
  } else if (!l.mult.empty() && !dfp16) {
    w.put(at + 36, w.add(l.mult));
  }
}

void put_op(Writer& w, size_t at, const NetSpec& net, size_t number) {
  const LayerSpec& l = net.layers[number];
  w.put(at, static_cast<uint8_t>(l.kind));
  w.put(at + 1,
        static_cast<uint8_t>((l.relu ? 1 : 0) | (l.trainable ? 2 : 0) | (l.offsets_only ? 4 : 0)));
  w.put(at + 2, static_cast<uint16_t>(first_input(net, number)));
  w.put(at + 4, static_cast<uint16_t>(l.in1));
  w.put(at + 6, static_cast<uint16_t>(number + 1));
  w.text(at + 64, l.name, 32);
  if (l.kind == OpKind::kFlatten) return;
  w.put(at + 8, l.clip_lo);
  w.put(at + 12, l.clip_hi);
  w.put(at + 62, l.e_w);
  w.put(at + 63, l.e_b);
  put_constants(w, at, l, net.arith == 1);
  bool conv = l.kind == OpKind::kConv2d;
  if (!conv && l.kind != OpKind::kMaxPool && l.kind != OpKind::kAvgPool) return;
  const uint16_t shape[11] = {l.k_h,   l.k_w,   l.stride_h, l.stride_w, l.pad_t, l.pad_l,
                              l.pad_b, l.pad_r, l.dil_h,    l.dil_w,    l.groups};
  for (size_t i = 0; i < (conv ? 11u : 8u); i++) w.put(at + 40 + 2 * i, shape[i]);
}

}  // namespace

uint32_t count(const std::vector<uint16_t>& dims) {
  uint32_t n = 1;
  for (uint16_t d : dims) n *= d;
  return n;
}

DType storage(const LayerSpec& layer, DType input) {
  if (layer.kind == OpKind::kFlatten || layer.kind == OpKind::kMaxPool ||
      layer.kind == OpKind::kResize) {
    return input;
  }
  if (layer.clip_lo >= 0 && layer.clip_hi <= 255) return DType::kU8;
  return layer.clip_lo >= -128 && layer.clip_hi <= 127 ? DType::kS8 : DType::kS16;
}

std::vector<uint16_t> output_dims(const LayerSpec& l, const std::vector<uint16_t>& in,
                                  const std::vector<uint16_t>& in1) {
  std::vector<uint16_t> out = in;
  switch (l.kind) {
    case OpKind::kFlatten:
      return {static_cast<uint16_t>(count(in))};
    case OpKind::kLinear:
      return {static_cast<uint16_t>(l.outputs)};
    case OpKind::kPrequant:
    case OpKind::kAdd:
      return in;
    case OpKind::kGap:
      return {in[0], 1, 1};
    case OpKind::kConcat:
      out[0] = static_cast<uint16_t>(in[0] + in1[0]);
      return out;
    case OpKind::kResize:
      return {in[0], l.out_h, l.out_w};
    case OpKind::kConv2d:
      out[0] = static_cast<uint16_t>(l.outputs);
      break;
    case OpKind::kMaxPool:
    case OpKind::kAvgPool:
      break;
  }
  int h = (in[1] + l.pad_t + l.pad_b - l.dil_h * (l.k_h - 1) - 1) / l.stride_h + 1;
  int w = (in[2] + l.pad_l + l.pad_r - l.dil_w * (l.k_w - 1) - 1) / l.stride_w + 1;
  return {out[0], static_cast<uint16_t>(h), static_cast<uint16_t>(w)};
}

size_t first_input(const NetSpec& net, size_t i) {
  int in0 = net.layers[i].in0;
  return in0 < 0 ? i : static_cast<size_t>(in0);
}

std::vector<std::vector<uint16_t>> tensor_dims(const NetSpec& net) {
  std::vector<std::vector<uint16_t>> dims{net.input_dims};
  for (size_t i = 0; i < net.layers.size(); i++) {
    int in1 = net.layers[i].in1;
    dims.push_back(output_dims(net.layers[i], dims[first_input(net, i)],
                               in1 < 0 ? std::vector<uint16_t>{} : dims[static_cast<size_t>(in1)]));
  }
  return dims;
}

std::vector<DType> tensor_dtypes(const NetSpec& net) {
  std::vector<DType> types{net.input_dtype};
  for (size_t i = 0; i < net.layers.size(); i++) {
    types.push_back(net.arith == 1 ? DType::kS16
                                   : storage(net.layers[i], types[first_input(net, i)]));
  }
  return types;
}

std::vector<uint8_t> build_image(const NetSpec& net) {
  Writer w(64);
  size_t n_ops = net.layers.size();
  uint32_t tensors = w.reserve(16 * (n_ops + 1)), ops = w.reserve(96 * n_ops);
  std::vector<std::vector<uint16_t>> dims = tensor_dims(net);
  std::vector<DType> types = tensor_dtypes(net);
  for (size_t i = 0; i <= n_ops; i++) {
    int8_t exponent = i == 0 ? net.input_exponent : i == n_ops ? net.target_exponent : int8_t{0};
    put_tensor(w, tensors + 16 * i, types[i], dims[i], exponent);
  }
  uint16_t trainable = 0;
  for (size_t i = 0; i < n_ops; i++) {
    put_op(w, ops + 96 * i, net, i);
    if (net.layers[i].trainable) trainable++;
  }
  w.text(0, "ODTM", 4);
  w.put(4, uint16_t{1});
  w.put(6, uint16_t{64});
  w.put(12, static_cast<uint16_t>(n_ops + 1));
  w.put(14, static_cast<uint16_t>(n_ops));
  w.put(16, trainable);
  w.put(18, net.n_classes);
  w.put(20, tensors);
  w.put(24, ops);
  if (!net.target_correct.empty()) {
    w.put(28, w.add(net.target_correct));
    w.put(32, w.add(net.target_wrong));
  }
  w.put(36, net.ce_scale);
  w.put(38, net.task);
  w.put(39, net.arith);
  w.put(40, net.src_correct);
  w.put(44, net.src_total);
  w.text(48, net.name, 16);
  w.put(8, static_cast<uint32_t>(w.size()));
  return w.take();
}

std::vector<uint8_t> build_samples(DType dtype, uint32_t sample_len, uint32_t samples,
                                   uint8_t flags, const std::vector<int8_t>& labels,
                                   const std::vector<uint8_t>& data) {
  Writer w(16);
  w.text(0, "ODTS", 4);
  w.put(4, uint16_t{1});
  w.put(6, static_cast<uint8_t>(dtype));
  w.put(7, flags);
  w.put(8, samples);
  w.put(12, sample_len);
  w.add(labels);
  std::vector<uint8_t> out = w.take();
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

std::vector<uint8_t> build_samples(DType dtype, uint32_t sample_len,
                                   const std::vector<int8_t>& labels,
                                   const std::vector<uint8_t>& data) {
  return build_samples(dtype, sample_len, static_cast<uint32_t>(labels.size()), 0, labels, data);
}

}  // namespace odt::testing
