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
    "                           struct tvmgen_default_outputs* outputs);\n\n"
    "#ifdef __cplusplus\n}\n#endif\n#endif\n";

const char* dtype_name(Storage s) {
  return s == Storage::kU8 ? "ODT_U8" : s == Storage::kS8 ? "ODT_S8" : "ODT_S16";
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
  return absl::StrCat("    {.dtype = ", dtype_name(storage), ", .ndim = ", shape.size(),
                      ", .dims = {", dims, "}, .count = ", count_of(shape), "},\n");
}

std::string arrays(const Layer& l, std::size_t n) {
  const std::string name = absl::StrCat("frozen", n);
  return absl::StrCat("\n/* ", kind_name(l), ", ", c_comment(l.name), " */\n",
                      c_array(absl::StrCat("static const int8_t ", name, "_weights"), l.weights),
                      c_array(absl::StrCat("static const int32_t ", name, "_offset"), l.offset, 8),
                      c_array(absl::StrCat("static const uint8_t ", name, "_mult"), l.mult),
                      c_array(absl::StrCat("static const int8_t ", name, "_k"), l.k));
}

std::string op(const Layer& l, std::size_t n) {
  const std::string tensors =
      absl::StrCat(", .in0 = ", n, ", .in1 = ODT_NO_TENSOR, .out = ", n + 1);
  if (l.kind == LayerKind::kFlatten)
    return absl::StrCat("    {.kind = ODT_OP_FLATTEN", tensors, "},\n");
  const std::string name = absl::StrCat("frozen", n);
  std::string out =
      absl::StrCat("    {.kind = ODT_OP_", l.kind == LayerKind::kConv ? "CONV2D" : "LINEAR",
                   tensors, ",\n     .clip_lo = ", l.clip_lo, ",\n     .clip_hi = ", l.clip_hi,
                   ",\n     .weights = ", name, "_weights,\n     .n_weights = ", l.weights.size(),
                   ",\n     .offset = ", name, "_offset,\n     .n_out = ", l.n_out(),
                   ",\n     .k_out = ", name, "_k,\n     .mult = ", name, "_mult");
  if (l.kind == LayerKind::kConv) {
    const ConvGeometry& g = l.conv;
    absl::StrAppend(&out, ",\n     .k_h = ", g.k_h, ",\n     .k_w = ", g.k_w,
                    ",\n     .stride_h = ", g.stride_h, ",\n     .stride_w = ", g.stride_w,
                    ",\n     .pad_t = ", g.pad_t, ",\n     .pad_l = ", g.pad_l);
    absl::StrAppend(&out, ",\n     .dil_h = ", g.dil_h, ",\n     .dil_w = ", g.dil_w,
                    ",\n     .groups = ", g.groups);
  }
  return out + "},\n";
}

std::string call(const Network& net) {
  const std::int32_t lo =
      net.prequant ? net.prequant->clip_lo : (net.input_storage == Storage::kU8 ? 0 : -128);
  const std::int32_t hi =
      net.prequant ? net.prequant->clip_hi : (net.input_storage == Storage::kU8 ? 255 : 127);
  return absl::StrCat("odt_ti_prequant(&prequant, ", lo, ", ", hi, ", inputs->input, ",
                      count_of(net.input_shape), ", ", dtype_name(net.input_storage), ", ");
}

// Layers behind PREQUANT in two buffers by turns, and the tables that the library reads.
std::string frozen_layers(const Network& net, std::size_t n_layers) {
  Storage storage = net.input_storage;
  std::string tensors = tensor(net.layers[0].in_shape, storage), ops, out;
  std::string at = "quantised", values = "    NULL, /* quantised, as input */\n";
  std::uint64_t widest = 1;
  int side = 0;
  for (std::size_t n = 0; n < n_layers; ++n) {
    const Layer& l = net.layers[n];
    if (l.is_compute()) {
      storage = storage_of(l.clip_lo, l.clip_hi);
      out += arrays(l, n);
      at = absl::StrCat("scratch[", side, "]");
      side ^= 1;
    }
    tensors += tensor(l.out_shape, storage);
    ops += op(l, n);
    if (n + 1 == n_layers) at = "NULL";  // the caller's
    absl::StrAppend(&values, "    ", at, ",\n");
    if (n + 1 < n_layers)
      widest = std::max(widest, count_of(l.out_shape) * (storage == Storage::kS16 ? 2 : 1));
  }
  absl::StrAppend(&out, "\nstatic const odt_tensor_t tensors[", n_layers + 1, "] = {\n", tensors,
                  "};\nstatic const odt_op_t ops[", n_layers, "] = {\n", ops,
                  "};\n\nstatic int32_t quantised[", (count_of(net.input_shape) + 3) / 4, "];\n");
  if (values.find("scratch") != std::string::npos)
    absl::StrAppend(&out, "static int32_t scratch[2][", (widest + 3) / 4, "];\n");
  absl::StrAppend(&out, "static void* const values[", n_layers + 1, "] = {\n", values,
                  "};\nstatic const odt_ti_frozen_t frozen = {\n    .ops = ops,\n"
                  "    .tensors = tensors,\n    .n_ops = ",
                  n_layers, ",\n    .input = 0,\n    .output = ", n_layers,
                  ",\n    .values = values,\n};\n");
  return out;
}

}  // namespace

std::vector<CFile> write_c_frozen(const Network& net) {
  std::size_t n_layers = first_trainable(net);
  while (n_layers > 0 && !net.layers[n_layers - 1].is_compute()) --n_layers;  // changes no byte
  const bool computes = n_layers > 0;
  std::string out = absl::StrCat(
      "/* Written by odtc. */\n#include \"tvmgen_default.h\"\n\n#include <stddef.h>\n\n#include "
      "\"odt/ti.h\"\n\n",
      prequant(net));
  if (computes) out += frozen_layers(net, n_layers);
  absl::StrAppend(&out,
                  "\nint32_t tvmgen_default_run(struct tvmgen_default_inputs* inputs,\n"
                  "                           struct tvmgen_default_outputs* outputs) {\n  ",
                  call(net),
                  computes ? "quantised);\n  odt_ti_frozen_run(&frozen, quantised, "
                             "outputs->output);\n"
                           : "outputs->output);\n",
                  "  return 0;\n}\n");
  return {{"tvmgen_default.h", kHeader}, {"tvmgen_default.c", out}};
}

}  // namespace odt::compiler
