#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/ir.h"

namespace odt::worker {

// One layer of an architecture, with batch-norm and ReLU as parts of it. Tensors are numbered as in
// compiler/ir.h.
struct ArchLayer {
  compiler::LayerKind kind = compiler::LayerKind::kLinear;
  compiler::ConvGeometry geometry;  // kConv, pools; kResize: k_h, k_w are the factors
  bool bn = false, relu = false;
  std::uint16_t in0 = 0, in1 = compiler::kNoTensor;
  compiler::Shape in_shape, out_shape;  // of in0, of the output
  std::size_t position = 0;             // in the text, from 1

  bool is_compute() const {
    return kind == compiler::LayerKind::kConv || kind == compiler::LayerKind::kLinear;
  }
  bool depthwise() const { return geometry.groups > 1 && geometry.groups == in_shape[0]; }
};

struct Arch {
  compiler::Shape input;  // [N] where the first layer is dense
  std::vector<ArchLayer> layers;

  const compiler::Shape& tensor(std::uint16_t n) const {
    return n == 0 ? input : layers[n - 1u].out_shape;
  }
  std::uint64_t weights() const;
};

// What the last tensor has to be.
struct ArchOutput {
  compiler::Shape shape;  // a classifier or regression: [outputs]
  std::string what;       // for errors: "the dataset has 10 classes"
};

// "conv8x3x3s2p1,bn,relu,max2,dense" on samples of `input` (worker/README.md has the language).
// Errors: INVALID_ARGUMENT, one line with the character and what was expected there.
Result<Arch> parse_arch(const std::string& text, const compiler::Shape& input,
                        const ArchOutput& output);

// "dense64,relu,dense": the short form --hidden.
std::string arch_of_hidden(const std::vector<std::uint32_t>& hidden);

// The language, for --help.
extern const char* const kArchHelp;

}  // namespace odt::worker
