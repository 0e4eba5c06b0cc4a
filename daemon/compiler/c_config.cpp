// integer_model_config.h and .c: the trainable layers with everything that they work on.
#include <algorithm>

#include "base/ids.h"
#include "compiler/c_text.h"
#include "compiler/manifest.h"

namespace odt::compiler {
namespace {

std::string targets(const Network& net) {
  if (net.task == Task::kClassify)
    return "/* What the logit of the right and of any other class should be. */\n"
           "extern const int8_t TARGET_MAG_CORRECT[N_CLASSES];\n"
           "extern const int8_t TARGET_MAG_WRONG[N_CLASSES];\n\n";
  return net.task == Task::kRegress
             ? "/* A regression: a target, int8, for each of the N_CLASSES outputs. */\n"
               "#define IS_REGRESSION 1\n\n"
             : "/* An autoencoder: the target of its N_CLASSES outputs is its own input,\n"
               " * tvmgen_default_quantise(). */\n#define IS_AUTOENCODER 1\n\n";
}

std::string header(const CModel& model) {
  const Network& net = *model.net;
  const auto trained = std::count_if(model.layers.begin(), model.layers.end(),
                                     [](const CLayer& l) { return l.layer->is_compute(); });
  return absl::StrCat(
      "/* Model \"", c_comment(net.name),
      "\" for integer on-device training. Written by odtc. */\n"
      "#ifndef INTEGER_MODEL_CONFIG_H\n#define INTEGER_MODEL_CONFIG_H\n\n#include \"odt/ti.h\"\n\n"
      "/* 1: all layers are trained, tvmgen_default_run() only quantises; 0: it runs the frozen\n"
      " * layers too. */\n#define IS_FULL_MODEL_RETRAIN ",
      model.cut == 0 ? 1 : 0, "\n\n#define INPUT_SIZE ", count_of(net.input_shape),
      "         /* floats per sample */\n#define FROZEN_OUTPUT_SIZE ", model.cut_count(), " /* ",
      c_type(model.cut_storage()), " per sample, of tvmgen_default_run() */\n#define N_CLASSES ",
      net.n_classes(), "\n#ifndef BATCH_SIZE\n#define BATCH_SIZE ", kCBatch, "\n#endif\n\n",
      targets(net),
      "#define MU_WEIGHT_DEFAULT 1\n#define MU_OFFSET_DEFAULT 1\n\n#define N_INT_LAYERS ",
      model.layers.size(), "\n#define N_TRAINABLE_LAYERS ", trained,
      "\n\nextern IntLayerDesc_t INT_LAYERS[N_INT_LAYERS];\nextern IntModelCtx_t INT_MODEL;\n"
      "/* SHA-256 of the model image: odt_ti_snapshot(). */\n"
      "extern const uint8_t INT_MODEL_HASH[32];\n\n#endif\n");
}

std::string activations(const CModel& model, std::size_t n) {
  const CLayer& c = model.layers[n];
  const std::string name = absl::StrCat("layer", n);
  if (c.layer->kind == LayerKind::kFlatten) return "";  // those of its input
  std::string out = absl::StrCat("static ", c_type(c.storage), " ", name, "_act_buf[BATCH_SIZE * ",
                                 c.out(), "];\n");
  if (c.layer->relu)
    absl::StrAppend(&out, "static uint8_t ", name, "_relu_mask[BATCH_SIZE * ", (c.out() + 7) / 8,
                    "];\n");
  return out;
}

bool is_average(const Layer& l) {
  return l.kind == LayerKind::kAvgPool || l.kind == LayerKind::kGap;
}

std::string arrays(const CModel& model, std::size_t n) {
  const CLayer& c = model.layers[n];
  const Layer& l = *c.layer;
  const std::string name = absl::StrCat("layer", n);
  // mult is read as uint8: 129..255 stand as negative numbers in TI's int8.
  const std::vector<std::int8_t> mult(l.mult.begin(), l.mult.end());
  std::string out = absl::StrCat("\n/* ", name, ": ", kind_name(l), " [", c.in(), " -> ", c.out(),
                                 "], ", c_comment(l.name), " */\n");
  if (l.is_compute()) out += c_array(absl::StrCat("static int8_t ", name, "_weights"), l.weights);
  if (l.is_compute() || is_average(l))
    absl::StrAppend(
        &out,
        c_array(absl::StrCat("static ", is_average(l) ? "const " : "", "int32_t ", name, "_offset"),
                l.offset, 8),
        c_array(absl::StrCat("static const int8_t ", name, "_mult"), mult),
        c_array(absl::StrCat("static const int8_t ", name, "_k"), l.k));
  return out + activations(model, n);
}

std::string field(const char* name, std::uint64_t value) {
  return absl::StrCat("                .", name, " = ", value, ",\n");
}

std::string scales(const std::string& name) {
  return absl::StrCat("                .offset = ", name,
                      "_offset,\n                .mult = ", name,
                      "_mult,\n                .k = ", name, "_k,\n");
}

std::string conv_fields(const Layer& l, const std::string& name) {
  const ConvGeometry& g = l.conv;
  std::string out = absl::StrCat(
      "                .weights = ", name, "_weights,\n", scales(name),
      field("n_filters", l.n_out()), field("conv_out_h", l.out_shape[1]),
      field("conv_out_w", l.out_shape[2]), field("kH", g.k_h), field("kW", g.k_w),
      field("stride_h", g.stride_h), field("stride_w", g.stride_w), field("pad_h", g.pad_t),
      field("pad_w", g.pad_l), field("input_h", l.in_shape[1]), field("input_w", l.in_shape[2]));
  if (g.dil_h != 1 || g.dil_w != 1)
    absl::StrAppend(&out, field("dil_h", g.dil_h), field("dil_w", g.dil_w));
  if (g.groups != 1) out += field("groups", g.groups);
  return out;
}

std::string pool_fields(const Layer& l, const std::string& name) {
  const bool planes = l.out_shape.size() == 3;  // a GAP may give [C]
  std::string out;
  if (is_average(l)) absl::StrAppend(&out, scales(name), field("n_ch", l.n_out()));
  absl::StrAppend(&out, field("input_h", l.in_shape[1]), field("input_w", l.in_shape[2]),
                  field("out_h", planes ? l.out_shape[1] : 1),
                  field("out_w", planes ? l.out_shape[2] : 1));
  if (l.kind != LayerKind::kMaxPool && l.kind != LayerKind::kAvgPool) return out;
  const ConvGeometry& g = l.conv;
  absl::StrAppend(&out, field("kH", g.k_h), field("kW", g.k_w), field("stride_h", g.stride_h),
                  field("stride_w", g.stride_w), field("pad_h", g.pad_t), field("pad_w", g.pad_l));
  return out;
}

std::string member(const char* name, const std::string& fields) {
  return absl::StrCat("        .", name, " =\n            {\n", fields, "            },\n");
}

std::string kind_fields(const Layer& l, const std::string& name) {
  switch (l.kind) {
    case LayerKind::kConv:
      return member("conv", conv_fields(l, name));
    case LayerKind::kLinear:
      return member("linear",
                    absl::StrCat("                .weights = ", name, "_weights,\n", scales(name)));
    case LayerKind::kAdd:
      return member("add",
                    absl::StrCat("                .m = {", l.offset[0], ", ", l.offset[1], "},\n"));
    case LayerKind::kFlatten:
    case LayerKind::kConcat:
      return "";
    default:
      return member("pool", pool_fields(l, name));
  }
}

// What a layer reads, as in0 and in1 of the interface have it.
std::string link(const char* name, int in) {
  return absl::StrCat("        .", name, " = ",
                      in == kFromFrozen ? "INT_FROM_INPUT" : absl::StrCat(in + 1), ",\n");
}

// The layer that writes the values a FLATTEN renames.
std::string owner(const CModel& model, std::size_t n) {
  while (model.layers[n].layer->kind == LayerKind::kFlatten)
    n = static_cast<std::size_t>(model.layers[n].in0);
  return absl::StrCat("layer", n);
}

// deltas: places in the region of the deltas; empty: a chain, which has no such region.
std::string descriptor(const CModel& model, std::size_t n, const std::vector<CSpan>& deltas) {
  const CLayer& c = model.layers[n];
  const Layer& l = *c.layer;
  const std::string name = absl::StrCat("layer", n);
  std::string out = absl::StrCat(
      "    {\n        .type = INT_LAYER_", kind_name(l), ",\n        .in_size = ", c.in(),
      ",\n        .out_size = ", c.out(), ",\n        .clip_lo = ", l.clip_lo,
      ",\n        .clip_hi = ", l.clip_hi, ",\n        .act_buf = ", owner(model, n),
      "_act_buf,\n        .relu_mask = ", l.relu ? absl::StrCat(name, "_relu_mask") : "NULL", ",\n",
      kind_fields(l, name));
  if (!c.usual()) absl::StrAppend(&out, "        .act_dtype = ", c_dtype(c.storage), ",\n");
  if (deltas.empty()) return out + "    },\n";
  out += link("in0", c.in0);
  if (c.in1 != -1) out += link("in1", c.in1);
  if (n + 1 < model.layers.size())
    absl::StrAppend(&out, "        .delta_buf = (int8_t*)(deltas + BATCH_SIZE * ",
                    deltas[n].offset / 4, "),\n");
  return out + "    },\n";
}

// Bytes per sample of a grad_buf: deltas, and one sample's activations in INTODT_Infer.
std::uint64_t widest(const CModel& model) {
  std::uint64_t most = model.layers[0].in();
  for (const auto& l : model.layers) most = std::max(most, l.bytes());
  return most;
}

struct Buffers {
  std::string text, grad[2];
  std::vector<CSpan> deltas;
};

// A chain's deltas lie in grad_buf by turns; a graph's in one region by lifetime, INTODT_Infer's
// values too.
Buffers buffers(const CModel& model) {
  Buffers out;
  if (model.is_chain()) {
    for (int side = 0; side < 2; ++side) {
      absl::StrAppend(&out.text, side == 0 ? "\n/* In words, for their alignment. */\n" : "",
                      "static int32_t grad_buf_", side, "[(BATCH_SIZE * ", widest(model),
                      " + 3) / 4];\n");
      out.grad[side] = absl::StrCat("(int8_t*)grad_buf_", side);
    }
    return out;
  }
  for (std::size_t n = 0; n < model.layers.size(); ++n) {
    const CLayer& c = model.layers[n];
    out.deltas.push_back({c.delta_until, c.last_reader, c.bytes()});
  }
  const std::uint64_t extent = place(out.deltas);
  absl::StrAppend(
      &out.text,
      "\n/* Deltas, and INTODT_Infer's values: those that live at different times share "
      "places. */\nstatic int32_t deltas[BATCH_SIZE * ",
      extent / 4, "];\n");
  out.grad[0] = absl::StrCat("(int8_t*)(deltas + BATCH_SIZE * ", out.deltas.back().offset / 4, ")");
  out.grad[1] = "(int8_t*)deltas";
  return out;
}

std::string source(const CModel& model, const Hash& hash) {
  const Network& net = *model.net;
  std::string out =
      "/* Written by odtc. */\n#include \"integer_model_config.h\"\n\n"
      "#include <stddef.h>\n\n";
  const Calibration& c = net.calibration;
  if (net.task == Task::kClassify)
    absl::StrAppend(&out, c_array("const int8_t TARGET_MAG_CORRECT", c.target_correct),
                    c_array("const int8_t TARGET_MAG_WRONG", c.target_wrong));
  const std::vector<std::uint8_t> bytes(hash.bytes.begin(), hash.bytes.end());
  out += c_array("const uint8_t INT_MODEL_HASH", bytes);
  for (std::size_t n = 0; n < model.layers.size(); ++n) out += arrays(model, n);
  const Buffers b = buffers(model);
  absl::StrAppend(&out, b.text, "\nIntLayerDesc_t INT_LAYERS[N_INT_LAYERS] = {\n");
  for (std::size_t n = 0; n < model.layers.size(); ++n) out += descriptor(model, n, b.deltas);
  const Storage in = model.cut_storage();
  absl::StrAppend(&out,
                  "};\n\nIntModelCtx_t INT_MODEL = {\n    .n_layers = N_INT_LAYERS,\n    .layers = "
                  "INT_LAYERS,\n    .grad_buf = {",
                  b.grad[0], ", ", b.grad[1],
                  "},\n    .mu_weight = MU_WEIGHT_DEFAULT,\n    .mu_offset = MU_OFFSET_DEFAULT,\n"
                  "    .input_type = ",
                  in == Storage::kU8   ? "INT_INPUT_UINT8"
                  : in == Storage::kS8 ? "INT_INPUT_INT8"
                                       : "INT_INPUT_INT16",
                  ",\n};\n");
  return out;
}

}  // namespace

std::vector<CFile> write_c_config(const CModel& model, const Hash& model_hash) {
  return {{"integer_model_config.h", header(model)},
          {"integer_model_config.c", source(model, model_hash)}};
}

}  // namespace odt::compiler
