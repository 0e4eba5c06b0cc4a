#include "compiler/compile.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "compiler/dfp.h"
#include "compiler/exponents.h"
#include "compiler/image_writer.h"
#include "compiler/manifest.h"
#include "compiler/match.h"
#include "compiler/onnx_graph.h"
#include "compiler/plan.h"
#include "compiler/tail.h"

namespace odt::compiler {
namespace {

constexpr std::uint32_t kMaxTrainable = 16;
constexpr std::size_t kMaxName = 16;

std::string stem(const std::string& file) {
  std::string s = file.substr(file.rfind('/') + 1);
  s = s.substr(0, s.find('.', 1));
  return shown(s).substr(0, kMaxName);
}

Status set_name(const std::string& file, const CompileOptions& options, Network& net) {
  net.name = options.name.empty() ? stem(file) : options.name;
  const bool printable = std::all_of(net.name.begin(), net.name.end(),
                                     [](unsigned char c) { return c >= ' ' && c != 127; });
  if (net.name.empty() || net.name.size() > kMaxName || !printable)
    return absl::InvalidArgumentError(absl::StrCat(
        "model name '", shown(net.name), "': expected 1..", kMaxName, " printable bytes"));
  return absl::OkStatus();
}

Status mark_trainable(const std::string& file, std::uint32_t wanted, Network& net) {
  const auto compute = static_cast<std::uint32_t>(std::count_if(
      net.layers.begin(), net.layers.end(), [](const Layer& l) { return l.can_train(); }));
  if (wanted > std::min(compute, kMaxTrainable))
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": trainable layers ", wanted, "; expected 1..", std::min(compute, kMaxTrainable),
        " (the model has ", compute, " compute layers), or 0 for all"));
  std::uint32_t left = wanted == 0 ? std::min(compute, kMaxTrainable) : wanted;
  if (wanted == 0 && compute > kMaxTrainable)
    net.warnings.push_back(
        absl::StrCat("only the last ", kMaxTrainable, " of ", compute, " layers are trainable"));
  for (auto l = net.layers.rbegin(); l != net.layers.rend(); ++l) {
    l->trainable = l->can_train() && left > 0;
    if (l->trainable) --left;
  }
  return absl::OkStatus();
}

Status check_bounds(const std::string& file, const Network& net) {
  if (net.arithmetic == Arithmetic::kDfp16) return absl::OkStatus();
  for (const auto& l : net.layers) {
    if (!l.is_compute()) continue;
    if (const auto bound = accumulator_bound(net, l); bound >= (std::int64_t{1} << 31))
      return absl::OutOfRangeError(absl::StrCat(file, ": layer '", shown(l.name),
                                                "': its accumulator can reach ", bound,
                                                "; at most 2147483647 fit into 32 bits"));
  }
  return absl::OkStatus();
}

Result<Network> match_quantised(const Graph& graph, const CompileOptions& options) {
  if (options.input.dtype || options.input.exponent)
    return absl::InvalidArgumentError(
        graph.file +
        ": the type of the input is given, and the file is quantised: its own blocks say it");
  Network network;
  ODT_ASSIGN(network, match(graph, options.task));
  ODT_TRY(read_exponents(graph, network));
  if (options.arithmetic != Arithmetic::kDfp16) return network;
  auto dfp = to_dfp16(network);
  if (dfp.ok()) return dfp;
  return Status(dfp.status().code(), absl::StrCat(graph.file, ": ", dfp.status().message()));
}

Result<Network> match_plain(const Graph& graph, const CompileOptions& options) {
  if (options.arithmetic != Arithmetic::kInteger)
    return match_float(graph, options.input, options.task);
  return absl::FailedPreconditionError(
      graph.file +
      ": int8 needs a file of quantisation-aware training (Floor and Clip behind each layer), and "
      "this one is float32; train one with the PC trainer (odtctl pc-train, or job train-pc of "
      "odt-worker), or compile it as dfp16");
}

}  // namespace

Result<Compiled> compile_network(Network network, const std::string& onnx, const std::string& file,
                                 const CompileOptions& options) {
  ODT_TRY(set_name(file, options, network));
  ODT_TRY(mark_trainable(file, options.trainable_layers, network));
  ODT_TRY(check_bounds(file, network));
  Compiled out;
  auto image = write_image(network);
  if (!image.ok())
    return Status(image.status().code(), absl::StrCat(file, ": ", image.status().message()));
  out.image = *std::move(image);
  MemoryPlan k8, k15;
  ODT_ASSIGN(k8, plan_memory(out.image, file, 8));
  ODT_ASSIGN(k15, plan_memory(out.image, file, 15));
  ODT_ASSIGN(out.ram, plan_table(out.image, file));
  Tail tail;
  ODT_ASSIGN(tail, cut_tail(out.image, file));
  out.manifest = write_manifest(network, out.image, onnx, k8, k15, out.ram, tail);
  out.tail_ram = tail.ram;
  out.tail_sample_bytes = tail.values * tail.value_bytes;
  out.tail = std::move(tail.image);
  out.network = std::move(network);
  return out;
}

Result<Compiled> compile(const std::string& onnx, const std::string& file,
                         const CompileOptions& options) {
  Graph graph;
  ODT_ASSIGN(graph, read_onnx(onnx, file));
  Network network;
  ODT_ASSIGN(network,
             is_qat(graph) ? match_quantised(graph, options) : match_plain(graph, options));
  return compile_network(std::move(network), onnx, file, options);
}

}  // namespace odt::compiler
