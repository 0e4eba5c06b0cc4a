#include "compiler/geometry.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>

namespace odt::compiler {
namespace {

Status bad_attribute(const Graph& graph, const Node& node, const std::string& what) {
  return absl::InvalidArgumentError(where(graph, node) + what);
}
Status unsupported_attribute(const Graph& graph, const Node& node, const std::string& what) {
  return absl::UnimplementedError(where(graph, node) + what);
}

std::string attribute_text(const Node& node, const std::string& key, const std::string& absent) {
  const auto it = node.attributes.find(key);
  return it == node.attributes.end() ? absent : it->second.s;
}

// One axis of a window, before it has the width of the image's fields.
struct Axis {
  std::int64_t in = 1, kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
  std::int64_t span() const { return dilation * (kernel - 1) + 1; }
  std::int64_t out() const { return (in + before + after - span()) / stride + 1; }
};

Status read_axis(const Graph& graph, const Node& node, std::size_t n, std::size_t spatial,
                 Axis& a) {
  const auto take = [&](const char* key, std::size_t at, std::size_t size, std::int64_t lo,
                        std::int64_t& to) -> Status {
    const auto v = node.ints(key);
    if (v.empty()) return absl::OkStatus();
    if (v.size() != size || v[at] < lo || v[at] > 255)
      return bad_attribute(graph, node,
                           absl::StrCat(key, " [", absl::StrJoin(v, ","), "]; expected ", size,
                                        " values in ", lo, "..255"));
    to = v[at];
    return absl::OkStatus();
  };
  ODT_TRY(take("strides", n, spatial, 1, a.stride));
  ODT_TRY(take("dilations", n, spatial, 1, a.dilation));
  ODT_TRY(take("pads", n, 2 * spatial, 0, a.before));
  ODT_TRY(take("pads", spatial + n, 2 * spatial, 0, a.after));
  return absl::OkStatus();
}

Status auto_pad(const Graph& graph, const Node& node, Axis& a) {
  const std::string mode = attribute_text(node, "auto_pad", "NOTSET");
  if (mode.empty() || mode == "NOTSET") return absl::OkStatus();
  if (mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER")
    return unsupported_attribute(graph, node,
                                 absl::StrCat("auto_pad ", shown(mode),
                                              "; supported: NOTSET, VALID, SAME_UPPER, "
                                              "SAME_LOWER"));
  a.before = a.after = 0;
  if (mode == "VALID") return absl::OkStatus();
  const std::int64_t out = (a.in + a.stride - 1) / a.stride;
  const std::int64_t pad = std::max<std::int64_t>(0, (out - 1) * a.stride + a.span() - a.in);
  a.before = mode == "SAME_UPPER" ? pad / 2 : pad - pad / 2;
  a.after = pad - a.before;
  return absl::OkStatus();
}

// Sizes rounded up: one window more where it starts within the data.
Status ceil_mode(const Graph& graph, const Node& node, Axis& a) {
  if (node.integer("ceil_mode", 0) == 0) return absl::OkStatus();
  const std::int64_t rest = a.in + a.before + a.after - a.span();
  const std::int64_t out = (rest + a.stride - 1) / a.stride + 1, start = (out - 1) * a.stride;
  if (rest < 0 || start >= a.in + a.before || start + a.span() <= a.in + a.before + a.after)
    return absl::OkStatus();
  if (node.op != "MaxPool")
    return unsupported_attribute(
        graph, node, "ceil_mode 1 with a window beyond the padding; supported: ceil_mode 0");
  a.after = start + a.span() - a.in - a.before;
  return absl::OkStatus();
}

Result<Axis> window_axis(const Graph& graph, const Node& node, std::int64_t in, std::int64_t kernel,
                         std::size_t n, std::size_t spatial) {
  Axis a;
  a.in = in;
  a.kernel = kernel;
  if (n < spatial) ODT_TRY(read_axis(graph, node, n, spatial, a));
  if (node.op != "Conv" && a.dilation != 1)
    return unsupported_attribute(graph, node, absl::StrCat("dilation ", a.dilation, " of a pool"));
  if (n < spatial) ODT_TRY(auto_pad(graph, node, a));
  if (a.in + a.before + a.after < a.span())
    return bad_attribute(
        graph, node,
        absl::StrCat("its window of ", a.span(), " is larger than its padded input of ",
                     a.in + a.before + a.after));
  if (n < spatial) ODT_TRY(ceil_mode(graph, node, a));
  if (a.before > 255 || a.after > 255)
    return bad_attribute(graph, node,
                         absl::StrCat("padding ", std::max(a.before, a.after), "; at most 255"));
  return a;
}

// Scale and size of an axis as Resize and Upsample give them.
struct Stretch {
  double scale = 1;
  std::int64_t in = 1, out = 1;
};

// The input that an output copies, by the node's attributes.
std::int64_t source(const Stretch& s, std::int64_t o, const std::string& transform,
                    const std::string& nearest) {
  double x = static_cast<double>(o) / s.scale;
  const auto in = static_cast<double>(s.in), out = static_cast<double>(s.out);
  if (transform == "half_pixel" || (transform == "pytorch_half_pixel" && s.out > 1))
    x = (static_cast<double>(o) + 0.5) / s.scale - 0.5;
  else if (transform == "pytorch_half_pixel")
    x = 0;
  else if (transform == "align_corners")
    x = s.out > 1 ? static_cast<double>(o) * (in - 1) / (out - 1) : 0;
  double y = std::floor(x);
  if (nearest == "ceil") y = std::ceil(x);
  if (nearest == "round_prefer_floor") y = std::ceil(x - 0.5);
  if (nearest == "round_prefer_ceil") y = std::floor(x + 0.5);
  return static_cast<std::int64_t>(std::clamp(y, 0.0, in - 1));
}

}  // namespace

Result<Window> read_window(const Graph& graph, const Node& node, const Shape& in,
                           const std::vector<std::int64_t>& kernel, std::size_t spatial) {
  if (in.size() != 3)
    return bad_attribute(
        graph, node, absl::StrCat("its input is [", absl::StrJoin(in, ","), "]; expected [C,H,W]"));
  std::vector<std::int64_t> size = kernel.empty() ? node.ints("kernel_shape") : kernel;
  if (kernel.empty() && size.size() != spatial)
    return bad_attribute(
        graph, node, absl::StrCat("kernel_shape of ", size.size(), " values; expected ", spatial));
  size.resize(2, 1);
  for (const auto k : size)
    if (k < 1 || k > 255)
      return bad_attribute(
          graph, node,
          absl::StrCat("kernel ", absl::StrJoin(size, "x"), "; expected 1..255 each way"));
  Axis h, w;
  ODT_ASSIGN(h, window_axis(graph, node, in[1], size[0], 0, spatial));
  ODT_ASSIGN(w, window_axis(graph, node, in[2], size[1], 1, spatial));
  const std::int64_t groups = node.integer("group", 1);
  if (groups < 1 || groups > 65535)
    return bad_attribute(graph, node, absl::StrCat("group ", groups, "; expected 1..65535"));
  const auto u16 = [](std::int64_t v) { return static_cast<std::uint16_t>(v); };
  Window out;
  out.geometry = {u16(h.kernel),   u16(w.kernel),   u16(h.stride), u16(w.stride),
                  u16(h.before),   u16(w.before),   u16(h.after),  u16(w.after),
                  u16(h.dilation), u16(w.dilation), u16(groups)};
  out.out_h = static_cast<std::uint32_t>(h.out());
  out.out_w = static_cast<std::uint32_t>(w.out());
  return out;
}

namespace {

// Scales of all axes, from whichever input or attribute has them.
Result<std::vector<Stretch>> stretches(const Graph& graph, const Node& node,
                                       const std::vector<std::int64_t>& dims) {
  std::vector<Stretch> out(dims.size());
  const auto input = [&](std::size_t n) -> const Tensor* {
    const Tensor* t = node.inputs.size() > n ? graph.constant(node.inputs[n]) : nullptr;
    return t != nullptr && t->size() == dims.size() ? t : nullptr;
  };
  const auto attribute = node.attributes.find("scales");
  const bool roi = node.op == "Resize" && node.inputs.size() > 2;
  const Tensor *scales = input(roi ? 2 : 1), *sizes = roi ? input(3) : nullptr;
  for (std::size_t n = 0; n < dims.size(); ++n) {
    Stretch& s = out[n];
    s.in = dims[n];
    if (sizes != nullptr)
      s.scale = sizes->at(n) / static_cast<double>(s.in);
    else if (scales != nullptr)
      s.scale = scales->at(n);
    else if (attribute != node.attributes.end() && attribute->second.floats.size() == dims.size())
      s.scale = double{attribute->second.floats[n]};
    else
      return unsupported_attribute(graph, node,
                                   "its scales are not constant, one for each dimension");
    if (!(s.scale >= 1 && s.scale <= 65535) || s.scale != std::nearbyint(s.scale))
      return unsupported_attribute(
          graph, node,
          absl::StrCat("scale ", s.scale, " of dimension ", n, "; supported: whole factors"));
    s.out = s.in * static_cast<std::int64_t>(s.scale);
  }
  return out;
}

}  // namespace

Result<Shape> read_resize(const Graph& graph, const Node& node, const Shape& in,
                          std::size_t spatial) {
  if (in.size() != 3)
    return bad_attribute(
        graph, node, absl::StrCat("its input is [", absl::StrJoin(in, ","), "]; expected [C,H,W]"));
  const std::string mode = attribute_text(node, "mode", "nearest");
  if (mode != "nearest")
    return unsupported_attribute(graph, node,
                                 absl::StrCat("mode ", shown(mode), "; supported: nearest"));
  std::vector<std::int64_t> dims = {1, in[0], in[1]};
  if (spatial == 2) dims.push_back(in[2]);
  std::vector<Stretch> axes;
  ODT_ASSIGN(axes, stretches(graph, node, dims));
  const bool old = node.op == "Upsample" || node.inputs.size() < 3;
  const std::string transform =
      attribute_text(node, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  const std::string nearest =
      attribute_text(node, "nearest_mode", old ? "floor" : "round_prefer_floor");
  for (std::size_t n = 0; n < axes.size(); ++n) {
    const Stretch& s = axes[n];
    if (n < 2 && s.scale != 1)
      return unsupported_attribute(graph, node, "it resizes batch or channels; supported: H and W");
    if (s.out > 65535)
      return bad_attribute(graph, node, absl::StrCat(s.out, " values along an axis"));
    for (std::int64_t o = 0; o < s.out; ++o)
      if (source(s, o, transform, nearest) != o * s.in / s.out)
        return unsupported_attribute(
            graph, node,
            absl::StrCat("nearest by ", shown(transform), ", ", shown(nearest), ": output ", o,
                         " does not copy input ", o * s.in / s.out,
                         "; supported: asymmetric, floor"));
  }
  Shape out = in;
  out[1] = static_cast<std::uint32_t>(axes[2].out);
  if (spatial == 2) out[2] = static_cast<std::uint32_t>(axes[3].out);
  return out;
}

Result<std::vector<std::int64_t>> read_axes(const Graph& graph, const Node& node,
                                            std::size_t rank) {
  std::vector<std::int64_t> axes = node.ints("axes");
  if (node.inputs.size() > 1 && !node.inputs[1].empty()) {
    const Tensor* t = graph.constant(node.inputs[1]);
    if (t == nullptr || !t->integer)
      return unsupported_attribute(graph, node, "its axes are not constant integers");
    axes = t->i;
  }
  const auto n = static_cast<std::int64_t>(rank);
  if (axes.empty())
    for (std::int64_t a = 0; a < n; ++a) axes.push_back(a);
  for (auto& a : axes) {
    if (a < -n || a >= n)
      return bad_attribute(graph, node, absl::StrCat("axis ", a, " of ", rank, " dimensions"));
    if (a < 0) a += n;
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

}  // namespace odt::compiler
