#include "compiler/exponents.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <cmath>
#include <optional>

namespace odt::compiler {
namespace {

constexpr int kLimit = 100;

using Exponent = std::optional<int>;

Exponent log2_exact(double v) {
  int e = 0;
  if (!(v > 0) || std::frexp(v, &e) != 0.5) return std::nullopt;
  return e - 1;
}

// log2 of 2^k / mult where it is the same for all outputs.
Exponent shift_of(const Layer& l) {
  Exponent out;
  for (std::size_t n = 0; n < l.k.size(); ++n) {
    const Exponent e = log2_exact(std::ldexp(1.0, l.k[n]) / (l.mult.empty() ? 1 : l.mult[n]));
    if (!e || (out && *out != *e)) return std::nullopt;
    out = e;
  }
  return out;
}

Exponent sum_of(Exponent a, Exponent b) {
  if (!a || !b) return std::nullopt;
  return *a + *b;
}

Exponent output_of(const Layer& l, Exponent a, Exponent b, Exponent weights) {
  switch (l.kind) {
    case LayerKind::kConv:
    case LayerKind::kLinear:
      return sum_of(sum_of(a, weights), shift_of(l));
    case LayerKind::kAvgPool:
    case LayerKind::kGap: {  // a mean, whatever the file divides by
      const double area = l.kind == LayerKind::kGap ? double{1} * l.in_shape[1] * l.in_shape[2]
                                                    : double{1} * l.conv.k_h * l.conv.k_w;
      const Exponent of_area = log2_exact(area), shift = shift_of(l);
      if (!of_area || !shift) return std::nullopt;
      return sum_of(a, *shift - *of_area);
    }
    case LayerKind::kAdd: {
      const auto term = [&l](Exponent e, std::size_t n) -> Exponent {
        const Exponent m = log2_exact(l.offset[n]);
        return m ? sum_of(e, 20 - *m) : std::nullopt;
      };
      const Exponent left = term(a, 0);
      if (l.offset[1] == 0) return left;  // one tensor, clipped or scaled
      const Exponent right = term(b, 1);
      return left == right ? left : std::nullopt;
    }
    case LayerKind::kConcat:
      return a == b ? a : std::nullopt;
    default:
      return a;
  }
}

Status read_weights_list(const Graph& graph, std::size_t layers, std::vector<Exponent>& out) {
  const char key[] = "odt.weight_exponents";
  out.assign(layers, std::nullopt);
  const auto it = graph.metadata.find(key);
  if (it == graph.metadata.end()) return absl::OkStatus();
  const std::vector<std::string> parts = absl::StrSplit(it->second, ',');
  const std::string expected =
      absl::StrCat(layers, " integers within +-", kLimit, " or '?', one for each layer");
  if (parts.size() != layers) return bad_metadata(graph, key, expected);
  for (std::size_t n = 0; n < layers; ++n) {
    if (parts[n] == "?") continue;
    int e = 0;
    if (!absl::SimpleAtoi(parts[n], &e) || std::abs(e) > kLimit)
      return bad_metadata(graph, key, expected);
    out[n] = e;
  }
  return absl::OkStatus();
}

}  // namespace

Status read_exponents(const Graph& graph, Network& net) {
  std::size_t layers = 0;
  for (const Layer& l : net.layers) layers += l.is_compute() ? 1 : 0;
  std::vector<Exponent> weights;
  ODT_TRY(read_weights_list(graph, layers, weights));
  std::vector<Exponent> tensors(net.layers.size() + 1);
  if (const auto it = graph.metadata.find("odt.input_exponent"); it != graph.metadata.end()) {
    int e = 0;
    if (!absl::SimpleAtoi(it->second, &e) || std::abs(e) > kLimit)
      return bad_metadata(graph, it->first, absl::StrCat("an integer within +-", kLimit));
    tensors[0] = e;
    net.input_exponent = static_cast<std::int8_t>(e);
  }
  std::size_t next = 0;
  for (std::size_t n = 0; n < net.layers.size(); ++n) {
    Layer& l = net.layers[n];
    const Exponent w = l.is_compute() ? weights[next++] : std::nullopt;
    if (w) l.e_w = static_cast<std::int8_t>(*w);
    const Exponent second = l.in1 == kNoTensor ? std::nullopt : tensors[l.in1];
    const Exponent out = output_of(l, tensors[l.in0], second, w);
    if (!out || std::abs(*out) > kLimit) continue;
    tensors[n + 1] = out;
    l.e_out = static_cast<std::int8_t>(*out);
  }
  return absl::OkStatus();
}

}  // namespace odt::compiler
