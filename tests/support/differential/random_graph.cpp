#include "random_graph.h"

#include <algorithm>
#include <cmath>

namespace odt::testing {
namespace {

struct Range {
  int64_t lo, hi;
  int64_t magnitude() const { return std::max({-lo, hi, int64_t{1}}); }
};

Range dtype_range(DType t) {
  if (t == DType::kU8) return {0, 255};
  if (t == DType::kS8) return {-128, 127};
  return {-32767, 32767};
}

class Grower {
 public:
  Grower(Choices& c, const GraphLimits& limits) : c_(c), limits_(limits) {}

  NetSpec grow() {
    start();
    for (int i = c_.range(limits_.size > 2 ? 1 : 0, limits_.size); i > 0; i--) {
      if (net_.layers.size() > 40) break;
      if (limits_.graphs) {
        step(pick());
      } else {
        chain_step();
      }
    }
    finish();
    mark();
    return net_;
  }

 private:
  using Dims = std::vector<uint16_t>;

  size_t newest() const { return net_.layers.size(); }
  Dims dims(size_t t) const { return dims_[t]; }
  // A tensor that is read by nobody yet, more often than not the newest.
  size_t pick() {
    if (c_.chance(20)) return static_cast<size_t>(c_.range(0, static_cast<int>(newest())));
    std::vector<size_t> open = unread();
    if (open.size() > 1 && c_.chance(40)) {
      return open[static_cast<size_t>(c_.range(0, static_cast<int>(open.size()) - 1))];
    }
    return newest();
  }
  std::vector<size_t> unread() const {
    std::vector<size_t> open;
    for (size_t t = 0; t < reads_.size(); t++) {
      if (reads_[t] == 0) open.push_back(t);
    }
    return open;
  }
  uint16_t dim(int lo, int hi) { return static_cast<uint16_t>(c_.range(lo, std::max(lo, hi))); }

  void start() {
    net_.arith = limits_.dfp16 ? 1 : 0;
    if (limits_.tasks && c_.chance(25)) net_.task = static_cast<uint8_t>(c_.range(1, 2));
    if (limits_.task >= 0) net_.task = static_cast<uint8_t>(limits_.task);
    net_.input_dtype = c_.chance(50) && net_.task != 2 ? DType::kU8 : DType::kS8;
    if (limits_.dfp16 && c_.chance(40)) net_.input_dtype = DType::kS16;
    if (limits_.dfp16) {
      net_.input_exponent = static_cast<int8_t>(c_.range(-16, 0));
      net_.target_exponent = static_cast<int8_t>(c_.range(-10, 2));
      wild_ = c_.chance(8);
      if (wild_) net_.input_exponent = static_cast<int8_t>(c_.range(-100, 100));
    }
    int side = std::min(9, limits_.size + 2);
    net_.input_dims =
        c_.chance(70) ? Dims{dim(1, 4), dim(1, side), dim(1, side)} : Dims{dim(1, 4 * side)};
    dims_ = {net_.input_dims};
    ranges_ = {dtype_range(net_.input_dtype)};
    reads_ = {0};
    net_.n_classes = static_cast<uint16_t>(c_.range(2, 9));
    if (net_.task == 1) net_.n_classes = static_cast<uint16_t>(c_.range(1, 9));
    if (net_.task == 2) net_.n_classes = static_cast<uint16_t>(count(net_.input_dims));
    bool image = net_.input_dims.size() == 3;
    if (image && !limits_.dfp16 && net_.task != 2 && c_.chance(12)) add_prequant();
  }

  // Adds an op that reads a (and b); returns its output's number.
  size_t add(LayerSpec l, size_t a, int b = -1) {
    l.in0 = static_cast<int>(a);
    l.in1 = b;
    reads_[a]++;
    if (b >= 0) reads_[static_cast<size_t>(b)]++;
    bool same =
        l.kind == OpKind::kFlatten || l.kind == OpKind::kMaxPool || l.kind == OpKind::kResize;
    ranges_.push_back(same ? ranges_[a] : Range{l.clip_lo, l.clip_hi});
    if (limits_.dfp16) ranges_.back() = dtype_range(DType::kS16);
    dims_.push_back(output_dims(l, dims_[a], b >= 0 ? dims_[static_cast<size_t>(b)] : Dims{}));
    reads_.push_back(0);
    net_.layers.push_back(l);
    return newest();
  }

  void activation(LayerSpec& l, bool relu_too) {
    if (limits_.dfp16) {
      l.relu = relu_too && c_.chance(50);
      l.clip_lo = l.relu ? 0 : -32767;
      l.clip_hi = 32767;
      return;
    }
    l.relu = relu_too && c_.chance(50);
    int style = l.relu ? 3 : c_.range(0, 4);
    const int lo[] = {-255, -128, -1000, 0, -20}, hi[] = {255, 127, 700, 255, 90};
    l.clip_lo = lo[style];
    l.clip_hi = hi[style];
  }

  void fill_weights(LayerSpec& l, uint32_t fan_in, Range x) {
    std::mt19937 g(c_.word());
    auto in = [&](int64_t lo, int64_t hi) {
      return lo + static_cast<int64_t>(g() % static_cast<uint64_t>(hi - lo + 1));
    };
    size_t n = size_t{fan_in} * l.outputs;
    int style = c_.range(0, 9), top = limits_.dfp16 ? 32767 : 127;
    int64_t magnitude = c_.range(1, 5) * top / 5;
    for (size_t i = 0; i < n; i++) {
      int64_t w = in(-magnitude, magnitude);
      if (style == 1 && in(0, 3) != 0) w = 0;
      if (style == 2) w = in(0, 1) ? top : -top;
      if (!limits_.dfp16 && in(0, 49) == 0) w = -128;
      if (limits_.dfp16) {
        l.weights16.push_back(static_cast<int16_t>(w));
      } else {
        l.weights.push_back(static_cast<int8_t>(w));
      }
    }
    if (limits_.dfp16) return fill_dfp(l, g);
    double spread = std::sqrt(fan_in) * static_cast<double>(magnitude * x.magnitude()) / 3.5;
    int k = std::max(0, static_cast<int>(std::log2(std::max(1.0, spread / 60))) + c_.range(-1, 1));
    if (c_.chance(4)) k = c_.range(0, 31);  // far from what suits the values
    bool uneven = c_.chance(30), mult = c_.chance(25);
    for (uint32_t o = 0; o < l.outputs; o++) {
      l.k.push_back(static_cast<int8_t>(std::min<int64_t>(31, k + (uneven ? in(0, 3) : 0))));
      int64_t span = int64_t{40} << std::min(k, 20);
      l.offsets.push_back(static_cast<int32_t>(in(-span, span)));
      if (mult) l.mult.push_back(static_cast<uint8_t>(in(1, in(0, 5) == 0 ? 255 : 6)));
    }
  }

  void fill_dfp(LayerSpec& l, std::mt19937& g) {
    l.e_w = static_cast<int8_t>(c_.range(-18, -8));
    l.e_b = static_cast<int8_t>(c_.chance(80) ? c_.range(-28, -14) : c_.range(-60, 10));
    if (wild_) l.e_w = static_cast<int8_t>(c_.range(-100, 100));
    if (wild_) l.e_b = static_cast<int8_t>(c_.range(-100, 100));
    for (uint32_t o = 0; o < l.outputs; o++) {
      l.offsets.push_back(static_cast<int32_t>(g()) >> (g() % 31));
    }
  }

  void add_prequant() {
    LayerSpec l;
    l.kind = OpKind::kPrequant;
    activation(l, false);
    l.outputs = net_.input_dims[0];
    for (uint32_t o = 0; o < l.outputs; o++) {
      l.prequant_mult.push_back(static_cast<int16_t>(c_.range(-300, 300)));
      l.offsets.push_back(c_.range(-20000, 20000));
      l.k.push_back(static_cast<int8_t>(c_.range(0, 10)));
    }
    add(l, 0);
  }

  LayerSpec conv(const Dims& in, bool same_shape) {
    LayerSpec l;
    l.kind = OpKind::kConv2d;
    if (in[0] % 2 == 0 && c_.chance(40)) l.groups = c_.chance(40) ? in[0] : 2;
    l.outputs = static_cast<uint32_t>(l.groups * c_.range(1, l.groups > 2 ? 1 : 3));
    auto axis = [&](int size, uint16_t& k, uint16_t& stride, uint16_t& lo, uint16_t& hi,
                    uint16_t& dil) {
      k = dim(1, std::min(4, size));
      stride = dim(1, 3);
      lo = c_.chance(50) ? dim(0, 3) : uint16_t{0};
      hi = c_.chance(50) ? dim(0, 3) : uint16_t{0};
      dil = c_.chance(25) ? 2 : 1;
      if (dil * (k - 1) + 1 > size + lo + hi) dil = 1;
    };
    axis(in[1], l.k_h, l.stride_h, l.pad_t, l.pad_b, l.dil_h);
    axis(in[2], l.k_w, l.stride_w, l.pad_l, l.pad_r, l.dil_w);
    if (!same_shape) return l;
    l.groups = 1;
    l.outputs = in[0];
    l.k_h = l.k_w = c_.chance(50) ? 3 : 1;
    l.stride_h = l.stride_w = l.dil_h = l.dil_w = 1;
    l.pad_t = l.pad_b = l.pad_l = l.pad_r = l.k_h / 2;
    return l;
  }

  size_t add_conv(size_t t, bool same_shape = false) {
    LayerSpec l = conv(dims(t), same_shape);
    activation(l, true);
    fill_weights(l, static_cast<uint32_t>(dims(t)[0] / l.groups * l.k_h * l.k_w), ranges_[t]);
    return add(l, t);
  }

  size_t add_linear(size_t t, uint32_t outputs, bool last) {
    LayerSpec l;
    l.outputs = outputs;
    if (!last || limits_.dfp16) activation(l, !last);
    fill_weights(l, dims(t)[0], ranges_[t]);
    return add(l, t);
  }

  size_t add_flatten(size_t t) {
    LayerSpec l;
    l.kind = OpKind::kFlatten;
    return add(l, t);
  }

  size_t add_pool(size_t t, OpKind kind) {
    LayerSpec l;
    l.kind = kind;
    Dims d = dims(t);
    auto axis = [&](int size, uint16_t& k, uint16_t& stride, uint16_t& lo, uint16_t& hi) {
      k = dim(1, std::min(3, size));
      stride = dim(1, 3);
      lo = c_.chance(30) ? dim(0, k - 1) : uint16_t{0};
      hi = c_.chance(30) ? dim(0, k - 1) : uint16_t{0};
    };
    if (kind != OpKind::kGap) {
      axis(d[1], l.k_h, l.stride_h, l.pad_t, l.pad_b);
      axis(d[2], l.k_w, l.stride_w, l.pad_l, l.pad_r);
    }
    if (kind == OpKind::kMaxPool) return add(l, t);
    activation(l, false);
    if (limits_.dfp16) return add(l, t);
    int area = kind == OpKind::kGap ? d[1] * d[2] : l.k_h * l.k_w;
    l.outputs = c_.chance(50) ? 1 : d[0];
    for (uint32_t o = 0; o < l.outputs; o++) {
      int k = c_.range(4, 12), mult = std::max(1, (1 << k) / area + c_.range(-1, 1));
      while (mult > 255) {
        mult /= 2;
        k--;
      }
      l.k.push_back(static_cast<int8_t>(k));
      l.mult.push_back(static_cast<uint8_t>(std::max(1, mult)));
      l.offsets.push_back(c_.range(-60, 60));
    }
    if (c_.chance(20)) l.mult.clear();
    return add(l, t);
  }

  size_t add_add(size_t a, size_t b) {
    LayerSpec l;
    l.kind = OpKind::kAdd;
    activation(l, true);
    if (!limits_.dfp16) {
      l.outputs = 2;
      for (int i = 0; i < 2; i++) {
        // One draw a statement: operands have no order.
        int32_t m = c_.range(1, 40);
        m *= 1 << c_.range(10, 16);
        m += c_.range(0, 200);
        if (c_.chance(5)) m = 1 << c_.range(0, 30);
        if (c_.chance(3)) {
          m = c_.range(-2, 0);
          m *= -(1 << c_.range(0, 20));
        }
        l.offsets.push_back(m);
      }
    }
    return add(l, a, static_cast<int>(b));
  }

  size_t add_concat(size_t a, size_t b) {
    LayerSpec l;
    l.kind = OpKind::kConcat;
    l.clip_lo = static_cast<int32_t>(std::min(ranges_[a].lo, ranges_[b].lo));
    l.clip_hi = static_cast<int32_t>(std::max(ranges_[a].hi, ranges_[b].hi));
    if (limits_.dfp16) activation(l, false);
    return add(l, a, static_cast<int>(b));
  }

  size_t add_resize(size_t t) {
    LayerSpec l;
    l.kind = OpKind::kResize;
    l.out_h = dim(1, 2 * dims(t)[1]);
    l.out_w = dim(1, 2 * dims(t)[2]);
    return add(l, t);
  }

  // A partner of the same shape (first dimension apart for CONCAT); often the tensor itself.
  size_t partner(size_t t, bool concat) {
    std::vector<size_t> fit;
    for (size_t i = 0; i <= newest(); i++) {
      Dims d = dims(i);
      if (concat && d.size() == dims(t).size()) d[0] = dims(t)[0];
      if (d == dims(t) && i != t) fit.push_back(i);
    }
    if (fit.empty() || c_.chance(10)) return t;
    return fit[static_cast<size_t>(c_.range(0, static_cast<int>(fit.size()) - 1))];
  }

  void step(size_t t) {
    if (dims(t).size() == 1) {
      int what = c_.range(0, 9);
      if (what < 6) {
        add_linear(t, dim(1, 3 * limits_.size), false);
      } else if (what < 8) {
        add_add(t, partner(t, false));
      } else if (dims(t)[0] < 200) {
        add_concat(t, partner(t, true));
      }
      return;
    }
    int what = c_.range(0, 15);
    if (what < 5) add_conv(t);
    if (what == 5 || what == 6) add_add(add_conv(t, true), t);
    if (what == 7) add_pool(t, OpKind::kMaxPool);
    if (what == 8) add_pool(t, OpKind::kAvgPool);
    if (what == 9) add_pool(t, OpKind::kGap);
    if (what == 10) add_add(t, partner(t, false));
    if (what == 11 || what == 12) {
      if (dims(t)[0] < 12) add_concat(t, partner(t, true));
    }
    if (what == 13 && count(dims(t)) < 400) add_resize(t);
    if (what == 14) add_flatten(t);
    if (what == 15) {
      size_t a = add_conv(t), b = add_conv(t);
      if (dims(a) == dims(b)) add_add(a, b);
    }
  }

  void chain_step() {
    size_t t = newest();
    if (dims(t).size() == 1) {
      add_linear(t, dim(1, 24), false);
    } else if (c_.chance(70)) {
      add_conv(t);
    } else {
      add_flatten(t);
    }
  }

  // Joins what nobody reads and ends in the logits.
  void finish() {
    std::vector<size_t> open = unread();
    size_t t = open.back();
    auto flat = [&](size_t u) {
      if (dims(u).size() == 1) return u;
      if (limits_.graphs && (count(dims(u)) > 300 || c_.chance(20))) {
        u = add_pool(u, OpKind::kGap);
      }
      return add_flatten(u);
    };
    t = flat(t);
    open.pop_back();
    for (size_t u : open) t = add_concat(t, flat(u));
    t = add_linear(t, net_.n_classes, true);
    if (limits_.graphs && c_.chance(10)) tail(t);
    for (int i = 0; i < net_.n_classes && net_.task == 0; i++) {
      net_.target_correct.push_back(static_cast<int8_t>(c_.range(10, 100)));
      net_.target_wrong.push_back(static_cast<int8_t>(c_.range(-40, 10)));
    }
    net_.ce_scale = static_cast<uint16_t>(net_.task == 0 ? c_.range(1, 600) : 0);
  }

  // Logits that another op than LINEAR makes.
  void tail(size_t t) {
    LayerSpec l;
    l.kind = OpKind::kAdd;
    if (limits_.dfp16) activation(l, false);
    if (!limits_.dfp16) {
      l.outputs = 2;
      l.offsets = {c_.range(1, 1 << 20), c_.range(1, 1 << 20)};
    }
    size_t twin = add_linear(static_cast<size_t>(net_.layers.back().in0), net_.n_classes, true);
    add(l, t, static_cast<int>(twin));
  }

  void mark() {
    std::vector<size_t> compute;
    int percent = c_.range(20, 100);
    for (size_t i = 0; i < net_.layers.size(); i++) {
      LayerSpec& l = net_.layers[i];
      if (l.kind != OpKind::kConv2d && l.kind != OpKind::kLinear) continue;
      compute.push_back(i);
      l.trainable = c_.chance(percent);
      l.offsets_only = l.trainable && limits_.offsets_only && c_.chance(15);
    }
    int n = 0;
    for (size_t i = compute.size(); i-- > 0;) {
      if (net_.layers[compute[i]].trainable && ++n > 16) net_.layers[compute[i]].trainable = false;
      if (!net_.layers[compute[i]].trainable) net_.layers[compute[i]].offsets_only = false;
    }
    if (n == 0) net_.layers[compute.back()].trainable = true;
  }

  Choices& c_;
  GraphLimits limits_;
  NetSpec net_;
  bool wild_ = false;  // DFP16 with exponents at their limits
  std::vector<Dims> dims_;
  std::vector<Range> ranges_;
  std::vector<int> reads_;
};

}  // namespace

NetSpec random_graph(Choices& c, const GraphLimits& limits) { return Grower(c, limits).grow(); }

std::string describe_net(const NetSpec& net) {
  static const char* const kNames[] = {"?",       "prequant", "conv",    "linear",
                                       "flatten", "maxpool",  "avgpool", "gap",
                                       "add",     "concat",   "resize"};
  std::vector<std::vector<uint16_t>> dims = tensor_dims(net);
  std::string out = "task " + std::to_string(net.task) + "\n";
  for (size_t i = 0; i < net.layers.size(); i++) {
    const LayerSpec& l = net.layers[i];
    out += "  t" + std::to_string(i + 1) + " = " + kNames[static_cast<int>(l.kind)] + "(t" +
           std::to_string(first_input(net, i));
    if (l.in1 >= 0) out += ", t" + std::to_string(l.in1);
    out += ")";
    for (uint16_t d : dims[i + 1]) out += " " + std::to_string(d);
    if (l.relu) out += " relu";
    if (l.trainable) out += l.offsets_only ? " offsets-only" : " trainable";
    out += "\n";
  }
  return out;
}

GraphSamples random_graph_samples(Choices& c, const NetSpec& net, int n) {
  GraphSamples set;
  set.dtype = net.input_dtype;
  set.flags = net.task == 1 ? 1 : 0;
  std::mt19937 g(c.word());
  Range range = dtype_range(net.input_dtype);
  int quiet = c.chance(30) ? 1 + static_cast<int>(g() % 5) : 0;  // some sets are of small values
  for (int i = 0; i < n; i++) {
    Values v, target;
    bool sparse = g() % 10 == 0;
    for (uint32_t j = 0; j < count(net.input_dims); j++) {
      int64_t x =
          range.lo + static_cast<int64_t>(g() % static_cast<uint64_t>(range.hi - range.lo + 1));
      if (sparse || g() % 5 == 0) x = 0;
      v.push_back(x / (1 << quiet));
    }
    for (int j = 0; j < net.n_classes; j++) {
      target.push_back(static_cast<int64_t>(g() % 256) - 128);
    }
    set.values.push_back(v);
    set.targets.push_back(target);
    set.labels.push_back(net.task == 0 ? static_cast<int>(g() % net.n_classes) : 0);
  }
  return set;
}

GraphSamples frozen_samples(const NetSpec& net, const GraphSamples& set, DType dtype,
                            const std::vector<Values>& values) {
  GraphSamples out = set;
  out.dtype = dtype;
  out.values = values;
  out.flags = static_cast<uint8_t>(2 | (net.task != 0 ? 1 : 0));
  // An autoencoder's inputs are not there any more: its targets are.
  if (net.task == 2) out.targets = set.values;
  return out;
}

std::vector<uint8_t> value_bytes(DType dtype, const Values& values) {
  std::vector<uint8_t> out;
  for (int64_t v : values) {
    out.push_back(static_cast<uint8_t>(v));
    if (dtype == DType::kS16) out.push_back(static_cast<uint8_t>(v >> 8));
  }
  return out;
}

std::vector<uint8_t> samples_blob(const GraphSamples& set, const std::vector<int>& which) {
  std::vector<int8_t> labels;
  std::vector<uint8_t> data;
  for (int i : which) {
    auto at = static_cast<size_t>(i);
    if (set.flags & 1) {
      for (int64_t t : set.targets[at]) labels.push_back(static_cast<int8_t>(t));
    } else {
      labels.push_back(static_cast<int8_t>(set.labels[at]));
    }
    std::vector<uint8_t> bytes = value_bytes(set.dtype, set.values[at]);
    data.insert(data.end(), bytes.begin(), bytes.end());
  }
  return build_samples(set.dtype, static_cast<uint32_t>(set.values[0].size()),
                       static_cast<uint32_t>(which.size()), set.flags, labels, data);
}

}  // namespace odt::testing
