// integer_model_config.h and .c: the trainable layers with everything that they work on.
#include <algorithm>

#include "base/ids.h"
#include "compiler/c_text.h"
#include "compiler/manifest.h"

namespace odt::compiler {
namespace {

struct Item {
  const Layer* layer;
  Storage storage;  // of its output
  bool usual() const { return storage == (layer->relu ? Storage::kU8 : Storage::kS8); }
  std::uint64_t in() const { return count_of(layer->in_shape); }
  std::uint64_t out() const { return count_of(layer->out_shape); }
};

std::vector<Item> items_of(const Network& net) {
  std::vector<Item> items;
  for (std::size_t n = first_trainable(net); n < net.layers.size(); ++n)
    if (net.layers[n].is_compute())
      items.push_back({&net.layers[n], storage_of(net.layers[n].clip_lo, net.layers[n].clip_hi)});
  return items;
}

std::string header(const Network& net, const std::vector<Item>& items) {
  const bool full =
      std::none_of(net.layers.begin(), net.layers.begin() + static_cast<long>(first_trainable(net)),
                   [](const Layer& l) { return l.is_compute(); });
  return absl::StrCat(
      "/* Model \"", c_comment(net.name),
      "\" for integer on-device training. Written by odtc. */\n"
      "#ifndef INTEGER_MODEL_CONFIG_H\n#define INTEGER_MODEL_CONFIG_H\n\n#include \"odt/ti.h\"\n\n"
      "/* 1: all layers are trained, tvmgen_default_run() only quantises; 0: it runs the frozen\n"
      " * layers too. */\n#define IS_FULL_MODEL_RETRAIN ",
      full ? 1 : 0, "\n\n#define INPUT_SIZE ", count_of(net.input_shape),
      "         /* floats per sample */\n#define FROZEN_OUTPUT_SIZE ", cut_count(net), " /* ",
      c_type(cut_storage(net)), " per sample, of tvmgen_default_run() */\n#define N_CLASSES ",
      net.n_classes(), "\n#ifndef BATCH_SIZE\n#define BATCH_SIZE ", kCBatch,
      "\n#endif\n\n/* What the logit of the right and of any other class should be. */\n"
      "extern const int8_t TARGET_MAG_CORRECT[N_CLASSES];\n"
      "extern const int8_t TARGET_MAG_WRONG[N_CLASSES];\n\n"
      "#define MU_WEIGHT_DEFAULT 1\n#define MU_OFFSET_DEFAULT 1\n\n#define N_INT_LAYERS ",
      items.size(), "\n#define N_TRAINABLE_LAYERS ", items.size(),
      "\n\nextern IntLayerDesc_t INT_LAYERS[N_INT_LAYERS];\nextern IntModelCtx_t INT_MODEL;\n"
      "/* SHA-256 of the model image: odt_ti_snapshot(). */\n"
      "extern const uint8_t INT_MODEL_HASH[32];\n\n#endif\n");
}

std::string arrays(const Item& item, std::size_t n) {
  const Layer& l = *item.layer;
  const std::string name = absl::StrCat("layer", n);
  // mult is read as uint8: 129..255 stand as negative numbers in TI's int8.
  const std::vector<std::int8_t> mult(l.mult.begin(), l.mult.end());
  std::string out = absl::StrCat("\n/* ", name, ": ", kind_name(l), " [", item.in(), " -> ",
                                 item.out(), "], ", c_comment(l.name), " */\n");
  absl::StrAppend(&out, c_array(absl::StrCat("static int8_t ", name, "_weights"), l.weights),
                  c_array(absl::StrCat("static int32_t ", name, "_offset"), l.offset, 8),
                  c_array(absl::StrCat("static const int8_t ", name, "_mult"), mult),
                  c_array(absl::StrCat("static const int8_t ", name, "_k"), l.k), "static ",
                  c_type(item.storage), " ", name, "_act_buf[BATCH_SIZE * ", item.out(), "];\n");
  if (l.relu)
    absl::StrAppend(&out, "static uint8_t ", name, "_relu_mask[BATCH_SIZE * ", (item.out() + 7) / 8,
                    "];\n");
  return out;
}

std::string conv_fields(const Layer& l) {
  const ConvGeometry& g = l.conv;
  std::string out = absl::StrCat(
      "                .n_filters = ", l.n_out(),
      ",\n                .conv_out_h = ", l.out_shape[1],
      ",\n                .conv_out_w = ", l.out_shape[2], ",\n                .kH = ", g.k_h,
      ",\n                .kW = ", g.k_w, ",\n                .stride_h = ", g.stride_h,
      ",\n                .stride_w = ", g.stride_w, ",\n                .pad_h = ", g.pad_t,
      ",\n                .pad_w = ", g.pad_l, ",\n                .input_h = ", l.in_shape[1],
      ",\n                .input_w = ", l.in_shape[2], ",\n");
  if (g.dil_h != 1 || g.dil_w != 1)
    absl::StrAppend(&out, "                .dil_h = ", g.dil_h,
                    ",\n                .dil_w = ", g.dil_w, ",\n");
  if (g.groups != 1) absl::StrAppend(&out, "                .groups = ", g.groups, ",\n");
  return out;
}

std::string descriptor(const Item& item, std::size_t n) {
  const Layer& l = *item.layer;
  const bool conv = l.kind == LayerKind::kConv;
  const std::string name = absl::StrCat("layer", n);
  std::string out = absl::StrCat(
      "    {\n        .type = INT_LAYER_", kind_name(l), ",\n        .in_size = ", item.in(),
      ",\n        .out_size = ", item.out(), ",\n        .clip_lo = ", l.clip_lo,
      ",\n        .clip_hi = ", l.clip_hi, ",\n        .act_buf = ", name,
      "_act_buf,\n        .relu_mask = ", l.relu ? absl::StrCat(name, "_relu_mask") : "NULL",
      ",\n        .", conv ? "conv" : "linear",
      " =\n            {\n                .weights = ", name,
      "_weights,\n                .offset = ", name, "_offset,\n                .mult = ", name,
      "_mult,\n                .k = ", name, "_k,\n");
  if (conv) out += conv_fields(l);
  out += "            },\n";
  if (!item.usual())
    absl::StrAppend(&out, "        .act_dtype = ",
                    item.storage == Storage::kS16  ? "ODT_S16"
                    : item.storage == Storage::kU8 ? "ODT_U8"
                                                   : "ODT_S8",
                    ",\n");
  return out + "    },\n";
}

// Bytes per sample of a grad_buf: deltas, and one sample's activations in INTODT_Infer.
std::uint64_t widest(const std::vector<Item>& items) {
  std::uint64_t most = items[0].in();
  for (const auto& i : items) most = std::max(most, i.out() * (i.storage == Storage::kS16 ? 2 : 1));
  return most;
}

std::string source(const Network& net, const std::vector<Item>& items, const Hash& hash) {
  std::string out =
      "/* Written by odtc. */\n#include \"integer_model_config.h\"\n\n"
      "#include <stddef.h>\n\n";
  const Calibration& c = net.calibration;
  absl::StrAppend(&out, c_array("const int8_t TARGET_MAG_CORRECT", c.target_correct),
                  c_array("const int8_t TARGET_MAG_WRONG", c.target_wrong));
  const std::vector<std::uint8_t> bytes(hash.bytes.begin(), hash.bytes.end());
  out += c_array("const uint8_t INT_MODEL_HASH", bytes);
  for (std::size_t n = 0; n < items.size(); ++n) out += arrays(items[n], n);
  for (const char* name : {"grad_buf_0", "grad_buf_1"})
    absl::StrAppend(&out, name[9] == '0' ? "\n/* In words, for their alignment. */\n" : "",
                    "static int32_t ", name, "[(BATCH_SIZE * ", widest(items), " + 3) / 4];\n");
  out += "\nIntLayerDesc_t INT_LAYERS[N_INT_LAYERS] = {\n";
  for (std::size_t n = 0; n < items.size(); ++n) out += descriptor(items[n], n);
  const Storage in = cut_storage(net);
  absl::StrAppend(&out,
                  "};\n\nIntModelCtx_t INT_MODEL = {\n    .n_layers = N_INT_LAYERS,\n    .layers = "
                  "INT_LAYERS,\n"
                  "    .grad_buf = {(int8_t*)grad_buf_0, (int8_t*)grad_buf_1},\n"
                  "    .mu_weight = MU_WEIGHT_DEFAULT,\n    .mu_offset = MU_OFFSET_DEFAULT,\n"
                  "    .input_type = ",
                  in == Storage::kU8   ? "INT_INPUT_UINT8"
                  : in == Storage::kS8 ? "INT_INPUT_INT8"
                                       : "INT_INPUT_INT16",
                  ",\n};\n");
  return out;
}

}  // namespace

std::vector<CFile> write_c_config(const Network& net, const Hash& model_hash) {
  const auto items = items_of(net);
  return {{"integer_model_config.h", header(net, items)},
          {"integer_model_config.c", source(net, items, model_hash)}};
}

}  // namespace odt::compiler
