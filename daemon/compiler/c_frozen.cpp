// tvmgen_default.h and .c: PREQUANT and the frozen layers behind the name that TI's programs call.
#include <algorithm>

#include "compiler/c_text.h"
#include "compiler/manifest.h"

namespace odt::compiler {
namespace {

constexpr char kHeader[] =
    "/* The part of the model in front of the trained layers. Written by odtc. */\n"
    "#ifndef TVMGEN_DEFAULT_H\n#define TVMGEN_DEFAULT_H\n\n#include <stdint.h>\n\n"
    "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
    "struct tvmgen_default_inputs {\n  const void* input; /* float [INPUT_SIZE] */\n};\n"
    "struct tvmgen_default_outputs {\n  void* output; /* [FROZEN_OUTPUT_SIZE] */\n};\n\n"
    "/* One sample; 0. */\n"
    "int32_t tvmgen_default_run(struct tvmgen_default_inputs* inputs,\n"
    "                           struct tvmgen_default_outputs* outputs);\n";
constexpr char kOwnInput[] =
    "\n/* The input as integers [INPUT_SIZE]: what the autoencoder's outputs are compared with. "
    "*/\n"
    "void tvmgen_default_quantise(const float* input, int8_t* output);\n";
constexpr char kEnd[] = "\n#ifdef __cplusplus\n}\n#endif\n#endif\n";

// Of what the first layer reads: without a leading flatten.
const Shape& input_shape(const Network& net) {
  for (const Layer& l : net.layers)
    if (l.in0 == 0) return l.in_shape;
  return net.input_shape;
}

std::string prequant(const Network& net) {
  std::vector<float> offset = {0.0f}, scale = {1.0f};
  std::string note = "The model has no PREQUANT block: whole numbers are taken as they are.";
  if (net.prequant) {
    const Prequant& p = *net.prequant;
    note = "PREQUANT: y = clip(floor((x + offset) * scale)).";
    offset = p.offset;
    scale.clear();
    // Exact: an int16 times a power of two.
    for (std::size_t i = 0; i < p.mult.size(); ++i)
      scale.push_back(static_cast<float>(p.mult[i]) /
                      static_cast<float>(std::uint32_t{1} << p.k[i]));
  }
  return absl::StrCat("/* ", note, " */\n",
                      c_array("static const float prequant_offset", offset, 8),
                      c_array("static const float prequant_scale", scale, 8),
                      "static const IntPrequant_t prequant = {prequant_offset, prequant_scale, ",
                      offset.size(), "};\n");
}

std::string tensor(const Shape& shape, Storage storage) {
  std::string dims;
  for (auto d : shape) absl::StrAppend(&dims, dims.empty() ? "" : ", ", d);
  return absl::StrCat("    {.dtype = ", c_dtype(storage), ", .ndim = ", shape.size(), ", .dims = {",
                      dims, "}, .count = ", count_of(shape), "},\n");
}

std::string arrays(const Layer& l, std::size_t n) {
  const std::string name = absl::StrCat("frozen", n);
  std::string out = absl::StrCat("\n/* ", kind_name(l), ", ", c_comment(l.name), " */\n");
  if (!l.weights.empty())
    out += c_array(absl::StrCat("static const int8_t ", name, "_weights"), l.weights);
  out += c_array(absl::StrCat("static const int32_t ", name, "_offset"), l.offset, 8);
  if (l.k.empty()) return out;
  return out + c_array(absl::StrCat("static const uint8_t ", name, "_mult"), l.mult) +
         c_array(absl::StrCat("static const int8_t ", name, "_k"), l.k);
}

std::string geometry(const Layer& l) {
  const ConvGeometry& g = l.conv;
  std::string out =
      absl::StrCat(",\n     .k_h = ", g.k_h, ",\n     .k_w = ", g.k_w,
                   ",\n     .stride_h = ", g.stride_h, ",\n     .stride_w = ", g.stride_w,
                   ",\n     .pad_t = ", g.pad_t, ",\n     .pad_l = ", g.pad_l);
  if (l.kind == LayerKind::kConv)
    absl::StrAppend(&out, ",\n     .dil_h = ", g.dil_h, ",\n     .dil_w = ", g.dil_w,
                    ",\n     .groups = ", g.groups);
  return out;
}

std::string op(const Layer& l, std::size_t n) {
  std::string out = absl::StrCat(
      "    {.kind = ODT_OP_", op_name(l), ", .in0 = ", l.in0,
      ", .in1 = ", l.in1 == kNoTensor ? "ODT_NO_TENSOR" : absl::StrCat(l.in1), ", .out = ", n + 1);
  if (l.kind == LayerKind::kFlatten) return out + "},\n";
  const std::string name = absl::StrCat("frozen", n);
  absl::StrAppend(&out, ",\n     .clip_lo = ", l.clip_lo, ",\n     .clip_hi = ", l.clip_hi);
  if (!l.weights.empty())
    absl::StrAppend(&out, ",\n     .weights = ", name,
                    "_weights,\n     .n_weights = ", l.weights.size());
  if (!l.offset.empty())
    absl::StrAppend(&out, ",\n     .offset = ", name, "_offset,\n     .n_out = ", l.n_out());
  if (!l.k.empty())
    absl::StrAppend(&out, ",\n     .k_out = ", name, "_k,\n     .mult = ", name, "_mult");
  if (l.kind == LayerKind::kConv || l.kind == LayerKind::kMaxPool || l.kind == LayerKind::kAvgPool)
    out += geometry(l);
  return out + "},\n";
}

std::string call(const Network& net, const char* input) {
  const std::int32_t lo =
      net.prequant ? net.prequant->clip_lo : (net.input_storage == Storage::kU8 ? 0 : -128);
  const std::int32_t hi =
      net.prequant ? net.prequant->clip_hi : (net.input_storage == Storage::kU8 ? 255 : 127);
  return absl::StrCat("odt_ti_prequant(&prequant, ", lo, ", ", hi, ", ", input, ", ",
                      count_of(net.input_shape), ", ", c_dtype(net.input_storage), ", ");
}

// The frozen part's values: by tensor, where they lie in one region. The cut tensor is the
// caller's.
struct Values {
  std::vector<CSpan> spans;       // by tensor
  std::vector<std::size_t> root;  // by tensor
  std::uint64_t extent = 0;
};

bool read_inside(const CModel& model, std::size_t tensor) {
  const auto& layers = model.net->layers;
  return std::any_of(layers.begin(), layers.begin() + static_cast<long>(model.first),
                     [&](const Layer& l) { return l.in0 == tensor || l.in1 == tensor; });
}

Values place_values(const CModel& model) {
  const Network& net = *model.net;
  Values v;
  for (std::size_t t = 0; t <= model.first; ++t) {
    const int made = static_cast<int>(t) - 1;
    v.root.push_back(root_of(net, static_cast<std::uint16_t>(t)));
    const Shape& shape = t == 0 ? net.input_shape : net.layers[t - 1].out_shape;
    const bool wide = storage_of_tensor(net, static_cast<std::uint16_t>(t)) == Storage::kS16;
    const bool own = v.root[t] == t && t != model.cut;
    v.spans.push_back({made, made, own ? count_of(shape) * (wide ? 2 : 1) : 0});
  }
  for (std::size_t n = 0; n < model.first; ++n)
    for (const std::uint16_t in : {net.layers[n].in0, net.layers[n].in1})
      if (in != kNoTensor) v.spans[v.root[in]].to = static_cast<int>(n);
  v.extent = place(v.spans);
  return v;
}

// Where odtc put tensor `t`.
std::string value_of(const CModel& model, const Values& v, std::size_t t) {
  const std::size_t root = v.root[t];
  return root == model.cut ? "NULL" : absl::StrCat("scratch + ", v.spans[root].offset / 4);
}

// The tables that the library reads.
std::string frozen_layers(const CModel& model, const Values& v) {
  const Network& net = *model.net;
  std::string tensors, ops, out, values;
  std::size_t n_ops = 0;
  for (std::size_t t = 0; t <= model.first; ++t) {
    const Layer* made_by = t == 0 ? nullptr : &net.layers[t - 1];
    tensors += tensor(made_by == nullptr ? input_shape(net) : made_by->out_shape,
                      storage_of_tensor(net, static_cast<std::uint16_t>(t)));
    absl::StrAppend(&values, "    ", value_of(model, v, t), ",\n");
    if (made_by == nullptr) continue;
    // A FLATTEN at the end changes no byte.
    if (made_by->kind == LayerKind::kFlatten && !read_inside(model, t)) continue;
    if (!made_by->offset.empty()) out += arrays(*made_by, t - 1);
    ops += op(*made_by, t - 1);
    ++n_ops;
  }
  absl::StrAppend(
      &out, "\nstatic const odt_tensor_t tensors[", model.first + 1, "] = {\n", tensors,
      "};\nstatic const odt_op_t ops[", n_ops, "] = {\n", ops,
      "};\n\n/* Values that live at different times share places; the output is the caller's. "
      "*/\nstatic int32_t scratch[",
      v.extent / 4, "];\nstatic void* const values[", model.first + 1, "] = {\n", values,
      "};\nstatic const odt_ti_frozen_t frozen = {\n    .ops = ops,\n    .tensors = tensors,\n"
      "    .n_ops = ",
      n_ops, ",\n    .input = 0,\n    .output = ", model.cut, ",\n    .values = values,\n};\n");
  return out;
}

}  // namespace

std::vector<CFile> write_c_frozen(const CModel& model) {
  const Network& net = *model.net;
  const bool computes = model.cut != 0, own = net.task == Task::kAutoencode;
  std::string out = absl::StrCat(
      "/* Written by odtc. */\n#include \"tvmgen_default.h\"\n\n#include <stddef.h>\n\n#include "
      "\"odt/ti.h\"\n\n",
      prequant(net));
  std::string quantised = "outputs->output";
  if (computes) {
    const Values v = place_values(model);
    out += frozen_layers(model, v);
    quantised = value_of(model, v, 0);
  }
  absl::StrAppend(&out,
                  "\nint32_t tvmgen_default_run(struct tvmgen_default_inputs* inputs,\n"
                  "                           struct tvmgen_default_outputs* outputs) {\n  ",
                  call(net, "inputs->input"), quantised, ");\n");
  if (computes)
    absl::StrAppend(&out, "  odt_ti_frozen_run(&frozen, ", quantised, ", outputs->output);\n");
  out += "  return 0;\n}\n";
  if (own)
    absl::StrAppend(&out,
                    "\nvoid tvmgen_default_quantise(const float* input, int8_t* output) {\n  ",
                    call(net, "input"), "output);\n}\n");
  return {{"tvmgen_default.h", absl::StrCat(kHeader, own ? kOwnInput : "", kEnd)},
          {"tvmgen_default.c", out}};
}

}  // namespace odt::compiler
