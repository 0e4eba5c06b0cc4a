#include <absl/strings/str_join.h>

#include <cmath>

#include "compiler/geometry.h"
#include "compiler/matcher.h"

namespace odt::compiler {
namespace {

bool is_global(const Node& node) {
  return node.op == "GlobalMaxPool" || node.op == "GlobalAveragePool";
}

// Spatial axes of [1,C,L] or [1,C,H,W].
std::size_t spatial_of(const Value& x) { return x.dims.size() == 3 ? 1 : 2; }

void whole_window(Layer& layer) {
  layer.conv.k_h = static_cast<std::uint16_t>(layer.in_shape[1]);
  layer.conv.k_w = static_cast<std::uint16_t>(layer.in_shape[2]);
  layer.out_shape = {layer.in_shape[0], 1, 1};
}

}  // namespace

Status Matcher::max_pool(const Node& node) {
  Value x;
  ODT_ASSIGN(x, use(node, node.inputs[0], false, true));
  Layer layer;
  layer.kind = LayerKind::kMaxPool;
  layer.name = name_of(node);
  layer.in0 = x.tensor;
  layer.in_shape = shape_of(x.dims);
  if (layer.in_shape.size() != 3)
    return bad(node, absl::StrCat("its input is [", absl::StrJoin(x.dims, ","),
                                  "]; expected [1,C,H,W] or [1,C,L]"));
  if (is_global(node)) {
    if (x.padded())
      return unsupported(node, "a Pad is supported in front of Conv and MaxPool only");
    whole_window(layer);
  } else {
    Window window;
    ODT_ASSIGN(window, read_window(graph_, node, layer.in_shape, {}, spatial_of(x)));
    layer.conv = window.geometry;
    layer.out_shape = {layer.in_shape[0], window.out_h, window.out_w};
  }
  // Zeros around what is never negative lose against everything, as padding does.
  if (x.padded() && ranges_[x.tensor].lo < 0)
    return unsupported(node, "zeros are padded around negative values in front of it");
  ODT_TRY(take_padding(node, x, layer));
  Chain chain(graph_, node.outputs[0]);
  finish_block(chain, emit(std::move(layer), ranges_[x.tensor]));
  return absl::OkStatus();
}

// Window and shapes of an average; mean: the node divides by its window's area.
Status Matcher::average_window(const Node& node, const Value& x, Layer& layer, bool& mean) {
  mean = node.op != "ReduceSum";
  layer.in_shape = shape_of(x.dims);
  if (layer.in_shape.size() != 3)
    return bad(node, absl::StrCat("its input is [", absl::StrJoin(x.dims, ","),
                                  "]; expected [1,C,H,W] or [1,C,L]"));
  const std::size_t spatial = spatial_of(x);
  if (node.op == "AveragePool") {
    Window window;
    ODT_ASSIGN(window, read_window(graph_, node, layer.in_shape, {}, spatial));
    layer.kind = LayerKind::kAvgPool;
    layer.conv = window.geometry;
    layer.out_shape = {layer.in_shape[0], window.out_h, window.out_w};
    const ConvGeometry& g = layer.conv;
    if ((g.pad_t | g.pad_l | g.pad_b | g.pad_r) != 0 && node.integer("count_include_pad", 0) == 0)
      return unsupported(node,
                         "it divides by the values without the padding (count_include_pad 0); "
                         "expected no padding, or count_include_pad 1");
    return absl::OkStatus();
  }
  std::vector<std::int64_t> axes;
  if (is_global(node)) {
    axes = spatial == 1 ? std::vector<std::int64_t>{2} : std::vector<std::int64_t>{2, 3};
  } else {
    ODT_ASSIGN(axes, read_axes(graph_, node, x.dims.size()));
  }
  if (axes.empty() || axes[0] < 2)
    return unsupported(node, absl::StrCat("it sums over axes [", absl::StrJoin(axes, ","),
                                          "]; supported: H and W (2 and 3)"));
  whole_window(layer);
  layer.kind = LayerKind::kGap;
  if (axes.size() == spatial || layer.in_shape[axes[0] == 2 ? 2 : 1] == 1) {
    layer.conv = {};
    return absl::OkStatus();
  }
  layer.kind = LayerKind::kAvgPool;  // over one of two axes
  const std::size_t kept = axes[0] == 2 ? 2 : 1;
  (kept == 2 ? layer.conv.k_w : layer.conv.k_h) = 1;
  layer.out_shape[kept] = layer.in_shape[kept];
  return absl::OkStatus();
}

// AveragePool Mul(area) [Round], or ReduceSum [Round], then Add Mul Mul Floor Clip. The constants
// are the file's: they may be no average at all.
Status Matcher::average(const Node& node) {
  Value x;
  ODT_ASSIGN(x, use(node, node.inputs[0]));
  Layer layer;
  layer.name = name_of(node);
  layer.in0 = x.tensor;
  bool mean;
  ODT_TRY(average_window(node, x, layer, mean));
  const bool gap = layer.kind == LayerKind::kGap;
  const double area = gap ? double{1} * layer.in_shape[1] * layer.in_shape[2]
                          : double{1} * layer.conv.k_h * layer.conv.k_w;
  Chain chain(graph_, node.outputs[0]);
  double factor = mean ? 1 / area : 1;  // of the sum, in front of the block's constants
  if (mean) {
    const Node* mul = chain.look({"Mul", "Div"});
    if (mul != nullptr && positive_scale(graph_, *mul) > 0) {
      const double scale = positive_scale(graph_, *mul);
      factor = std::abs(scale - area) < area * 1e-6 ? 1 : scale / area;
      chain.take_if({"Mul", "Div"});
    }
  }
  chain.take_if({"Round"});
  OssConstants oss;
  ODT_ASSIGN(oss, take_oss(chain, false, 1, 255, layer.name));
  int e;
  if (factor != 1 && (std::frexp(factor, &e) != 0.5 || e > 1 || e < -30))
    return unsupported(node, absl::StrCat("it averages ", area,
                                          " values and its block does not multiply by their "
                                          "number; expected AveragePool Mul(",
                                          area, ") [Round] Add Mul Mul Floor Clip"));
  if (factor != 1) {
    const int shift = 1 - e;
    for (auto& o : oss.offset) o = std::ldexp(o, shift);
    for (auto& k : oss.k) {
      if (k + shift > 31) return bad(node, "its scale is below 2^-31");
      k = static_cast<std::uint8_t>(k + shift);
    }
  }
  const std::size_t n = std::max({oss.offset.size(), oss.mult.size(), oss.k.size()});
  if (n != 1 && n != layer.in_shape[0])
    return bad(node,
               absl::StrCat("constants of ", n, " values for ", layer.in_shape[0], " channels"));
  ODT_TRY(set_oss(oss, n, std::vector<double>(n, 0), layer));
  ODT_TRY(take_tail(chain, layer, false));
  const Range range{layer.clip_lo, layer.clip_hi};
  finish_block(chain, emit(std::move(layer), range));
  return absl::OkStatus();
}

Status Matcher::resize(const Node& node) {
  Value x;
  ODT_ASSIGN(x, use(node, node.inputs[0]));
  Layer layer;
  layer.kind = LayerKind::kResize;
  layer.name = name_of(node);
  layer.in0 = x.tensor;
  layer.in_shape = shape_of(x.dims);
  if (x.dims.size() < 3)
    return bad(node, absl::StrCat("its input is [", absl::StrJoin(x.dims, ","),
                                  "]; expected [1,C,H,W] or [1,C,L]"));
  ODT_ASSIGN(layer.out_shape, read_resize(graph_, node, layer.in_shape, spatial_of(x)));
  Chain chain(graph_, node.outputs[0]);
  finish_block(chain, emit(std::move(layer), ranges_[x.tensor]));
  return absl::OkStatus();
}

}  // namespace odt::compiler
