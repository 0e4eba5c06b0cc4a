#include "graph_models.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace odt::test {
namespace {

using compiler::kNoTensor;
using compiler::Layer;
using compiler::LayerKind;
using compiler::Network;
using compiler::Shape;

// Layers one behind the other; `from` goes back to an earlier tensor.
class Builder {
 public:
  Builder(const char* name, const Shape& input) : random_(17) {
    net_.name = name;
    net_.input_shape = input;
    compiler::Prequant p;
    p.name = "PREQUANT";
    p.offset = {0.0f};
    p.mult = {32};
    p.k = {0};
    net_.prequant = p;
    shapes_ = {input};
  }
  std::uint16_t at() const { return at_; }
  Builder& from(std::uint16_t tensor) {
    at_ = tensor;
    return *this;
  }
  Builder& conv(std::uint32_t filters, std::uint16_t kh, std::uint16_t kw, std::uint16_t stride,
                std::uint16_t pad, int k, std::uint16_t groups = 1, bool relu = true) {
    Layer l = next(LayerKind::kConv);
    const Shape& in = shapes_[at_];
    l.conv.k_h = kh;
    l.conv.k_w = kw;
    l.conv.stride_h = l.conv.stride_w = stride;
    l.conv.pad_t = l.conv.pad_b = kh > 1 ? pad : std::uint16_t{0};
    l.conv.pad_l = l.conv.pad_r = kw > 1 ? pad : std::uint16_t{0};
    l.conv.groups = groups;
    l.weight_shape = {filters, in[0] / groups, kh, kw};
    l.out_shape = {filters, (in[1] + 2u * l.conv.pad_t - kh) / stride + 1,
                   (in[2] + 2u * l.conv.pad_l - kw) / stride + 1};
    return compute(l, filters, k, relu);
  }
  Builder& linear(std::uint32_t outputs, int k, bool relu) {
    Layer l = next(LayerKind::kLinear);
    l.weight_shape = {shapes_[at_][0], outputs};
    l.out_shape = {outputs};
    return compute(l, outputs, k, relu);
  }
  Builder& pool(LayerKind kind, std::uint16_t kh, std::uint16_t kw) {
    Layer l = next(kind);
    const Shape& in = shapes_[at_];
    l.conv.k_h = l.conv.stride_h = kh;
    l.conv.k_w = l.conv.stride_w = kw;
    l.out_shape = {in[0], in[1] / kh, in[2] / kw};
    if (kind == LayerKind::kAvgPool) average(l, std::uint32_t{kh} * kw);
    return push(l);
  }
  Builder& gap() {
    Layer l = next(LayerKind::kGap);
    const Shape& in = shapes_[at_];
    l.out_shape = {in[0], 1, 1};
    average(l, in[1] * in[2]);
    return push(l);
  }
  Builder& flatten() {
    Layer l = next(LayerKind::kFlatten);
    l.out_shape = {static_cast<std::uint32_t>(compiler::count_of(shapes_[at_]))};
    return push(l);
  }
  Builder& add(std::uint16_t other, bool relu) {
    Layer l = next(LayerKind::kAdd);
    l.in1 = other;
    l.out_shape = shapes_[at_];
    l.offset = {1 << 20, 1 << 19};
    l.relu = relu;
    l.clip_lo = relu ? 0 : -128;
    l.clip_hi = relu ? 255 : 127;
    return push(l);
  }
  Builder& concat(std::uint16_t other) {
    Layer l = next(LayerKind::kConcat);
    l.in1 = other;
    l.out_shape = shapes_[at_];
    l.out_shape[0] += shapes_[other][0];
    l.clip_lo = 0;
    l.clip_hi = 255;
    return push(l);
  }
  Builder& resize(std::uint32_t h, std::uint32_t w) {
    Layer l = next(LayerKind::kResize);
    l.out_shape = {shapes_[at_][0], shapes_[at_][1] * h, shapes_[at_][2] * w};
    return push(l);
  }
  Network done() {
    if (net_.task == compiler::Task::kClassify) {
      net_.calibration.target_correct.assign(net_.n_classes(), 60);
      net_.calibration.target_wrong.assign(net_.n_classes(), -40);
    }
    return net_;
  }
  Network autoencoder() {
    net_.task = compiler::Task::kAutoencode;
    return done();
  }

 private:
  Layer next(LayerKind kind) {
    Layer l;
    l.kind = kind;
    l.name = "node " + std::to_string(net_.layers.size());
    l.in0 = at_;
    l.in_shape = shapes_[at_];
    return l;
  }
  Builder& compute(Layer& l, std::uint32_t outputs, int k, bool relu) {
    for (std::uint64_t i = 0; i < compiler::count_of(l.weight_shape); ++i)
      l.weights.push_back(static_cast<std::int16_t>(static_cast<int>(random_() % 81u) - 40));
    l.offset.assign(outputs, 1 << (k - 1));
    l.mult.assign(outputs, 1);
    l.k.assign(outputs, static_cast<std::uint8_t>(k));
    l.relu = relu;
    l.clip_lo = relu ? 0 : -128;
    l.clip_hi = relu ? 255 : 127;
    return push(l);
  }
  static void average(Layer& l, std::uint32_t area) {
    int k = 0;
    while ((1u << k) < area) ++k;
    l.mult = {static_cast<std::uint8_t>(std::lround(std::ldexp(64.0, k) / area))};
    l.k = {static_cast<std::uint8_t>(k + 6)};
    l.offset = {static_cast<std::int32_t>(area / 2)};
    l.clip_lo = 0;
    l.clip_hi = 255;
  }
  Builder& push(const Layer& l) {
    net_.layers.push_back(l);
    shapes_.push_back(l.out_shape);
    at_ = static_cast<std::uint16_t>(net_.layers.size());
    return *this;
  }

  Network net_;
  std::vector<Shape> shapes_;  // by tensor
  std::uint16_t at_ = 0;
  std::mt19937 random_;
};

Network time_series() {
  Builder b("conv gap linear", {1, 64, 1});
  b.conv(8, 7, 1, 2, 3, 7).conv(12, 5, 1, 2, 2, 7).gap().flatten().linear(3, 6, false);
  return b.done();
}

Network lenet() {
  Builder b("lenet", {1, 12, 12});
  b.conv(4, 3, 3, 1, 1, 7).pool(LayerKind::kMaxPool, 2, 2).conv(8, 3, 3, 1, 0, 8);
  b.pool(LayerKind::kMaxPool, 2, 2).flatten().linear(16, 8, true).linear(3, 7, false);
  return b.done();
}

Network mobile_net() {
  Builder b("mobilenet", {1, 12, 12});
  b.conv(6, 3, 3, 1, 1, 7).conv(6, 3, 3, 2, 1, 6, 6).conv(10, 1, 1, 1, 0, 6);
  b.conv(10, 3, 3, 1, 1, 6, 10).conv(12, 1, 1, 1, 0, 6).pool(LayerKind::kAvgPool, 3, 3);
  b.flatten().linear(3, 7, false);
  return b.done();
}

// conv -> [conv conv] + itself -> gap -> linear
Network residual() {
  Builder b("residual", {1, 12, 12});
  const auto fork = b.conv(6, 3, 3, 2, 1, 7).at();
  b.conv(6, 3, 3, 1, 1, 7).conv(6, 3, 3, 1, 1, 7, 1, false).add(fork, true);
  b.gap().flatten().linear(3, 6, false);
  return b.done();
}

// Both branches read what PREQUANT gives; a pool in front of one of them.
Network concat() {
  Builder b("concat", {1, 12, 12});
  const auto left = b.pool(LayerKind::kMaxPool, 2, 2).conv(4, 3, 3, 1, 1, 7).at();
  b.from(0).conv(6, 3, 3, 2, 1, 7).concat(left);
  const auto both = b.conv(8, 3, 3, 2, 1, 8).at();
  // A flatten of a tensor that others read as planes: it has a delta of its own.
  const auto flat = b.flatten().at();
  b.from(both).gap().flatten().concat(flat).linear(3, 8, false);
  return b.done();
}

Network autoencoder() {
  Builder b("autoencoder", {1, 12, 12});
  b.conv(6, 3, 3, 2, 1, 7).conv(4, 3, 3, 2, 1, 7).resize(2, 2).conv(6, 3, 3, 1, 1, 7);
  b.resize(2, 2).conv(1, 3, 3, 1, 1, 7, 1, false);
  return b.autoencoder();
}

}  // namespace

const std::vector<GraphModel>& graph_models() {
  static const std::vector<GraphModel> kModels = {
      {"time_series", time_series, {1, 2, 3}, {}}, {"lenet", lenet, {1, 2, 3, 4}, {}},
      {"mobile_net", mobile_net, {1, 3, 6}, {}},   {"residual", residual, {1, 3, 4}, {2}},
      {"concat", concat, {1, 2, 4}, {3}},          {"autoencoder", autoencoder, {1, 2, 4}, {}},
  };
  return kModels;
}

data::Dataset shapes_for(const compiler::Network& net, int train, int test) {
  std::mt19937 engine(9);
  const auto uniform = [&] { return static_cast<float>(engine() % 20001u) / 10000.0f - 1.0f; };
  data::Dataset d;
  d.dtype = data::Dtype::kF32;
  d.shape = net.input_shape;
  d.counts[0] = static_cast<std::uint32_t>(train);
  d.counts[2] = static_cast<std::uint32_t>(test);
  const bool classes = net.task == compiler::Task::kClassify;
  if (classes) d.class_names = {"rows", "columns", "flat"};
  const int h = static_cast<int>(net.input_shape[1]), w = static_cast<int>(net.input_shape[2]);
  for (int s = 0; s < train + test; ++s) {
    const int kind = s % 3;
    const float phase = 3.14f * uniform(), gain = 2.0f + uniform();
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) {
        const float along =
            kind == 0 ? static_cast<float>(y) : static_cast<float>(w > 1 ? x : 4 * y);
        float v = (kind == 2 ? 0.3f : gain) * std::sin(phase + along * (w > 1 ? 1.6f : 0.5f));
        v += 0.3f * uniform();
        std::uint8_t raw[4];
        std::memcpy(raw, &v, 4);
        d.values.insert(d.values.end(), raw, raw + 4);
      }
    d.labels.push_back(classes ? static_cast<std::uint8_t>(kind) : std::uint8_t{0});
    d.source_index.push_back(static_cast<std::uint32_t>(s));
  }
  data::measure_ranges(d);
  return d;
}

}  // namespace odt::test
