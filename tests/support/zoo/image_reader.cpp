#include "image_reader.h"

#include <cstring>

namespace odt::testing {
namespace {

class Reader {
 public:
  explicit Reader(const std::string& image) : image_(image) {}

  template <class T>
  T at(size_t where) const {
    T v{};
    std::memcpy(&v, image_.data() + where, sizeof v);
    return v;
  }
  // A section named by the offset that stands at `where`; empty where that is 0.
  template <class T>
  std::vector<T> section(size_t where, size_t n) const {
    const auto from = at<uint32_t>(where);
    std::vector<T> out(from == 0 ? 0 : n);
    if (!out.empty()) std::memcpy(out.data(), image_.data() + from, out.size() * sizeof(T));
    return out;
  }
  std::vector<uint16_t> dims(size_t tensor) const {
    std::vector<uint16_t> out;
    for (size_t i = 0; i < at<uint8_t>(tensor + 1); i++)
      out.push_back(at<uint16_t>(tensor + 4 + 2 * i));
    return out;
  }

 private:
  const std::string& image_;
};

void read_window(const Reader& r, size_t at, LayerSpec& l) {
  uint16_t* fields[] = {&l.k_h,   &l.k_w,   &l.stride_h, &l.stride_w, &l.pad_t, &l.pad_l,
                        &l.pad_b, &l.pad_r, &l.dil_h,    &l.dil_w,    &l.groups};
  const size_t n = l.kind == OpKind::kConv2d ? 11 : 8;
  for (size_t i = 0; i < n; i++) *fields[i] = r.at<uint16_t>(at + 40 + 2 * i);
}

LayerSpec read_op(const Reader& r, size_t at, size_t tensors, bool dfp16) {
  LayerSpec l;
  l.kind = static_cast<OpKind>(r.at<uint8_t>(at));
  const auto flags = r.at<uint8_t>(at + 1);
  l.relu = flags & 1;
  l.trainable = flags & 2;
  l.offsets_only = flags & 4;
  l.in0 = r.at<uint16_t>(at + 2);
  const auto in1 = r.at<uint16_t>(at + 4);
  l.in1 = in1 == 0xFFFF ? -1 : in1;
  l.clip_lo = r.at<int32_t>(at + 8);
  l.clip_hi = r.at<int32_t>(at + 12);
  const auto n_weights = r.at<uint32_t>(at + 20);
  if (dfp16)
    l.weights16 = r.section<int16_t>(at + 16, n_weights);
  else
    l.weights = r.section<int8_t>(at + 16, n_weights);
  l.outputs = r.at<uint32_t>(at + 28);
  l.offsets = r.section<int32_t>(at + 24, l.outputs);
  l.k = r.section<int8_t>(at + 32, l.outputs);
  l.mult = r.section<uint8_t>(at + 36, l.outputs);
  l.e_w = r.at<int8_t>(at + 62);
  l.e_b = r.at<int8_t>(at + 63);
  if (l.kind == OpKind::kConv2d || l.kind == OpKind::kMaxPool || l.kind == OpKind::kAvgPool)
    read_window(r, at, l);
  if (l.kind == OpKind::kResize) {
    const auto out = r.dims(tensors + 16u * r.at<uint16_t>(at + 6));
    l.out_h = out[1];
    l.out_w = out[2];
  }
  return l;
}

}  // namespace

NetSpec read_image(const std::string& image) {
  const Reader r(image);
  NetSpec net;
  const auto tensors = r.at<uint32_t>(20), ops = r.at<uint32_t>(24);
  net.n_classes = r.at<uint16_t>(18);
  net.target_correct = r.section<int8_t>(28, net.n_classes);
  net.target_wrong = r.section<int8_t>(32, net.n_classes);
  net.ce_scale = r.at<uint16_t>(36);
  net.task = r.at<uint8_t>(38);
  net.arith = r.at<uint8_t>(39);
  net.input_dtype = static_cast<DType>(r.at<uint8_t>(tensors));
  net.input_exponent = r.at<int8_t>(tensors + 2);
  net.input_dims = r.dims(tensors);
  const size_t n_tensors = r.at<uint16_t>(12), n_ops = r.at<uint16_t>(14);
  net.target_exponent = r.at<int8_t>(tensors + 16 * (n_tensors - 1) + 2);
  for (size_t i = 0; i < n_ops; i++)
    net.layers.push_back(read_op(r, ops + 96 * i, tensors, net.arith == 1));
  return net;
}

}  // namespace odt::testing
