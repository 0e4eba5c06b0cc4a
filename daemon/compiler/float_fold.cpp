#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

#include "compiler/float_graph.h"

// Affine ops and Relu into the layers around them.
namespace odt::compiler {

int FloatGraph::readers(int id) const {
  int n = output == id ? 1 : 0;
  for (const FloatOp& op : ops)
    if (!op.gone) n += (op.in0 == id ? 1 : 0) + (op.in1 == id ? 1 : 0);
  return n;
}

namespace {

class Folder {
 public:
  Folder(const Graph& graph, FloatGraph& g) : graph_(graph), g_(g) {}

  Status run(bool scale_input) {
    drop_unread();
    for (int id = 0; id < count(); ++id) {
      if (at(id).gone) continue;
      if (at(id).kind == FloatKind::kAffine) into_front(id);
      if (at(id).kind == FloatKind::kRelu) relu(id);
    }
    if (scale_input) into_input();
    for (int id = 0; id < count(); ++id) {
      const FloatOp& op = at(id);
      if (!op.gone && op.kind == FloatKind::kAffine && !op.relu &&
          scale_behind(id, op.weights, op.bias, op.node->index))
        skip(id);
    }
    for (int id = 0; id < count(); ++id)
      if (!at(id).gone && at(id).kind == FloatKind::kAffine) ODT_TRY(to_convolution(id));
    for (int id = 0; id < count(); ++id)
      if (!at(id).gone && (at(id).kind == FloatKind::kGap || at(id).kind == FloatKind::kAvgPool))
        exact_average(id);
    return absl::OkStatus();
  }

 private:
  FloatOp& at(int id) { return g_.ops[static_cast<std::size_t>(id)]; }
  int count() const { return static_cast<int>(g_.ops.size()); }

  void drop_unread() {
    for (int id = count(); id-- > 0;)
      if (g_.readers(id) == 0) at(id).gone = true;
  }

  // What read `id` reads what `id` read.
  void skip(int id) {
    const int to = at(id).in0;
    at(id).gone = true;
    for (FloatOp& op : g_.ops) {
      if (op.in0 == id) op.in0 = to;
      if (op.in1 == id) op.in1 = to;
    }
    if (g_.output == id) g_.output = to;
  }

  // For `odtc export`: what of the file is in a layer's values.
  static void note_fold(const FloatOp& affine, FloatOp& front) {
    const bool adds = affine.node->op == "Add" || affine.node->op == "Sub";
    if (adds && affine.norm_node < 0 && front.is_compute() && front.norm_node < 0)
      front.offset_node = affine.node->index;
    else
      front.norm_node = affine.node->index;
  }

  // scale * (layer) + shift: a layer with other weights.
  void into_front(int id) {
    const FloatOp& affine = at(id);
    if (affine.relu) return;
    if (affine.in0 == kFloatInput || g_.readers(affine.in0) != 1) return;
    FloatOp& front = at(affine.in0);
    const bool chain = front.kind == FloatKind::kAffine;
    if ((!front.is_compute() && !chain) || front.relu) return;
    const std::size_t n = affine.weights.size(), per_out = front.weights.size() / n;
    for (std::size_t i = 0; i < front.weights.size(); ++i)
      front.weights[i] *= affine.weights[front.kind == FloatKind::kLinear ? i % n : i / per_out];
    for (std::size_t o = 0; o < n; ++o)
      front.bias[o] = front.bias[o] * affine.weights[o] + affine.bias[o];
    note_fold(affine, front);
    skip(id);
  }

  bool not_negative(int id) {
    if (id == kFloatInput) return false;
    const FloatOp& op = at(id);
    switch (op.kind) {
      case FloatKind::kMaxPool:
      case FloatKind::kAvgPool:
      case FloatKind::kGap:
      case FloatKind::kResize:
      case FloatKind::kFlatten:
        return not_negative(op.in0);
      case FloatKind::kConcat:
        return not_negative(op.in0) && not_negative(op.in1);
      default:
        return op.relu;
    }
  }

  // Relu of this tensor can happen in front of it, where values are only chosen or copied.
  bool takes_relu(int id) {
    if (not_negative(id)) return true;
    if (id == kFloatInput || g_.readers(id) != 1) return false;
    const FloatOp& op = at(id);
    switch (op.kind) {
      case FloatKind::kMaxPool:
      case FloatKind::kResize:
      case FloatKind::kFlatten:
        return takes_relu(op.in0);
      case FloatKind::kConcat:
        return takes_relu(op.in0) && takes_relu(op.in1);
      case FloatKind::kConv:
      case FloatKind::kLinear:
      case FloatKind::kAffine:
      case FloatKind::kAdd:
        return true;
      default:
        return false;
    }
  }
  void give_relu(int id) {
    if (not_negative(id)) return;
    FloatOp& op = at(id);
    if (op.is_compute() || op.kind == FloatKind::kAffine || op.kind == FloatKind::kAdd) {
      op.relu = true;
      return;
    }
    give_relu(op.in0);
    if (op.in1 != kFloatNone) give_relu(op.in1);
  }

  void relu(int id) {
    FloatOp& op = at(id);
    if (takes_relu(op.in0)) {
      give_relu(op.in0);
      skip(id);
      return;
    }
    op.kind = FloatKind::kAffine;
    op.relu = true;
    op.weights.assign(op.out[0], 1);
    op.bias.assign(op.out[0], 0);
  }

  // The host's quantiser scales the input anyway.
  void into_input() {
    for (int id = 0; id < count(); ++id) {
      const FloatOp& op = at(id);
      if (op.gone || op.in0 != kFloatInput) continue;
      const bool scales =
          op.kind == FloatKind::kAffine && !op.relu && g_.readers(kFloatInput) == 1 &&
          g_.output != id &&
          std::none_of(op.weights.begin(), op.weights.end(), [](double s) { return s == 0; });
      if (!scales) return;
      g_.scale = op.weights;
      g_.shift = op.bias;
      skip(id);
      return;
    }
  }

  // Layers that read a tensor, through Flatten; empty: something else reads it too.
  std::vector<int> layers_behind(int id, bool shifts) {
    std::vector<int> out;
    if (g_.output == id) return out;
    for (int n = 0; n < count(); ++n) {
      const FloatOp& op = at(n);
      if (op.gone || (op.in0 != id && op.in1 != id)) continue;
      const ConvGeometry& g = op.geometry;
      const bool padded = (g.pad_t | g.pad_l | g.pad_b | g.pad_r) != 0;
      if (op.kind == FloatKind::kFlatten) {
        const auto more = layers_behind(n, shifts);
        if (more.empty()) return {};
        out.insert(out.end(), more.begin(), more.end());
      } else if (op.is_compute() && !(padded && shifts)) {
        out.push_back(n);
      } else {
        return {};
      }
    }
    return out;
  }

  // layer(scale * x + shift): a layer with other weights. Padding would have to be -shift / scale.
  // False: not all that read `id` can. node: of the file, -1: none (one scale for all).
  bool scale_behind(int id, const std::vector<double>& scale, const std::vector<double>& shift,
                    int node) {
    const bool shifts = std::any_of(shift.begin(), shift.end(), [](double t) { return t != 0; });
    const std::vector<int> layers = layers_behind(id, shifts);
    const std::size_t channels = scale.size();
    for (const int n : layers) {
      FloatOp& layer = at(n);
      const bool linear = layer.kind == FloatKind::kLinear;
      const std::size_t outputs = layer.out[0], per_out = layer.weights.size() / outputs;
      if (node >= 0)
        layer.norm_node = node;
      else
        layer.file_scale *= scale[0];
      const std::size_t per_channel = linear ? layer.weight_shape[0] / channels : 0;
      for (std::size_t i = 0; i < layer.weights.size(); ++i) {
        const std::size_t o = linear ? i % outputs : i / per_out;
        std::size_t c = linear ? i / outputs / per_channel : 0;
        if (!linear) {
          const std::size_t taps = std::size_t{layer.weight_shape[2]} * layer.weight_shape[3];
          const std::size_t group = o / (outputs / layer.geometry.groups);
          c = group * layer.weight_shape[1] + i % per_out / taps;
        }
        layer.bias[o] += layer.weights[i] * shift[c];
        layer.weights[i] *= scale[c];
      }
    }
    return !layers.empty();
  }

  // Rule 1.13 averages by R * 2^-15, R = floor((65536 + area) / (2 area)): off by up to area *
  // 2^-16, which the layers behind take back.
  void exact_average(int id) {
    const FloatOp& op = at(id);
    const Shape& in = g_.shape_of(op.in0);
    const std::uint64_t area = op.kind == FloatKind::kGap
                                   ? std::uint64_t{in[1]} * in[2]
                                   : std::uint64_t{op.geometry.k_h} * op.geometry.k_w;
    const std::uint64_t r = (65536 + area) / (2 * area);
    if (r == 0) return;  // firmware/odt refuses it
    const double gain = 32768.0 / static_cast<double>(area * r);
    if (gain != 1)
      scale_behind(id, std::vector<double>(op.out[0], gain), std::vector<double>(op.out[0], 0), -1);
  }

  // A vector has no channels of its own: a dense layer whose matrix is diagonal, and stays so.
  void to_diagonal(FloatOp& op) {
    const std::size_t n = op.out[0];
    std::vector<double> matrix(n * n, 0);
    for (std::size_t i = 0; i < n; ++i) matrix[i * n + i] = op.weights[i];
    op.kind = FloatKind::kLinear;
    op.fixed = true;
    op.norm_node = op.node->index;
    op.weights = std::move(matrix);
    op.weight_shape = {op.out[0], op.out[0]};
  }

  Status to_convolution(int id) {
    constexpr std::uint32_t kMostDiagonal = 128;  // 32 KB of weights
    FloatOp& op = at(id);
    if (op.out.size() == 1 && op.out[0] <= kMostDiagonal) {
      to_diagonal(op);
      return absl::OkStatus();
    }
    const std::string what = op.fixed ? "an upper bound (as ReLU6 has)"
                             : op.node->op == "Relu" || op.node->op == "Clip"
                                 ? "a Relu that no layer in front can do"
                                 : "a scale that neither the layer in front nor those behind "
                                   "can take over";
    if (op.out.size() != 3)
      return absl::UnimplementedError(
          absl::StrCat(where(graph_, *op.node), what, ", on a vector of ", op.out[0],
                       " values; supported on [1,C,H,W], as a "
                       "1x1 convolution of each channel, and on vectors of up to ",
                       kMostDiagonal, "; use Relu there, or put it in front of the Flatten"));
    op.kind = FloatKind::kConv;
    op.norm_node = op.node->index;
    op.weight_shape = {op.out[0], 1, 1, 1};
    op.geometry = ConvGeometry{};
    op.geometry.groups = static_cast<std::uint16_t>(op.out[0]);
    return absl::OkStatus();
  }

  const Graph& graph_;
  FloatGraph& g_;
};

}  // namespace

Status fold_float_graph(const Graph& graph, bool scale_input, FloatGraph& g) {
  return Folder(graph, g).run(scale_input);
}

}  // namespace odt::compiler
