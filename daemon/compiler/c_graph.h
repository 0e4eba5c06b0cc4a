#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/ir.h"

// A network as C files divide it: the frozen part, one tensor, the layers of INT_LAYERS.
namespace odt::compiler {

// One of INT_LAYERS.
struct CLayer {
  const Layer* layer = nullptr;
  Storage storage = Storage::kS8;  // of its output
  // What it reads: -1: nothing, -2: the output of the frozen part, else a number in CModel::layers.
  int in0 = -1, in1 = -1;
  int last_reader = 0;  // number of the last layer that reads it; its own: none
  int delta_until = 0;  // its delta lives back to the backward pass of this layer

  // uint8 behind a Relu, else int8: what TI's interface assumes.
  bool usual() const {
    return layer->is_compute() && storage == (layer->relu ? Storage::kU8 : Storage::kS8);
  }
  std::uint64_t in() const { return count_of(layer->in_shape); }
  std::uint64_t out() const { return count_of(layer->out_shape); }
  std::uint64_t bytes() const { return out() * (storage == Storage::kS16 ? 2 : 1); }
};
constexpr int kFromFrozen = -2;

struct CModel {
  const Network* net = nullptr;
  std::size_t first = 0;  // layers in front of it are the frozen part
  std::uint16_t cut = 0;  // the tensor that the frozen part gives; 0: it only quantises
  std::vector<CLayer> layers;

  Storage cut_storage() const { return storage_of_tensor(*net, cut); }
  std::uint64_t cut_count() const;
  // Every layer reads the one in front.
  bool is_chain() const;
};

// The tensor whose memory `tensor` shares: FLATTEN only renames.
std::uint16_t root_of(const Network& net, std::uint16_t tensor);

// Errors: UNIMPLEMENTED where several tensors lead into the trained part, naming those and the
// numbers of trainable layers that leave one.
Result<CModel> divide(const Network& net, const std::string& file);

// Places in one region, by lifetime: what overlaps in time does not in space.
struct CSpan {
  int from = 0, to = 0;  // both included
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  // result: a multiple of 4
};
// Extent of the region.
std::uint64_t place(std::vector<CSpan>& spans);

}  // namespace odt::compiler
