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

// A mean's factor is rounded to a few bits; this near a power of two it is meant to be one.
constexpr double kMeanTolerance = 0.02;

Exponent log2_near(double v, double tolerance) {
  const double e = std::nearbyint(std::log2(v));
  if (!(std::abs(v / std::exp2(e) - 1) <= tolerance)) return std::nullopt;
  return static_cast<int>(e);
}

// log2 of 2^k / (mult * area) where it is the same for all outputs.
Exponent shift_of(const Layer& l, double area = 1, double tolerance = 0) {
  Exponent out;
  for (std::size_t n = 0; n < l.k.size(); ++n) {
    const double v = std::ldexp(1.0, l.k[n]) / ((l.mult.empty() ? 1 : l.mult[n]) * area);
    const Exponent e = log2_near(v, tolerance);
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
      return sum_of(a, shift_of(l, area, kMeanTolerance));
    }
    case LayerKind::kAdd: {
      const auto term = [&l](Exponent e, std::size_t n) -> Exponent {
        const Exponent m = l.offset[n] > 0 ? log2_near(l.offset[n], 0) : std::nullopt;
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

// One for each layer with weights.
Status read_list(const Graph& graph, const char* key, std::size_t layers,
                 std::vector<Exponent>& out) {
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
  std::vector<Exponent> weights, outputs;
  ODT_TRY(read_list(graph, kWeightExponentsKey, layers, weights));
  ODT_TRY(read_list(graph, kOutputExponentsKey, layers, outputs));
  std::vector<Exponent> tensors(net.layers.size() + 1);
  if (const auto it = graph.metadata.find(kInputExponentKey); it != graph.metadata.end()) {
    int e = 0;
    if (!absl::SimpleAtoi(it->second, &e) || std::abs(e) > kLimit)
      return bad_metadata(graph, it->first, absl::StrCat("an integer within +-", kLimit));
    tensors[0] = e;
    net.input_exponent = static_cast<std::int8_t>(e);
  }
  std::size_t next = 0;
  for (std::size_t n = 0; n < net.layers.size(); ++n) {
    Layer& l = net.layers[n];
    const Exponent given = l.is_compute() ? outputs[next] : std::nullopt;
    const Exponent w = l.is_compute() ? weights[next++] : std::nullopt;
    if (w) l.e_w = static_cast<std::int8_t>(*w);
    const Exponent second = l.in1 == kNoTensor ? std::nullopt : tensors[l.in1];
    const Exponent out = given ? given : output_of(l, tensors[l.in0], second, w);
    if (!out || std::abs(*out) > kLimit) continue;
    tensors[n + 1] = out;
    l.e_out = static_cast<std::int8_t>(*out);
  }
  return absl::OkStatus();
}

}  // namespace odt::compiler
