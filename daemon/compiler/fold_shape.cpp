#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

#include "compiler/fold.h"

// Constant folding: operators that move values, and the shapes that they give.
namespace odt::compiler {
namespace {

using I = std::int64_t;

Status malformed(const std::string& what) { return absl::InvalidArgumentError(what); }

// The elements of t at `from`, in that order.
Tensor picked(const Tensor& t, Dims dims, const std::vector<I>& from) {
  Tensor out;
  out.integer = t.integer;
  out.dims = std::move(dims);
  for (I n : from) {
    if (t.integer)
      out.i.push_back(t.i[static_cast<std::size_t>(n)]);
    else
      out.f.push_back(t.f[static_cast<std::size_t>(n)]);
  }
  return out;
}

std::vector<I> strides_of(const Dims& dims) {
  std::vector<I> stride(dims.size(), 1);
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return stride;  // nothing to walk
  for (std::size_t n = dims.size(); n-- > 1;) stride[n - 1] = stride[n] * dims[n];
  return stride;
}

// Flat source of each output: start[axis] + index * step[axis], in units of the source's strides.
std::vector<I> walk(const Dims& out, const std::vector<I>& start, const std::vector<I>& step) {
  const I count = product(out);
  std::vector<I> from;
  for (I flat = 0; flat < count; ++flat) {
    I rest = flat, at = 0;
    for (std::size_t n = out.size(); n-- > 0;) {
      at += start[n] + rest % out[n] * step[n];
      rest /= out[n];
    }
    from.push_back(at);
  }
  return from;
}

Result<Tensor> fold_transpose(const Node& node, const Tensor& t) {
  Dims perm, dims;
  ODT_ASSIGN(perm, permutation_of(node, t.dims.size()));
  const auto stride = strides_of(t.dims);
  std::vector<I> step;
  for (auto p : perm) {
    dims.push_back(t.dims[static_cast<std::size_t>(p)]);
    step.push_back(stride[static_cast<std::size_t>(p)]);
  }
  return picked(t, dims, walk(dims, std::vector<I>(perm.size(), 0), step));
}

Result<Tensor> fold_concat(const Node& node, const std::vector<const Tensor*>& inputs) {
  std::size_t axis;
  ODT_ASSIGN(axis, axis_of(node.integer("axis", 0), inputs[0]->dims.size()));
  Dims dims = inputs[0]->dims;
  dims[axis] = 0;
  for (const Tensor* t : inputs) {
    if (t->integer != inputs[0]->integer || t->dims.size() != dims.size())
      return malformed("a Concat of constants of different kinds");
    for (std::size_t n = 0; n < dims.size(); ++n)
      if (n != axis && t->dims[n] != dims[n])
        return malformed("a Concat of constants that do not fit");
    dims[axis] += t->dims[axis];
  }
  if (product(dims) < 0) return malformed("a constant that is too large");
  const I outer = product(Dims(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(axis)));
  Tensor out;
  out.integer = inputs[0]->integer;
  out.dims = dims;
  for (I o = 0; o < outer; ++o)
    for (const Tensor* t : inputs) {
      const I run = static_cast<I>(t->size()) / std::max<I>(outer, 1);
      if (out.integer)
        out.i.insert(out.i.end(), t->i.begin() + o * run, t->i.begin() + (o + 1) * run);
      else
        out.f.insert(out.f.end(), t->f.begin() + o * run, t->f.begin() + (o + 1) * run);
    }
  return out;
}

Result<Tensor> fold_slice(const Node& node, const std::vector<const Tensor*>& inputs) {
  const Tensor& t = *inputs[0];
  std::vector<SliceAxis> axes;
  ODT_ASSIGN(axes, slice_axes(node, t.dims, inputs));
  const auto stride = strides_of(t.dims);
  Dims dims;
  std::vector<I> start, step;
  for (std::size_t n = 0; n < axes.size(); ++n) {
    dims.push_back(axes[n].count);
    start.push_back(axes[n].begin * stride[n]);
    step.push_back(axes[n].step * stride[n]);
  }
  return picked(t, dims, walk(dims, start, step));
}

Result<Tensor> fold_gather(const Node& node, const Tensor& t, const Tensor& indices) {
  std::size_t axis;
  ODT_ASSIGN(axis, axis_of(node.integer("axis", 0), t.dims.size()));
  if (!indices.integer) return malformed("indices that are not integers");
  Dims dims(t.dims.begin(), t.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  const I outer = product(dims), size = t.dims[axis];
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), t.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, t.dims.end());
  if (product(dims, kMaxFolded) < 0) return malformed("a constant that is too large");
  const I inner =
      product(Dims(t.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, t.dims.end()));
  std::vector<I> from;
  for (I o = 0; o < outer; ++o)
    for (I index : indices.i) {
      if (index < -size || index >= size) return malformed("an index out of range");
      for (I n = 0; n < inner; ++n)
        from.push_back((o * size + (index < 0 ? index + size : index)) * inner + n);
    }
  return picked(t, dims, from);
}

Result<Tensor> fold_expand(const Tensor& t, const Tensor& shape) {
  if (!shape.integer) return malformed("a shape that is not integer");
  Dims dims;
  ODT_ASSIGN(dims, broadcast_dims(t.dims, shape.i));
  const I count = product(dims, kMaxFolded);
  if (count < 0) return malformed("a constant that is too large");
  std::vector<I> from;
  for (I n = 0; n < count; ++n) from.push_back(static_cast<I>(broadcast_index(t.dims, dims, n)));
  return picked(t, dims, from);
}

Result<Tensor> fold_constant_of_shape(const Node& node, const Tensor& shape) {
  Tensor value;
  value.f = {0.0f};
  if (const auto it = node.tensors.find("value"); it != node.tensors.end()) value = it->second;
  if (!shape.integer || value.size() != 1) return malformed("a shape or a value that is none");
  const I count = product(shape.i, kMaxFolded);
  if (count < 0) return malformed("a constant that is too large");
  return picked(value, shape.i, std::vector<I>(static_cast<std::size_t>(count), 0));
}

Result<Tensor> fold_range(const Tensor& from, const Tensor& to, const Tensor& step) {
  if (from.size() != 1 || to.size() != 1 || step.size() != 1 || from.integer != to.integer ||
      from.integer != step.integer || !(step.at(0) != 0))
    return malformed("a Range that has no end");
  const double span = std::ceil((to.at(0) - from.at(0)) / step.at(0));
  const double count = span < 0 ? 0 : span;  // NaN stays
  if (!(count <= static_cast<double>(kMaxFolded))) return malformed("a constant that is too large");
  Tensor out;
  out.integer = from.integer;
  for (I n = 0; n < static_cast<I>(count); ++n) {
    if (out.integer)
      out.i.push_back(
          static_cast<I>(static_cast<std::uint64_t>(from.i[0]) +
                         static_cast<std::uint64_t>(n) * static_cast<std::uint64_t>(step.i[0])));
    else
      out.f.push_back(from.f[0] + static_cast<float>(n) * step.f[0]);
  }
  out.dims = {static_cast<I>(out.size())};
  return out;
}

// ReduceProd, ReduceSum, ReduceMax, ReduceMin, ReduceMean over axes or all of a constant.
Result<Tensor> fold_reduce(const Node& node, const std::vector<const Tensor*>& inputs) {
  const Tensor& t = *inputs[0];
  const Tensor* axes_input = inputs.size() > 1 ? inputs[1] : nullptr;
  const Dims axes = axes_input != nullptr ? axes_input->i : node.ints("axes");
  if (t.size() == 0) return malformed("a reduction of nothing");
  std::vector<bool> hit(t.dims.size(), axes.empty());
  for (auto a : axes) {
    std::size_t axis;
    ODT_ASSIGN(axis, axis_of(a, t.dims.size()));
    hit[axis] = true;
  }
  Dims kept, dims;
  for (std::size_t n = 0; n < hit.size(); ++n) {
    kept.push_back(hit[n] ? 1 : t.dims[n]);
    if (!hit[n] || node.integer("keepdims", 1) != 0) dims.push_back(kept.back());
  }
  const auto count = static_cast<std::size_t>(product(kept));
  std::vector<double> sums(count, node.op == "ReduceProd" ? 1 : 0);
  std::vector<bool> seen(count, false);
  for (std::size_t n = 0; n < t.size(); ++n) {
    const auto at = broadcast_index(kept, t.dims, static_cast<I>(n));
    const double v = t.at(n);
    if (node.op == "ReduceProd")
      sums[at] *= v;
    else if (node.op == "ReduceMax")
      sums[at] = seen[at] ? std::max(sums[at], v) : v;
    else if (node.op == "ReduceMin")
      sums[at] = seen[at] ? std::min(sums[at], v) : v;
    else
      sums[at] += v;
    seen[at] = true;
  }
  Tensor out;
  out.integer = t.integer;
  out.dims = dims;
  const double n_each = static_cast<double>(t.size()) / static_cast<double>(count);
  for (double v : sums) {
    if (node.op == "ReduceMean") v /= n_each;
    if (!(std::abs(v) < 9e18) && t.integer) return malformed("a reduction out of range");
    if (t.integer)
      out.i.push_back(static_cast<I>(v));
    else
      out.f.push_back(static_cast<float>(v));
  }
  return out;
}

Result<Tensor> fold_tile(const Tensor& t, const Tensor& repeats) {
  if (!repeats.integer || repeats.size() != t.dims.size())
    return malformed("repeats that do not fit");
  Dims dims;
  for (std::size_t n = 0; n < t.dims.size(); ++n) {
    if (repeats.i[n] < 0 || repeats.i[n] > kMaxFolded || t.dims[n] > kMaxFolded)
      return malformed("a constant that is too large");
    dims.push_back(t.dims[n] * repeats.i[n]);
  }
  const I count = product(dims, kMaxFolded);
  if (count < 0) return malformed("a constant that is too large");
  const auto stride = strides_of(t.dims);
  std::vector<I> from;
  for (I flat = 0; flat < count; ++flat) {
    I rest = flat, at = 0;
    for (std::size_t n = dims.size(); n-- > 0;) {
      at += rest % dims[n] % t.dims[n] * stride[n];
      rest /= dims[n];
    }
    from.push_back(at);
  }
  return picked(t, dims, from);
}

Result<Tensor> with_dims(Tensor t, Result<Dims> dims) {
  if (!dims.ok()) return dims.status();
  t.dims = *std::move(dims);
  return t;
}

}  // namespace

Result<std::size_t> axis_of(std::int64_t axis, std::size_t rank) {
  const auto n = static_cast<I>(rank);
  if (axis < -n || axis >= n)
    return malformed(absl::StrCat("axis ", axis, " of ", rank, " dimensions"));
  return static_cast<std::size_t>(axis < 0 ? axis + n : axis);
}

Result<Dims> reshape_dims(const Node& node, const Dims& from, const Tensor& shape) {
  if (!shape.integer) return malformed("a shape that is not integer");
  const I size = product(from);
  Dims dims = shape.i;
  I known = 1, open = 0;
  for (std::size_t n = 0; n < dims.size(); ++n) {
    if (dims[n] == 0 && n < from.size() && node.integer("allowzero", 0) == 0) dims[n] = from[n];
    if (dims[n] > kMaxElements || dims[n] < -1) return malformed("a shape that is out of range");
    if (dims[n] == -1) ++open;
    if (dims[n] >= 0 && known <= kMaxElements) known *= dims[n];
  }
  for (auto& d : dims)
    if (d == -1) d = known > 0 ? size / known : 0;
  if (size < 0 || open > 1 || product(dims) != size) return malformed("a shape that does not fit");
  return dims;
}

Result<Dims> unsqueeze_dims(const Node& node, const Dims& from, const Tensor* axes_input) {
  const Dims axes = axes_input != nullptr ? axes_input->i : node.ints("axes");
  if (axes.size() > 8) return malformed("more axes than a tensor has");
  Dims dims(from.size() + axes.size(), 0);
  for (auto a : axes) {
    std::size_t axis;
    ODT_ASSIGN(axis, axis_of(a, dims.size()));
    if (dims[axis] != 0) return malformed("axes that repeat");
    dims[axis] = 1;
  }
  std::vector<bool> inserted;
  for (auto d : dims) inserted.push_back(d == 1);
  for (std::size_t n = 0, at = 0; n < dims.size(); ++n)
    if (!inserted[n]) dims[n] = from[at++];
  return dims;
}

Result<Dims> squeeze_dims(const Node& node, const Dims& from, const Tensor* axes_input) {
  const Dims axes = axes_input != nullptr ? axes_input->i : node.ints("axes");
  std::vector<bool> hit(from.size(), axes.empty());
  for (auto a : axes) {
    std::size_t axis;
    ODT_ASSIGN(axis, axis_of(a, from.size()));
    if (from[axis] != 1) return malformed("an axis to squeeze that is not 1");
    hit[axis] = true;
  }
  Dims dims;
  for (std::size_t n = 0; n < from.size(); ++n)
    if (from[n] != 1 || !hit[n]) dims.push_back(from[n]);
  return dims;
}

Result<Dims> permutation_of(const Node& node, std::size_t rank) {
  Dims perm = node.ints("perm");
  if (perm.empty())
    for (std::size_t n = rank; n-- > 0;) perm.push_back(static_cast<I>(n));
  std::vector<bool> used(rank, false);
  if (perm.size() != rank) return malformed("a permutation that does not fit");
  for (auto p : perm) {
    if (p < 0 || p >= static_cast<I>(rank) || used[static_cast<std::size_t>(p)])
      return malformed("a permutation that is none");
    used[static_cast<std::size_t>(p)] = true;
  }
  return perm;
}

Result<std::vector<SliceAxis>> slice_axes(const Node& node, const Dims& from,
                                          const std::vector<const Tensor*>& inputs) {
  const auto list = [&](std::size_t n, const char* key) -> Dims {
    if (n < inputs.size() && inputs[n] != nullptr) return inputs[n]->i;
    return node.ints(key);
  };
  const Dims starts = list(1, "starts"), ends = list(2, "ends"), steps = list(4, "steps");
  Dims axes = list(3, "axes");
  if (axes.empty())
    for (std::size_t n = 0; n < starts.size(); ++n) axes.push_back(static_cast<I>(n));
  if (starts.size() != ends.size() || axes.size() != starts.size() ||
      (!steps.empty() && steps.size() != starts.size()))
    return malformed("a Slice whose lists differ in length");
  std::vector<SliceAxis> out;
  for (auto d : from) out.push_back({0, 1, d});
  for (std::size_t n = 0; n < axes.size(); ++n) {
    std::size_t axis;
    ODT_ASSIGN(axis, axis_of(axes[n], from.size()));
    const I size = from[axis], step = steps.empty() ? 1 : steps[n];
    if (step == 0 || std::abs(step) > kMaxElements)
      return malformed("a Slice with an impossible step");
    const auto place = [&](I v) {
      if (v < 0) v = std::max<I>(v, -size - 1) + size;
      return step > 0 ? std::clamp<I>(v, 0, size) : std::clamp<I>(v, -1, size - 1);
    };
    const I begin = place(starts[n]), end = place(ends[n]);
    const I span = step > 0 ? end - begin : begin - end, unit = std::abs(step);
    out[axis] = {begin, step, span > 0 ? (span + unit - 1) / unit : 0};
  }
  return out;
}

Result<Tensor> fold_moving(const Node& node, const std::vector<const Tensor*>& inputs,
                           bool& known) {
  const std::string& op = node.op;
  known = true;
  const auto input = [&](std::size_t n) { return n < inputs.size() ? inputs[n] : nullptr; };
  if (input(0) == nullptr) return malformed("input 0 is missing");
  const Tensor& t = *inputs[0];
  if (op == "Transpose") return fold_transpose(node, t);
  if (op == "Squeeze") return with_dims(t, squeeze_dims(node, t.dims, input(1)));
  if (op == "Unsqueeze") return with_dims(t, unsqueeze_dims(node, t.dims, input(1)));
  if (op == "Slice") return fold_slice(node, inputs);
  if (op == "ConstantOfShape") return fold_constant_of_shape(node, t);
  if (op == "ReduceProd" || op == "ReduceSum" || op == "ReduceMax" || op == "ReduceMin" ||
      op == "ReduceMean")
    return fold_reduce(node, inputs);
  if (op == "Flatten") {
    std::size_t axis;
    ODT_ASSIGN(axis, axis_of(node.integer("axis", 1), t.dims.size() + 1));
    const I outer =
        product(Dims(t.dims.begin(), t.dims.begin() + static_cast<std::ptrdiff_t>(axis)));
    return with_dims(t, Dims{outer, outer > 0 ? static_cast<I>(t.size()) / outer : 0});
  }
  const bool two = op == "Reshape" || op == "Gather" || op == "Expand" || op == "Tile";
  if (two && input(1) == nullptr) return malformed("input 1 is missing");
  if (op == "Reshape") return with_dims(t, reshape_dims(node, t.dims, *inputs[1]));
  if (op == "Gather") return fold_gather(node, t, *inputs[1]);
  if (op == "Expand") return fold_expand(t, *inputs[1]);
  if (op == "Tile") return fold_tile(t, *inputs[1]);
  for (const Tensor* each : inputs)
    if (each == nullptr) return malformed("an input is missing");
  if (op == "Concat") return fold_concat(node, inputs);
  if (op == "Range") return fold_range(t, *inputs[1], *inputs[2]);
  known = false;
  return malformed("not folded");
}

}  // namespace odt::compiler
