#include <absl/strings/str_join.h>

#include <set>

#include "compiler/matcher.h"

// What can be decided once all layers are there: the shape of the input, the output, the task.
namespace odt::compiler {
namespace {

const char* const kTasks[] = {"classify", "regress", "autoencode"};

}  // namespace

Status Matcher::finish() {
  const auto it = values_.find(graph_.output);
  if (it == values_.end())
    return absl::UnimplementedError(absl::StrCat(graph_.file, ": output '", shown(graph_.output),
                                                 "' is inside of a block; ", kSupportedBlocks));
  Value output = it->second;
  if (std::none_of(net_.layers.begin(), net_.layers.end(),
                   [](const Layer& l) { return l.is_compute(); }))
    return absl::InvalidArgumentError(graph_.file + ": the graph has no Conv, MatMul or Gemm");
  if (output.tensor == 0 || output.padded())
    return absl::InvalidArgumentError(graph_.file + ": the output is no layer's");
  if (output.scale != 1) logit_scale_ = output.scale;
  if (!net_.prequant) ODT_TRY(read_input_storage(graph_, net_));
  prune(output.tensor);
  ODT_TRY(narrow_output());
  ODT_TRY(place_input());
  ODT_TRY(check_task(output));
  return read_calibration(graph_, logit_scale_, net_);
}

// Logits are int8: the block that makes them clips to that range, or a layer that does is added.
Status Matcher::narrow_output() {
  const auto tensor = static_cast<std::uint16_t>(net_.layers.size());
  const Range range = ranges_[tensor];
  if (storage_of(range.lo, range.hi) == Storage::kS8) return absl::OkStatus();
  if (range.lo < -128 || range.hi > 127)
    net_.warnings.push_back(absl::StrCat("the output of '", shown(net_.layers[tensor - 1u].name),
                                         "' lies in ", range.lo, "..", range.hi,
                                         "; outputs are int8: beyond -128..127 they saturate"));
  std::vector<std::uint16_t> readers(net_.layers.size() + 1, 0);
  for (const auto& l : net_.layers) {
    ++readers[l.in0];
    if (l.in1 != kNoTensor) ++readers[l.in1];
  }
  std::uint16_t at = tensor;
  while (at != 0) {
    Layer& l = net_.layers[at - 1u];
    if (readers[at] > (at == tensor ? 0 : 1)) break;
    const bool keeps = l.kind == LayerKind::kMaxPool || l.kind == LayerKind::kResize ||
                       l.kind == LayerKind::kFlatten;
    if (keeps) {
      at = l.in0;
      continue;
    }
    if (l.kind == LayerKind::kConcat) break;
    l.clip_lo = std::clamp(l.clip_lo, -128, 127);
    l.clip_hi = std::clamp(l.clip_hi, -128, 127);
    if (storage_of(l.clip_lo, l.clip_hi) == Storage::kS8) return absl::OkStatus();
    break;
  }
  const Shape shape = tensor_shape(tensor);
  emit(clip_layer("output", tensor, shape, {-128, 127}, false), {-128, 127});
  return absl::OkStatus();
}

// Drops layers that do not lead to the output (flattened tensors that were reshaped back); the
// output is the last one then.
void Matcher::prune(std::uint16_t output) {
  std::vector<bool> read(net_.layers.size() + 1, false);
  read[output] = true;
  for (std::size_t n = net_.layers.size(); n-- > 0;) {
    if (!read[n + 1]) continue;
    read[net_.layers[n].in0] = true;
    if (net_.layers[n].in1 != kNoTensor) read[net_.layers[n].in1] = true;
  }
  std::vector<std::uint16_t> renamed(net_.layers.size() + 1, 0);
  std::vector<Layer> kept;
  std::vector<Range> ranges = {ranges_[0]};
  for (std::size_t n = 0; n < net_.layers.size(); ++n) {
    if (!read[n + 1]) continue;
    Layer& l = net_.layers[n];
    l.in0 = renamed[l.in0];
    if (l.in1 != kNoTensor) l.in1 = renamed[l.in1];
    kept.push_back(std::move(l));
    ranges.push_back(ranges_[n + 1]);
    renamed[n + 1] = static_cast<std::uint16_t>(kept.size());
  }
  net_.layers = std::move(kept);
  ranges_ = std::move(ranges);
}

// The input has one shape: where some layers read it whole and others flat, the others get a
// FLATTEN.
Status Matcher::place_input() {
  std::optional<Shape> whole;
  std::size_t first_flat = net_.layers.size();
  for (std::size_t n = 0; n < net_.layers.size(); ++n) {
    const Layer& l = net_.layers[n];
    if (l.in0 != 0 && l.in1 != 0) continue;
    // What reads the input beside another tensor has that one's shape or number of dimensions.
    if (l.in_shape.size() == 1) {
      first_flat = std::min(first_flat, n);
      continue;
    }
    Shape shape = l.in_shape;
    if (l.in0 != 0) shape[0] = l.out_shape[0] - (l.kind == LayerKind::kConcat ? l.in_shape[0] : 0);
    if (whole && *whole != shape)
      return absl::UnimplementedError(absl::StrCat(
          graph_.file, ": layers read the input as [", absl::StrJoin(*whole, ","), "] and as [",
          absl::StrJoin(shape, ","), "] ('", shown(l.name), "'); expected one shape"));
    whole = shape;
  }
  if (!whole || first_flat == net_.layers.size()) return absl::OkStatus();
  Layer flat;
  flat.kind = LayerKind::kFlatten;
  flat.name = "input/Flatten";
  flat.in_shape = *whole;
  flat.out_shape = {static_cast<std::uint32_t>(count_of(*whole))};
  const auto made = static_cast<std::uint16_t>(first_flat + 1);
  for (std::size_t n = 0; n < net_.layers.size(); ++n) {
    Layer& l = net_.layers[n];
    const auto moved = [&](std::uint16_t t) {
      if (t == 0) return l.in_shape.size() == 1 ? made : t;
      return t != kNoTensor && t > first_flat ? static_cast<std::uint16_t>(t + 1) : t;
    };
    l.in0 = moved(l.in0);
    l.in1 = moved(l.in1);
  }
  net_.layers.insert(net_.layers.begin() + static_cast<std::ptrdiff_t>(first_flat), flat);
  return absl::OkStatus();
}

Status Matcher::check_task(const Value& output) {
  ODT_ASSIGN(net_.task, read_task(graph_, task_, output.dims));
  const std::uint32_t n = net_.n_classes();
  const bool classes = net_.task == Task::kClassify;
  const auto fail = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(
        graph_.file, ": the output [", absl::StrJoin(output.dims, ","), "] of '",
        shown(net_.layers.back().name), "' ", what, " (task ", kTasks[static_cast<int>(net_.task)],
        "; --task or metadata odt.task: classify, regress or autoencode)"));
  };
  if (classes && (n < 2 || n > 128))
    return fail(absl::StrCat("has ", n, " values; expected 2..128 logits, one per class"));
  if (n > 4096) return fail(absl::StrCat("has ", n, " values; expected 1..4096"));
  if (net_.task != Task::kAutoencode) return absl::OkStatus();
  if (n != count_of(net_.input_shape))
    return fail(absl::StrCat("has ", n, " values; expected those of the input, ",
                             count_of(net_.input_shape)));
  if (net_.input_storage != Storage::kS8)
    return fail("is to equal an input of uint8; expected PREQUANT to clip to -128..127");
  return absl::OkStatus();
}

}  // namespace odt::compiler
