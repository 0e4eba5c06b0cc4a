#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/onnx_graph.h"

// Parts of constant folding, used by fold.cpp, fold_shape.cpp and infer.cpp.
namespace odt::compiler {

using Dims = std::vector<std::int64_t>;

// Values of one folded constant that an operator makes out of less (Expand, Range, broadcasting).
constexpr std::int64_t kMaxFolded = std::int64_t{1} << 22;

// -1: a negative dimension, or more than `limit`.
std::int64_t product(const Dims& dims, std::int64_t limit = kMaxElements);
// Shapes that do not broadcast: INVALID_ARGUMENT.
Result<Dims> broadcast_dims(const Dims& a, const Dims& b);
// Where in a tensor of shape `own` the element `flat` of the broadcast shape `dims` lies.
std::size_t broadcast_index(const Dims& own, const Dims& dims, std::int64_t flat);
// Adds `rank` to a negative axis. INVALID_ARGUMENT out of range.
Result<std::size_t> axis_of(std::int64_t axis, std::size_t rank);

// Output shapes that depend on shapes and constants alone; also of tensors that are not constant.
Result<Dims> reshape_dims(const Node& node, const Dims& from, const Tensor& shape);
Result<Dims> unsqueeze_dims(const Node& node, const Dims& from, const Tensor* axes);
Result<Dims> squeeze_dims(const Node& node, const Dims& from, const Tensor* axes);
Result<Dims> permutation_of(const Node& node, std::size_t rank);
// Begin, step and count per axis of a Slice; constants: inputs 1..4 (absent: null) or attributes.
struct SliceAxis {
  std::int64_t begin = 0, step = 1, count = 0;
};
Result<std::vector<SliceAxis>> slice_axes(const Node& node, const Dims& from,
                                          const std::vector<const Tensor*>& inputs);

// Folds the operators that move values; `known`: false where op is none of them.
Result<Tensor> fold_moving(const Node& node, const std::vector<const Tensor*>& inputs, bool& known);

}  // namespace odt::compiler
