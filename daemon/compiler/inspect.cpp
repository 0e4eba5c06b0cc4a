#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/ids.h"
#include "compiler/compile.h"
#include "compiler/plan.h"
#include "odt/odt.h"

namespace odt::compiler {
namespace {

std::string plan_line(const char* label, const MemoryPlan& p) {
  return absl::StrCat("RAM ", label, ", batch 8: ", p.total_bytes, " bytes (weights ",
                      p.weights_bytes, ", best ", p.best_bytes, ", activations ",
                      p.activation_bytes, ", gradients ", p.gradient_bytes, ")\n");
}

const char* kind_text(std::uint8_t kind) {
  static const char* const kNames[] = {"PREQUANT", "CONV2D", "LINEAR", "FLATTEN", "MAXPOOL",
                                       "AVGPOOL",  "GAP",    "ADD",    "CONCAT",  "RESIZE"};
  return kNames[kind - ODT_OP_PREQUANT];  // checked by odt_model_open
}

std::string dims_text(const odt_tensor_t& t) {
  std::vector<int> dims(t.dims, t.dims + t.ndim);
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]",
                      t.dtype == ODT_U8   ? " u8"
                      : t.dtype == ODT_S8 ? " i8"
                                          : " i16");
}

}  // namespace

Result<std::string> inspect_image(const std::string& image, const std::string& file) {
  MemoryPlan k8, k15;
  ODT_ASSIGN(k8, plan_memory(image, file, 8));
  ODT_ASSIGN(k15, plan_memory(image, file, 15));
  std::vector<std::uint32_t> words((image.size() + 3) / 4);
  std::copy(image.begin(), image.end(), reinterpret_cast<char*>(words.data()));
  odt_model_t m{};
  odt_error_t error{};
  if (odt_model_open(&m, words.data(), static_cast<std::uint32_t>(image.size()), &error) != ODT_OK)
    return absl::InternalError(file + ": the image opened once and not twice");
  std::string out = absl::StrCat("model image ", shown(m.name), ", ", image.size(), " bytes, ",
                                 sha256(image).hex(), "\n", m.n_classes, " classes, ", m.n_layers,
                                 " trainable layers, CE scale ", m.ce_scale);
  if (m.src_total > 0)
    absl::StrAppend(&out, ", accuracy on its own data ", m.src_correct, "/", m.src_total);
  absl::StrAppend(&out, "\ninput ", dims_text(m.tensors[m.input]), "\n");
  for (std::uint16_t n = 0; n < m.n_ops; ++n) {
    const odt_op_t& op = m.ops[n];
    absl::StrAppend(&out, "  ", n, " ", kind_text(op.kind),
                    (op.flags & ODT_OP_FLAG_RELU) != 0 ? "_RELU" : "", " -> ",
                    dims_text(m.tensors[op.out]));
    if (op.n_weights > 0)
      absl::StrAppend(&out, ", ", op.n_weights, " weights",
                      op.layer < 0                          ? ", frozen"
                      : op.flags & ODT_OP_FLAG_OFFSETS_ONLY ? ", offsets trainable"
                                                            : ", trainable");
    out += "\n";
  }
  return out + plan_line("k <= 8", k8) + plan_line("k > 8", k15);
}

std::string inspect_manifest(const std::string& manifest) {
  const auto m = nlohmann::json::parse(manifest, nullptr, false);
  if (!m.is_object()) return manifest;
  std::string out =
      absl::StrCat("model ", shown(m.value("name", "")), ", ", m.value("n_classes", 0),
                   " classes, ", m.value("trainable_layers", 0), " trainable layers, input [",
                   absl::StrJoin(m["input"]["shape"].get<std::vector<int>>(), ","), "]",
                   m["input"]["prequant"].is_null() ? "" : " behind PREQUANT",
                   m.value("arithmetic", 0) == 1
                       ? absl::StrCat(", DFP16, input exponent ", m["input"].value("exponent", 0))
                       : "",
                   "\n");
  for (const auto& l : m["layers"]) {
    absl::StrAppend(&out, "  ", l.value("kind", ""), " ", shown(l.value("name", "")), " -> [",
                    absl::StrJoin(l["output_shape"].get<std::vector<int>>(), ","), "]");
    if (l.value("weights", 0) > 0) {
      absl::StrAppend(&out, ", ", l.value("weights", 0), " weights, ",
                      l.value("macs", std::uint64_t{0}), " MACs");
      if (l.contains("weights_exponent"))
        absl::StrAppend(&out, ", exponent ", l.value("weights_exponent", 0));
      else
        absl::StrAppend(&out, ", k ", l.value("k_out_min", 0), "..", l.value("k_out_max", 0),
                        ", |acc| <= ", l.value("accumulator_bound", std::int64_t{0}),
                        l.value("float32_exact", false) ? "" : " (beyond float32's 2^24)");
      if (!l.value("trainable", false)) out += ", frozen";
    }
    out += "\n";
  }
  std::uint64_t macs = 0;
  for (const auto& l : m["layers"]) macs += l.value("macs", std::uint64_t{0});
  absl::StrAppend(&out, "image ", m.value("image_bytes", 0),
                  " bytes (flash, or RAM on a board that gets it over the link) ",
                  m.value("model_hash", ""), "\n", macs, " MACs an inference\n");
  for (const auto& [key, label] : {std::pair{"ram_k8", "k <= 8"}, std::pair{"ram_k15", "k > 8"}}) {
    const auto& p = m[key];
    const auto bytes = [&p](const char* name) { return p.value(name, 0u); };
    out += plan_line(
        label, MemoryPlan{bytes("weights_bytes"), bytes("best_bytes"), bytes("activation_bytes"),
                          bytes("gradient_bytes"), bytes("total_bytes")});
  }
  for (const auto& w : m["warnings"])
    absl::StrAppend(&out, "warning: ", w.get<std::string>(), "\n");
  return out;
}

}  // namespace odt::compiler
