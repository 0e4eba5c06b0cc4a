#include "compiler/export.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cmath>

#include "base/ids.h"
#include "compiler/match.h"
#include "compiler/onnx_edit.h"
#include "data/odtw.h"
#include "odt/odt.h"

namespace odt::compiler {
namespace {

constexpr std::size_t kImageHead = 64;
constexpr std::size_t kTensorBytes = 16;  // behind it, the tensor that the board receives

// Weights of one layer as its file is to have them, ONNX order of the image.
struct Values {
  std::vector<double> weights;
  std::vector<double> offsets;
  std::size_t rounded = 0;  // weights that lost bits below the eighth
};

// The 8-bit view that training itself uses (rule 1.5).
std::int32_t view(std::int32_t m, int k) {
  const int f = k - 8;
  return f > 0 ? (m + (1 << (f - 1))) >> f : m * (1 << -f);
}

Values values_of_layer(const Layer& layer, const data::StoredLayer& s) {
  Values out;
  const std::size_t n = layer.n_out();
  for (std::size_t i = 0; i < s.values.size(); ++i) {
    const std::int32_t m = s.values[i];
    if (s.dfp16()) {
      const std::size_t o = layer.kind == LayerKind::kConv ? i / (s.values.size() / n) : i % n;
      out.weights.push_back(std::ldexp(m, s.blocked() ? s.exponents[o] : s.k));
      continue;
    }
    const std::int32_t w = view(m, s.k);
    out.weights.push_back(w);
    if (s.k > 8 && w * (1 << (s.k - 8)) != m) ++out.rounded;
  }
  for (const std::int32_t v : s.offsets)
    out.offsets.push_back(s.dfp16() ? std::ldexp(v, layer.e_b) : v);
  return out;
}

class Exporter {
 public:
  Exporter(const std::string& onnx, const std::string& file, const std::string& weights,
           const std::string& weights_file, const ExportOptions& options)
      : onnx_(onnx), file_(file), bytes_(weights), weights_file_(weights_file), options_(options) {}

  Result<Exported> run() {
    ODT_ASSIGN(weights_, data::parse_weights(bytes_, weights_file_));
    ODT_ASSIGN(compile_options_, compile_options());
    ODT_ASSIGN(compiled_, compile(onnx_, file_, compile_options_));
    ODT_TRY(check_origin());
    if (!model_.ParseFromString(onnx_))  // cannot be: it was compiled
      return absl::InternalError(file_ + ": not an ONNX model");
    OnnxEdit edit(model_, file_);
    std::size_t n = 0;
    for (const Layer& layer : compiled_.network.layers)
      if (layer.trainable) ODT_TRY(put(layer, weights_.layers[n++], edit));
    ODT_TRY(report_rounding());
    edit.apply();
    edit.metadata("odt.weights_hash", sha256(bytes_).hex());
    serialize();
    ODT_TRY(check_result());
    return std::move(out_);
  }

 private:
  // As the model was compiled: what the image says, where it is there.
  Result<CompileOptions> compile_options() const {
    CompileOptions o;
    o.name = options_.name;
    o.trainable_layers = static_cast<std::uint32_t>(weights_.layers.size());
    o.task = options_.task;
    if (!weights_.layers.empty() && weights_.layers[0].dfp16()) ODT_TRY(check_float32());
    const std::string& image = options_.image;
    if (image.size() < kImageHead + kTensorBytes || image.compare(0, 4, "ODTM") != 0) return o;
    const auto byte = [&image](std::size_t at) { return static_cast<std::uint8_t>(image[at]); };
    if (o.name.empty()) {
      o.name = image.substr(48, 16);
      o.name = o.name.substr(0, o.name.find('\0'));
    }
    if (!o.task && byte(38) <= 2) o.task = static_cast<Task>(byte(38));
    if (byte(39) != static_cast<std::uint8_t>(Arithmetic::kDfp16)) return o;
    ODT_TRY(check_float32());
    o.input.dtype = static_cast<Storage>(byte(kImageHead));
    o.input.exponent = static_cast<std::int8_t>(byte(kImageHead + 2));
    return o;
  }

  // A quantised file holds integers of 8 bits at fixed scales: rounding DFP16 weights to them would
  // take away what training changed.
  Status check_float32() const {
    Graph graph;
    ODT_ASSIGN(graph, read_onnx(onnx_, file_));
    if (!is_qat(graph)) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat(
        file_,
        ": the file is quantised and the model made of it is DFP16, whose weights it cannot hold; "
        "train the int8 model, or a float32 file"));
  }

  Status fail(const std::string& what) const {
    return absl::FailedPreconditionError(absl::StrCat(weights_file_, ": ", what));
  }

  Status check_origin() const {
    const Hash own = sha256(compiled_.image);
    if (weights_.model_hash != own)
      return fail(absl::StrCat("weights of model ", weights_.model_hash.hex().substr(0, 16), "; ",
                               file_, " as model '", compiled_.network.name, "' with ",
                               weights_.layers.size(), " trainable layers is ",
                               own.hex().substr(0, 16),
                               " (give the file that was trained, and --name or --image as it was "
                               "compiled)"));
    if (weights_.rules_version != ODT_RULES_VERSION)
      return fail(
          absl::StrCat("rules_version ", weights_.rules_version, "; expected ", ODT_RULES_VERSION));
    std::size_t n = 0;
    for (const Layer& l : compiled_.network.layers) {
      if (!l.trainable) continue;
      const data::StoredLayer& s = weights_.layers[n++];
      const bool dfp16 = compiled_.network.arithmetic == Arithmetic::kDfp16;
      const bool fits = s.kind == static_cast<std::uint8_t>(l.kind) && s.shape == l.weight_shape &&
                        s.offsets.size() == l.n_out() && s.dfp16() == dfp16;
      if (!fits)
        return fail(absl::StrCat("layer ", n - 1, " has shape [", absl::StrJoin(s.shape, ","),
                                 "]; '", shown(l.name), "' of ", file_, " has [",
                                 absl::StrJoin(l.weight_shape, ","), "]"));
    }
    return absl::OkStatus();
  }

  Status unable(const Layer& l, const std::string& what) const {
    return absl::UnimplementedError(absl::StrCat(file_, ": layer '", shown(l.name), "': ", what));
  }

  Status put(const Layer& l, const data::StoredLayer& s, OnnxEdit& edit) {
    if (l.norm_node >= 0 && model_.graph().node(l.norm_node).op_type() == "Clip")
      return unable(l,
                    "an upper bound in front of it (as ReLU6 has) is folded into it, which the "
                    "file cannot take back; use Relu, or train layers without one in front");
    if (l.norm_node >= 0)
      return unable(
          l, absl::StrCat("node number ", l.norm_node + 1, " of the file (",
                          shown(model_.graph().node(l.norm_node).op_type()),
                          ") is folded into it; fold it in the file before compiling (PyTorch's "
                          "exporter does in evaluation mode, onnxsim too)"));
    if (l.node < 0) return unable(l, "its place in the file is not known");
    const Values v = values_of_layer(l, s);
    rounded_ += v.rounded;
    finest_ = std::max<int>(finest_, s.dfp16() ? 0 : s.k);
    if (!v.weights.empty()) ODT_TRY(put_weights(l, v.weights, edit));
    return put_offsets(l, s, v.offsets, edit);
  }

  Status put_weights(const Layer& l, const std::vector<double>& w, OnnxEdit& edit) {
    const onnx::TensorProto* t = edit.constant(l.node, 1);
    if (t == nullptr) return unable(l, "nodes compute its weights; simplify the file (onnxsim)");
    std::vector<double> old;
    ODT_ASSIGN(old, values_of(*t, file_));
    if (old.size() != w.size()) return unable(l, "its weights have another size in the file");
    std::vector<double> now = w;
    const double scale = l.file_scale * (is(l.node, "Gemm") ? attribute(l.node, "alpha", 1) : 1);
    if (attribute(l.node, "transB", 0) != 0) {
      const std::size_t in = l.weight_shape[0], out = l.weight_shape[1];
      for (std::size_t i = 0; i < in; ++i)
        for (std::size_t o = 0; o < out; ++o) now[o * in + i] = w[i * out + o];
    }
    for (double& v : now) v /= scale;
    const double unit = is_integer() ? 1 : std::ldexp(1.0, l.e_w);
    std::uint32_t changed = 0;
    for (std::size_t i = 0; i < w.size(); ++i) changed += w[i] != l.weights[i] * unit ? 1 : 0;
    out_.changed_weights += changed;
    return changed == 0 ? absl::OkStatus() : edit.set(l.node, 1, now);
  }

  bool is(int node, const char* op) const { return model_.graph().node(node).op_type() == op; }
  double attribute(int node, const char* name, double absent) const {
    for (const auto& a : model_.graph().node(node).attribute())
      if (a.name() == name)
        return a.type() == onnx::AttributeProto::INT ? static_cast<double>(a.i()) : double{a.f()};
    return absent;
  }

  Status put_offsets(const Layer& l, const data::StoredLayer& s, const std::vector<double>& want,
                     OnnxEdit& edit) {
    std::vector<double> more(want.size());
    const double unit = s.dfp16() ? std::ldexp(1.0, l.e_b) : 1;
    bool any = false;
    for (std::size_t o = 0; o < want.size(); ++o) {
      more[o] = want[o] - unit * l.offset[o];
      any = any || more[o] != 0;
      out_.changed_offsets += more[o] != 0 ? 1 : 0;
    }
    if (!any) return absl::OkStatus();
    if (l.offset_node >= 0)
      return add_to(l, l.offset_node, operand(edit, l.offset_node), more, edit);
    if (edit.constant(l.node, 2) != nullptr) return add_to(l, l.node, 2, more, edit);
    if (is(l.node, "MatMul"))
      return unable(l, "the file has no Add behind its MatMul that could take the offsets");
    edit.add_bias(l.node, more);
    return absl::OkStatus();
  }

  // The constant input of an Add or Sub; -1: none.
  static int operand(const OnnxEdit& edit, int node) {
    for (const int slot : {1, 0})
      if (edit.constant(node, slot) != nullptr) return slot;
    return -1;
  }

  // What a constant holds, plus `more`: one value per output.
  Status add_to(const Layer& l, int node, int slot, const std::vector<double>& more,
                OnnxEdit& edit) {
    const onnx::TensorProto* t = slot < 0 ? nullptr : edit.constant(node, slot);
    if (t == nullptr) return unable(l, "nodes compute its offsets; simplify the file (onnxsim)");
    std::vector<double> old;
    ODT_ASSIGN(old, values_of(*t, file_));
    const bool one = old.size() == 1 && more.size() != 1;
    if (!one && old.size() != more.size())
      return unable(l, absl::StrCat("its offsets are ", old.size(), " values in the file"));
    std::vector<double> now;
    for (std::size_t o = 0; o < more.size(); ++o) {
      double v = old[one ? 0 : o];
      if (more[o] != 0 && std::abs(v - std::nearbyint(v)) < 1.0 / 64 && is_integer())
        v = std::nearbyint(v);
      now.push_back(v + more[o] * factor(node, slot));
    }
    if (!one) return edit.set(node, slot, now);
    // Outputs differ now: one value each.
    std::vector<std::int64_t> shape = {1, static_cast<std::int64_t>(more.size())};
    if (l.kind == LayerKind::kConv) shape.insert(shape.end(), {1, 1});
    if (node == l.node) shape = {static_cast<std::int64_t>(more.size())};
    return edit.set(node, slot, now, &shape);
  }

  bool is_integer() const { return compiled_.network.arithmetic == Arithmetic::kInteger; }

  // What a unit of the constant is worth in offsets.
  double factor(int node, int slot) const {
    if (is(node, "Sub")) return -1;
    return is(node, "Gemm") && slot == 2 ? 1 / attribute(node, "beta", 1) : 1;
  }

  Status report_rounding() {
    if (rounded_ == 0) return absl::OkStatus();
    const std::string text =
        absl::StrCat(rounded_, " weights are finer than 8 bits (k up to ", finest_, ")");
    if (options_.exact)
      return fail(absl::StrCat(text, "; without --exact they are rounded, half up"));
    out_.warnings.push_back(
        absl::StrCat(text, ": rounded, half up, to what training computes with"));
    return absl::OkStatus();
  }

  void serialize() {
    google::protobuf::io::StringOutputStream stream(&out_.onnx);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    model_.SerializeToCodedStream(&coded);
  }

  // The new file compiles to the weights that it was given.
  Status check_result() {
    CompileOptions o = compile_options_;
    o.name = compiled_.network.name;
    Compiled again;
    ODT_ASSIGN(again, compile(out_.onnx, file_, o));
    std::size_t n = 0;
    for (std::size_t i = 0; i < compiled_.network.layers.size(); ++i) {
      const Layer& l = compiled_.network.layers[i];
      if (!l.trainable) continue;
      const Values want = values_of_layer(l, weights_.layers[n++]);
      const Layer& got = again.network.layers[i];
      const double w = is_integer() ? 1 : std::ldexp(1.0, got.e_w);
      const double b = is_integer() ? 1 : std::ldexp(1.0, got.e_b);
      for (std::size_t j = 0; j < want.weights.size(); ++j)
        if (got.weights[j] * w != want.weights[j])
          return differs(l, "weight", j, want.weights[j], got.weights[j] * w);
      for (std::size_t j = 0; j < want.offsets.size(); ++j)
        if (is_integer() && got.offset[j] * b != want.offsets[j])
          return differs(l, "offset", j, want.offsets[j], got.offset[j] * b);
    }
    return absl::OkStatus();
  }

  Status differs(const Layer& l, const char* what, std::size_t n, double want, double got) const {
    return unable(
        l, absl::StrCat(what, " ", n, " is ", want, ", which the file can hold as ", got, " only"));
  }

  const std::string &onnx_, &file_, &bytes_, &weights_file_;
  const ExportOptions& options_;
  data::StoredWeights weights_;
  CompileOptions compile_options_;
  Compiled compiled_;
  onnx::ModelProto model_;
  Exported out_;
  std::size_t rounded_ = 0;
  int finest_ = 0;
};

}  // namespace

Result<Exported> export_onnx(const std::string& onnx, const std::string& file,
                             const std::string& weights, const std::string& weights_file,
                             const ExportOptions& options) {
  return Exporter(onnx, file, weights, weights_file, options).run();
}

}  // namespace odt::compiler
