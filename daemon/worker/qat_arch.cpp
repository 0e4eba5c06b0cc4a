#include "worker/qat_arch.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <optional>

namespace odt::worker {

using compiler::LayerKind;
using compiler::Shape;

namespace {

constexpr std::size_t kMaxText = 4096, kMaxLayers = 48;
constexpr std::uint32_t kMaxKernel = 63, kMaxStride = 16, kMaxWidth = 4096, kMaxDepth = 4;
constexpr std::uint64_t kMaxValues = 65535, kMaxWeights = std::uint64_t{1} << 22;
constexpr const char* kItems =
    "conv, dw, max, avg, gap, resize, flatten, dense, bn, relu or add(...)";

std::string shape_text(const Shape& s) { return absl::StrCat("[", absl::StrJoin(s, ","), "]"); }

class Parser {
 public:
  Parser(const std::string& text, const Shape& input, const ArchOutput& output)
      : text_(text), output_(output) {
    arch_.input = input;
  }

  Result<Arch> run() {
    if (text_.size() > kMaxText)
      return absl::InvalidArgumentError(
          absl::StrCat("arch: ", text_.size(), " characters; at most ", kMaxText));
    ODT_TRY(list(0));
    if (at_ < text_.size()) return fail(at_, "expected ',' or the end");
    drop_leading_flatten();
    ODT_TRY(finish());
    return std::move(arch_);
  }

 private:
  Status fail(std::size_t at, const std::string& why) const {
    const auto end = std::min(text_.find_first_of(",()", at + 1), text_.size());
    const std::string item = at < text_.size() ? text_.substr(at, end - at) : "";
    return absl::InvalidArgumentError(absl::StrCat(
        "arch, character ", at + 1,
        item.empty() ? " (the end)" : absl::StrCat(", '", compiler::shown(item), "'"), ": ", why));
  }

  void spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string word() {
    const std::size_t from = at_;
    while (at_ < text_.size() && text_[at_] >= 'a' && text_[at_] <= 'z') ++at_;
    return text_.substr(from, at_ - from);
  }
  std::optional<std::uint32_t> number() {
    const std::size_t from = at_;
    std::uint32_t n = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - from < 6)
      n = n * 10 + static_cast<std::uint32_t>(text_[at_++] - '0');
    if (at_ == from) return std::nullopt;
    return n;
  }
  // "3" or "3x3" ...: at most `most` numbers, each lo..hi.
  Result<std::vector<std::uint32_t>> numbers(std::size_t most, std::uint32_t lo, std::uint32_t hi) {
    std::vector<std::uint32_t> out;
    do {
      const auto n = number();
      if (!n) return fail(item_, absl::StrCat("expected a number at character ", at_ + 1));
      if (*n < lo || *n > hi) return fail(item_, absl::StrCat(*n, "; expected ", lo, "..", hi));
      out.push_back(*n);
    } while (out.size() < most && take('x'));
    return out;
  }

  // Items up to the end or ')'.
  Status list(std::uint32_t depth) {
    fresh_ = false;
    do {
      spaces();
      item_ = at_;
      ODT_TRY(item(depth));
      spaces();
    } while (take(','));
    return absl::OkStatus();
  }

  Status item(std::uint32_t depth) {
    const std::string name = word();
    if (name == "bn" || name == "relu") return decorate(name);
    if (name == "add") return residual(depth);
    fresh_ = true;
    if (name == "dense") return dense();
    if (name == "flatten") return flatten();
    if (name == "conv" || name == "dw") return conv(name == "dw");
    if (name == "max" || name == "avg" || name == "gap" || name == "resize") return pool(name);
    return fail(item_, absl::StrCat("expected ", kItems));
  }

  Status decorate(const std::string& name) {
    ArchLayer* l = fresh_ ? &arch_.layers.back() : nullptr;
    const bool add = l != nullptr && l->kind == LayerKind::kAdd;
    if (l == nullptr || (!l->is_compute() && !(add && name == "relu")))
      return fail(item_, name == "bn" ? "bn stands behind conv, dw or dense"
                                      : "relu stands behind conv, dw, dense, bn or add");
    bool& flag = name == "bn" ? l->bn : l->relu;
    if (flag || l->relu) return fail(item_, l->relu ? "behind a relu" : "a second bn");
    flag = true;
    return absl::OkStatus();
  }

  Status residual(std::uint32_t depth) {
    const std::size_t start = item_;
    if (!take('(')) return fail(start, "expected add(layers)");
    if (depth == kMaxDepth) return fail(start, absl::StrCat("more than ", kMaxDepth, " deep"));
    const std::uint16_t from = tensor_;
    ODT_TRY(list(depth + 1));
    if (!take(')')) return fail(at_, "expected ',' or ')'");
    item_ = start;
    if (tensor_ == from || arch_.tensor(tensor_) != arch_.tensor(from))
      return fail(start,
                  absl::StrCat("its layers give ", shape_text(arch_.tensor(tensor_)), "; expected ",
                               shape_text(arch_.tensor(from)), ", the shape they are added to"));
    ArchLayer l;
    l.kind = LayerKind::kAdd;
    l.in1 = tensor_;
    tensor_ = from;
    ODT_TRY(append(l, arch_.tensor(from)));
    fresh_ = true;
    return absl::OkStatus();
  }

  Status append(ArchLayer l, Shape out) {
    if (arch_.layers.size() >= kMaxLayers)
      return fail(item_, absl::StrCat("more than ", kMaxLayers, " layers"));
    if (compiler::count_of(out) > kMaxValues)
      return fail(item_, absl::StrCat("its output is ", shape_text(out), "; at most ", kMaxValues,
                                      " values"));
    l.in0 = tensor_;
    l.in_shape = arch_.tensor(tensor_);
    l.out_shape = std::move(out);
    l.position = item_ + 1;
    arch_.layers.push_back(std::move(l));
    tensor_ = static_cast<std::uint16_t>(arch_.layers.size());
    if (arch_.weights() > kMaxWeights)
      return fail(item_, absl::StrCat("more than ", kMaxWeights, " weights up to here"));
    return absl::OkStatus();
  }

  Status flatten() {
    ArchLayer l;
    l.kind = LayerKind::kFlatten;
    const Shape& in = arch_.tensor(tensor_);
    if (in.size() == 1) return fail(item_, "what comes in is flat already");
    return append(l, {static_cast<std::uint32_t>(compiler::count_of(in))});
  }

  Status dense() {
    std::uint32_t units = 0;
    if (const auto n = number()) {
      units = *n;
      if (units < 1 || units > kMaxWidth)
        return fail(item_, absl::StrCat(units, " units; expected 1..", kMaxWidth));
    } else {
      units = static_cast<std::uint32_t>(compiler::count_of(output_.shape));
    }
    if (arch_.tensor(tensor_).size() != 1) ODT_TRY(flatten());
    ArchLayer l;
    l.kind = LayerKind::kLinear;
    return append(l, {units});
  }

  // "s2", "s2x1", "p1", "p1x0", "p0x1x2x1" (top, left, bottom, right), "d2", "g4": each once.
  Status options(bool conv, bool dw, compiler::ConvGeometry& g) {
    std::string seen;
    while (at_ < text_.size() && text_[at_] >= 'a' && text_[at_] <= 'z') {
      const char key = text_[at_++];
      const bool known = key == 's' || key == 'p' || (conv && (key == 'd' || (key == 'g' && !dw)));
      if (!known || seen.find(key) != std::string::npos)
        return fail(item_, absl::StrCat("'", std::string(1, key), "' at character ", at_,
                                        known ? ": given twice" : ": expected ",
                                        known  ? ""
                                        : dw   ? "s, p or d"
                                        : conv ? "s, p, d or g"
                                               : "s or p"));
      seen += key;
      std::vector<std::uint32_t> v;
      ODT_ASSIGN(v, numbers(key == 'p'   ? 4
                            : key == 'g' ? 1
                                         : 2,
                            key == 'p' ? 0 : 1,
                            key == 's'   ? kMaxStride
                            : key == 'g' ? kMaxWidth
                                         : kMaxKernel));
      if (v.size() == 3) return fail(item_, "padding has 1, 2 or 4 numbers");
      set_option(key, v, g);
    }
    return absl::OkStatus();
  }

  static void set_option(char key, const std::vector<std::uint32_t>& v, compiler::ConvGeometry& g) {
    const auto h = static_cast<std::uint16_t>(v[0]),
               w = static_cast<std::uint16_t>(v[1 % v.size()]);
    if (key == 'g') g.groups = h;
    if (key == 's') g.stride_h = h, g.stride_w = w;
    if (key == 'd') g.dil_h = h, g.dil_w = w;
    if (key == 'p') g.pad_t = g.pad_b = h, g.pad_l = g.pad_r = w;
    if (v.size() == 4)
      g.pad_b = static_cast<std::uint16_t>(v[2]), g.pad_r = static_cast<std::uint16_t>(v[3]);
  }

  Status need_planes() const {
    const Shape& in = arch_.tensor(tensor_);
    if (in.size() == 3) return absl::OkStatus();
    return fail(item_, absl::StrCat("what comes in is ", shape_text(in), "; expected [C,H,W]"));
  }

  // Output height and width of a window.
  Result<Shape> window(const compiler::ConvGeometry& g, std::uint32_t channels) const {
    const Shape& in = arch_.tensor(tensor_);
    const std::uint32_t h = in[1] + g.pad_t + g.pad_b, w = in[2] + g.pad_l + g.pad_r;
    const std::uint32_t span_h = (g.k_h - 1u) * g.dil_h + 1, span_w = (g.k_w - 1u) * g.dil_w + 1;
    if (span_h > h || span_w > w)
      return fail(item_,
                  absl::StrCat("its window of ", span_h, "x", span_w,
                               " is larger than what comes in, ", h, "x", w, " with padding"));
    return Shape{channels, (h - span_h) / g.stride_h + 1, (w - span_w) / g.stride_w + 1};
  }

  static void set_kernel(const std::vector<std::uint32_t>& v, compiler::ConvGeometry& g) {
    g.k_h = static_cast<std::uint16_t>(v[0]);
    g.k_w = static_cast<std::uint16_t>(v[1 % v.size()]);
  }

  Status conv(bool dw) {
    ODT_TRY(need_planes());
    const std::uint32_t in = arch_.tensor(tensor_)[0];
    std::uint32_t out = in;
    if (!dw) {
      const auto n = number();
      if (!n || !take('x')) return fail(item_, "expected convCHANNELSxHEIGHTxWIDTH");
      out = *n;
      if (out < 1 || out > kMaxWidth)
        return fail(item_, absl::StrCat(out, " channels; expected 1..", kMaxWidth));
    }
    ArchLayer l;
    l.kind = LayerKind::kConv;
    std::vector<std::uint32_t> v;
    ODT_ASSIGN(v, numbers(2, 1, kMaxKernel));
    if (v.size() != 2)
      return fail(item_, dw ? "expected dwHEIGHTxWIDTH" : "expected convCHANNELSxHEIGHTxWIDTH");
    set_kernel(v, l.geometry);
    ODT_TRY(options(true, dw, l.geometry));
    if (dw) l.geometry.groups = static_cast<std::uint16_t>(in);
    if (in % l.geometry.groups != 0 || out % l.geometry.groups != 0)
      return fail(item_, absl::StrCat(l.geometry.groups, " groups do not divide ", in,
                                      " channels in and ", out, " out"));
    Shape shape;
    ODT_ASSIGN(shape, window(l.geometry, out));
    return append(l, shape);
  }

  Status pool(const std::string& name) {
    ODT_TRY(need_planes());
    const Shape in = arch_.tensor(tensor_);
    ArchLayer l;
    if (name == "gap") {
      l.kind = LayerKind::kGap;
      return append(l, {in[0], 1, 1});
    }
    l.kind = name == "max"   ? LayerKind::kMaxPool
             : name == "avg" ? LayerKind::kAvgPool
                             : LayerKind::kResize;
    std::vector<std::uint32_t> v;
    ODT_ASSIGN(v, numbers(2, 1, kMaxKernel));
    set_kernel(v, l.geometry);
    if (l.kind == LayerKind::kResize)
      return append(l, {in[0], in[1] * v[0], in[2] * v[v.size() - 1]});
    l.geometry.stride_h = l.geometry.k_h;
    l.geometry.stride_w = l.geometry.k_w;
    ODT_TRY(options(false, false, l.geometry));
    const auto& g = l.geometry;
    if (std::max(g.pad_t, g.pad_b) >= g.k_h || std::max(g.pad_l, g.pad_r) >= g.k_w)
      return fail(item_, "its padding must be smaller than its window");
    Shape shape;
    ODT_ASSIGN(shape, window(g, in[0]));
    return append(l, shape);
  }

  // The order of the values is that of the samples anyway.
  void drop_leading_flatten() {
    auto& layers = arch_.layers;
    if (layers.empty() || layers[0].kind != LayerKind::kFlatten) return;
    for (std::size_t n = 1; n < layers.size(); ++n)
      if (layers[n].in0 == 0 || layers[n].in1 == 0) return;
    arch_.input = layers[0].out_shape;
    layers.erase(layers.begin());
    for (auto& l : layers) {
      --l.in0;
      if (l.in1 != compiler::kNoTensor) --l.in1;
    }
    tensor_ = static_cast<std::uint16_t>(layers.size());
  }

  Status finish() {
    item_ = text_.size();
    const bool any = std::any_of(arch_.layers.begin(), arch_.layers.end(),
                                 [](const ArchLayer& l) { return l.is_compute(); });
    if (!any) return fail(item_, "expected at least one conv, dw or dense");
    const Shape& got = arch_.tensor(tensor_);
    const bool flat = arch_.input.size() == 1 || output_.shape.size() == 1;
    if (flat ? compiler::count_of(got) != compiler::count_of(output_.shape) : got != output_.shape)
      return fail(item_, absl::StrCat("the last layer gives ", shape_text(got), "; ", output_.what,
                                      ": expected ", shape_text(output_.shape)));
    if (got.size() > output_.shape.size()) ODT_TRY(flatten());
    for (auto l = arch_.layers.rbegin(); l != arch_.layers.rend(); ++l) {
      if (l->relu)
        return fail(l->position - 1, "the last layer's output is signed: no relu behind it");
      if (l->is_compute() || l->kind == LayerKind::kAdd) break;
    }
    return absl::OkStatus();
  }

  const std::string text_;
  const ArchOutput output_;
  Arch arch_;
  std::size_t at_ = 0, item_ = 0;
  std::uint16_t tensor_ = 0;  // what the next layer reads
  bool fresh_ = false;        // the item in front in this list made a layer
};

}  // namespace

std::uint64_t Arch::weights() const {
  std::uint64_t n = 0;
  for (const auto& l : layers) {
    if (!l.is_compute()) continue;
    const std::uint64_t out = l.out_shape[0];
    n += l.kind == LayerKind::kLinear
             ? out * compiler::count_of(l.in_shape)
             : out * l.in_shape[0] / l.geometry.groups * l.geometry.k_h * l.geometry.k_w;
  }
  return n;
}

Result<Arch> parse_arch(const std::string& text, const Shape& input, const ArchOutput& output) {
  return Parser(text, input, output).run();
}

std::string arch_of_hidden(const std::vector<std::uint32_t>& hidden) {
  std::string text;
  for (auto h : hidden) absl::StrAppend(&text, "dense", h, ",relu,");
  return text + "dense";
}

const char* const kArchHelp =
    "layers from input to output, separated by commas:\n"
    "  convCxHxW   C channels, kernel HxW; behind it, in any order: sN or sNxM stride,\n"
    "              pN, pNxM or pTxLxBxR padding, dN or dNxM dilation, gN groups\n"
    "  dwHxW       depthwise convolution, with s, p, d\n"
    "  maxN avgN   pools of NxN (or NxM), with s (default: the window) and p\n"
    "  gap         global average pool\n"
    "  resizeN     nearest, N (or NxM) times as large\n"
    "  flatten     [C,H,W] to [N]; dense does it by itself\n"
    "  denseN      N units; dense alone: as many as the data has classes\n"
    "  bn relu     batch norm (folded) and ReLU of the layer in front\n"
    "  add(...)    adds what goes in to what the layers between the brackets make of it\n"
    "e.g. conv8x3x3s2p1,bn,relu,conv16x3x3s2p1,bn,relu,dense";

}  // namespace odt::worker
