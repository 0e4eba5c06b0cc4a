#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "onnx_fixture.h"

// The nodes of a file one by one in float32, in loops as plain as can be.
namespace odt::test {
namespace {

using Tensors = std::map<std::string, FloatTensor>;
using I = std::int64_t;

I product(const Dims& d) {
  I n = 1;
  for (auto x : d) n *= x;
  return n;
}

std::size_t at(I n) { return static_cast<std::size_t>(n); }

FloatTensor to_tensor(const onnx::TensorProto& p) {
  FloatTensor t;
  t.dims.assign(p.dims().begin(), p.dims().end());
  if (p.data_type() == onnx::TensorProto::INT64) {
    for (auto v : p.int64_data()) t.v.push_back(static_cast<float>(v));
    for (std::size_t n = 0; n + 8 <= p.raw_data().size(); n += 8) {
      I v;
      std::memcpy(&v, p.raw_data().data() + n, 8);
      t.v.push_back(static_cast<float>(v));
    }
  } else if (p.has_raw_data()) {
    t.v.resize(p.raw_data().size() / 4);
    std::memcpy(t.v.data(), p.raw_data().data(), p.raw_data().size());
  } else {
    t.v.assign(p.float_data().begin(), p.float_data().end());
  }
  return t;
}

class NodeEvaluator {
 public:
  NodeEvaluator(const onnx::NodeProto& n, const Tensors& t) : n_(n), t_(t) {}

  FloatTensor run() const {
    const std::string& op = n_.op_type();
    if (op == "Constant") return to_tensor(attribute("value")->t());
    const FloatTensor& x = in(0);
    if (op == "Identity" || op == "Dropout" || op == "Cast") return x;
    if (op == "Add") return binary([](float a, float b) { return a + b; });
    if (op == "Sub") return binary([](float a, float b) { return a - b; });
    if (op == "Mul") return binary([](float a, float b) { return a * b; });
    if (op == "Div") return binary([](float a, float b) { return a / b; });
    if (op == "MatMul" || op == "Gemm") return linear();
    if (op == "Conv") return conv();
    if (op == "MaxPool" || op == "AveragePool") return pool(op == "MaxPool");
    if (op == "ReduceSum" || op == "ReduceMean" || op == "GlobalAveragePool") return reduce();
    if (op == "Concat") return concat();
    if (op == "Resize") return resize();
    if (op == "Pad") return pad();
    if (op == "Shape") return {{I(x.dims.size())}, {x.dims.begin(), x.dims.end()}};
    if (op == "Gather") return {in(1).dims, {x.v[at(I(in(1).v[0]))]}};  // of a list
    if (op == "Slice") return slice();
    FloatTensor y = x;
    if (op == "Flatten") y.dims = {1, product(x.dims)};
    if (op == "Reshape") y.dims = reshaped();
    if (op == "Squeeze" || op == "Unsqueeze") y.dims = unit_axes(op == "Unsqueeze");
    for (auto& v : y.v) {
      if (op == "Floor") v = std::floor(v);
      if (op == "Round") v = std::nearbyint(v);
      if (op == "Relu") v = std::max(v, 0.0f);
      if (op == "Clip") v = std::min(std::max(v, in(1).v[0]), in(2).v[0]);
    }
    static const std::vector<std::string> kLast = {"Floor",   "Round",   "Relu",    "Clip",
                                                   "Flatten", "Reshape", "Squeeze", "Unsqueeze"};
    if (std::find(kLast.begin(), kLast.end(), op) == kLast.end()) abort();
    return y;
  }

 private:
  const FloatTensor& in(int n) const { return t_.at(n_.input(n)); }
  bool has(int n) const { return n < n_.input_size() && !n_.input(n).empty(); }
  const onnx::AttributeProto* attribute(const std::string& key) const {
    for (const auto& a : n_.attribute())
      if (a.name() == key) return &a;
    return nullptr;
  }
  I number(const std::string& key, I absent) const {
    const auto* a = attribute(key);
    return a == nullptr ? absent : a->i();
  }
  I list(const std::string& key, int i, I absent) const {
    const auto* a = attribute(key);
    return a == nullptr ? absent : a->ints(i);
  }
  Dims axes(int input) const {
    Dims out;
    if (has(input))
      for (float v : in(input).v) out.push_back(I(v));
    else if (const auto* a = attribute("axes"))
      out.assign(a->ints().begin(), a->ints().end());
    return out;
  }

  template <typename Fn>
  FloatTensor binary(Fn fn) const {
    const FloatTensor &a = in(0), &b = in(1);
    FloatTensor y;
    const std::size_t rank = std::max(a.dims.size(), b.dims.size());
    const auto dim = [rank](const FloatTensor& t, std::size_t n) {
      return n + t.dims.size() < rank ? 1 : t.dims[n + t.dims.size() - rank];
    };
    for (std::size_t n = 0; n < rank; ++n) y.dims.push_back(std::max(dim(a, n), dim(b, n)));
    for (I flat = 0; flat < product(y.dims); ++flat) {
      I index[2] = {0, 0}, stride[2] = {1, 1}, rest = flat;
      for (std::size_t n = rank; n-- > 0;) {
        const I here = rest % y.dims[n];
        rest /= y.dims[n];
        for (int s = 0; s < 2; ++s) {
          const I size = dim(s == 0 ? a : b, n);
          if (size != 1) index[s] += here * stride[s];
          stride[s] *= size;
        }
      }
      y.v.push_back(fn(a.v[at(index[0])], b.v[at(index[1])]));
    }
    return y;
  }

  FloatTensor linear() const {
    const FloatTensor &x = in(0), &w = in(1);
    const bool trans = number("transB", 0) != 0;
    const I inputs = w.dims[trans ? 1 : 0], outputs = w.dims[trans ? 0 : 1];
    FloatTensor y{x.dims, {}};
    y.dims.back() = outputs;
    for (I o = 0; o < outputs; ++o) {
      float sum = 0;
      for (I i = 0; i < inputs; ++i)
        sum += x.v[at(i)] * w.v[at(trans ? o * inputs + i : i * outputs + o)];
      y.v.push_back(sum + (has(2) ? in(2).v[at(o)] : 0));
    }
    return y;
  }

  struct Axis {
    I in, kernel, stride, dilation, before, after, out;
  };
  // Axis n of the window, of a tensor [1,C,H,W] or [1,C,L].
  Axis axis(int n, I size, I kernel) const {
    const int spatial = static_cast<int>(in(0).dims.size()) - 2;
    if (n >= spatial) return {1, 1, 1, 1, 0, 0, 1};
    Axis a{size,
           kernel,
           list("strides", n, 1),
           list("dilations", n, 1),
           list("pads", n, 0),
           list("pads", n + spatial, 0),
           0};
    const I span = a.dilation * (kernel - 1) + 1;
    const auto* mode = attribute("auto_pad");
    if (mode != nullptr && mode->s() != "VALID") {
      const I pad = std::max<I>(0, ((size - 1) / a.stride) * a.stride + span - size);
      a.before = mode->s() == "SAME_UPPER" ? pad / 2 : pad - pad / 2;
      a.after = pad - a.before;
    }
    const I rest = size + a.before + a.after - span;
    a.out = (rest + (number("ceil_mode", 0) != 0 ? a.stride - 1 : 0)) / a.stride + 1;
    return a;
  }

  FloatTensor conv() const {
    const FloatTensor &x = in(0), &w = in(1);
    const bool plane = x.dims.size() == 4;
    const I groups = number("group", 1), per_group = w.dims[1], outs = w.dims[0];
    const Axis h = axis(0, x.dims[2], w.dims[2]);
    const Axis v = axis(1, plane ? x.dims[3] : 1, plane ? w.dims[3] : 1);
    FloatTensor y{{1, outs, h.out}, {}};
    if (plane) y.dims.push_back(v.out);
    for (I o = 0; o < outs; ++o)
      for (I r = 0; r < h.out; ++r)
        for (I c = 0; c < v.out; ++c) {
          float sum = has(2) ? in(2).v[at(o)] : 0;
          for (I i = 0; i < per_group; ++i)
            for (I a = 0; a < h.kernel; ++a)
              for (I b = 0; b < v.kernel; ++b) {
                const I yy = r * h.stride - h.before + a * h.dilation;
                const I xx = c * v.stride - v.before + b * v.dilation;
                if (yy < 0 || xx < 0 || yy >= h.in || xx >= v.in) continue;
                const I channel = o / (outs / groups) * per_group + i;
                sum += x.v[at((channel * h.in + yy) * v.in + xx)] *
                       w.v[at(((o * per_group + i) * h.kernel + a) * v.kernel + b)];
              }
          y.v.push_back(sum);
        }
    return y;
  }

  FloatTensor pool(bool max) const {
    const FloatTensor& x = in(0);
    const bool plane = x.dims.size() == 4;
    const Axis h = axis(0, x.dims[2], list("kernel_shape", 0, 1));
    const Axis v = axis(1, plane ? x.dims[3] : 1, plane ? list("kernel_shape", 1, 1) : 1);
    FloatTensor y{{1, x.dims[1], h.out}, {}};
    if (plane) y.dims.push_back(v.out);
    const bool all = number("count_include_pad", 0) != 0;
    for (I ch = 0; ch < x.dims[1]; ++ch)
      for (I r = 0; r < h.out; ++r)
        for (I c = 0; c < v.out; ++c) {
          float most = -std::numeric_limits<float>::infinity(), sum = 0;
          I seen = 0;
          for (I a = 0; a < h.kernel; ++a)
            for (I b = 0; b < v.kernel; ++b) {
              const I yy = r * h.stride - h.before + a, xx = c * v.stride - v.before + b;
              if (yy < 0 || xx < 0 || yy >= h.in || xx >= v.in) continue;
              const float value = x.v[at((ch * h.in + yy) * v.in + xx)];
              most = std::max(most, value);
              sum += value;
              ++seen;
            }
          y.v.push_back(max ? most : sum / static_cast<float>(all ? h.kernel * v.kernel : seen));
        }
    return y;
  }

  FloatTensor reduce() const {
    const FloatTensor& x = in(0);
    Dims over = n_.op_type() == "GlobalAveragePool" ? Dims{2, 3} : axes(1);
    for (auto& a : over) a = a < 0 ? a + I(x.dims.size()) : a;
    FloatTensor y;
    Dims kept;
    I size = 1;
    for (I n = 0; n < I(x.dims.size()); ++n) {
      const bool hit = std::find(over.begin(), over.end(), n) != over.end();
      kept.push_back(hit ? 1 : x.dims[at(n)]);
      if (hit) size *= x.dims[at(n)];
      if (!hit || number("keepdims", 1) != 0) y.dims.push_back(kept.back());
    }
    y.v.assign(at(product(kept)), 0);
    for (I flat = 0; flat < I(x.v.size()); ++flat) {
      I rest = flat, index = 0, stride = 1;
      for (std::size_t n = kept.size(); n-- > 0;) {
        if (kept[n] != 1) index += rest % x.dims[n] * stride;
        rest /= x.dims[n];
        stride *= kept[n];
      }
      y.v[at(index)] += x.v[at(flat)];
    }
    if (n_.op_type() != "ReduceSum")
      for (auto& v : y.v) v /= static_cast<float>(size);
    return y;
  }

  FloatTensor concat() const {
    const I axis = number("axis", 1);
    FloatTensor y{in(0).dims, {}};
    const std::size_t a = at(axis < 0 ? axis + I(y.dims.size()) : axis);
    const I outer = product(Dims(y.dims.begin(), y.dims.begin() + static_cast<std::ptrdiff_t>(a)));
    y.dims[a] = 0;
    for (int n = 0; n < n_.input_size(); ++n) y.dims[a] += in(n).dims[a];
    for (I o = 0; o < outer; ++o)
      for (int n = 0; n < n_.input_size(); ++n) {
        const I run = I(in(n).v.size()) / outer;
        for (I i = 0; i < run; ++i) y.v.push_back(in(n).v[at(o * run + i)]);
      }
    return y;
  }

  // Nearest, whole factors: each value several times.
  FloatTensor resize() const {
    const FloatTensor& x = in(0);
    FloatTensor y{x.dims, {}};
    for (std::size_t n = 2; n < 4; ++n)
      y.dims[n] = has(3) ? I(in(3).v[n]) : I(static_cast<float>(x.dims[n]) * in(2).v[n]);
    const I fh = y.dims[2] / x.dims[2], fw = y.dims[3] / x.dims[3];
    for (I c = 0; c < y.dims[1]; ++c)
      for (I r = 0; r < y.dims[2]; ++r)
        for (I w = 0; w < y.dims[3]; ++w)
          y.v.push_back(x.v[at((c * x.dims[2] + r / fh) * x.dims[3] + w / fw)]);
    return y;
  }

  FloatTensor pad() const {
    const FloatTensor &x = in(0), &p = in(1);
    FloatTensor y{x.dims, {}};
    for (std::size_t n = 0; n < 4; ++n) y.dims[n] += I(p.v[n]) + I(p.v[n + 4]);
    for (I c = 0; c < y.dims[1]; ++c)
      for (I r = 0; r < y.dims[2]; ++r)
        for (I w = 0; w < y.dims[3]; ++w) {
          const I yy = r - I(p.v[2]), xx = w - I(p.v[3]);
          const bool inside = yy >= 0 && xx >= 0 && yy < x.dims[2] && xx < x.dims[3];
          y.v.push_back(inside ? x.v[at((c * x.dims[2] + yy) * x.dims[3] + xx)] : 0);
        }
    return y;
  }

  FloatTensor slice() const {  // of a list
    FloatTensor y;
    const I n = I(in(0).v.size());
    for (I i = I(in(1).v[0]); i < std::min(n, I(in(2).v[0])); ++i) y.v.push_back(in(0).v[at(i)]);
    y.dims = {I(y.v.size())};
    return y;
  }

  Dims reshaped() const {
    Dims dims;
    for (auto v : in(1).v) dims.push_back(I(v));
    for (std::size_t n = 0; n < dims.size(); ++n)
      if (dims[n] == 0) dims[n] = in(0).dims[n];
    const I known = product(dims);
    for (auto& d : dims)
      if (d == -1) d = I(in(0).v.size()) / -known;
    return dims;
  }

  Dims unit_axes(bool insert) const {
    Dims dims = in(0).dims, hit = axes(1);
    const I rank = I(dims.size()) + (insert ? I(hit.size()) : 0);
    for (auto& a : hit) a = a < 0 ? a + rank : a;
    std::sort(hit.begin(), hit.end());
    if (insert)
      for (auto a : hit) dims.insert(dims.begin() + a, 1);
    else
      for (std::size_t n = hit.size(); n-- > 0;) dims.erase(dims.begin() + hit[n]);
    return dims;
  }

  const onnx::NodeProto& n_;
  const Tensors& t_;
};

}  // namespace

FloatTensor evaluate(const onnx::ModelProto& model, const std::vector<float>& input) {
  Tensors t;
  const auto& g = model.graph();
  FloatTensor in;
  for (const auto& d : g.input(0).type().tensor_type().shape().dim())
    in.dims.push_back(d.dim_value());
  in.v = input;
  t[g.input(0).name()] = in;
  for (const auto& p : g.initializer()) t[p.name()] = to_tensor(p);
  // Nodes may stand in any order.
  std::vector<bool> done(static_cast<std::size_t>(g.node_size()), false);
  for (bool more = true; more;) {
    more = false;
    for (int n = 0; n < g.node_size(); ++n) {
      const auto& node = g.node(n);
      const bool ready =
          std::all_of(node.input().begin(), node.input().end(),
                      [&](const std::string& name) { return name.empty() || t.contains(name); });
      if (done[static_cast<std::size_t>(n)] || !ready) continue;
      t[node.output(0)] = NodeEvaluator(node, t).run();
      done[static_cast<std::size_t>(n)] = more = true;
    }
  }
  return t.at(g.output(0).name());
}

}  // namespace odt::test
