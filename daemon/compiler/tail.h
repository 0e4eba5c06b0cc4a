#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "compiler/plan.h"

namespace odt::compiler {

// A model cut in two where its trainable layers begin: what a board needs that cannot hold the
// whole. Bits, hashes, weights and states of a run are those of the whole model.
struct Tail {
  std::string image;  // ODTM tail image (proto/README.md); empty: there is none
  std::uint32_t values = 0, value_bytes = 0;  // frozen outputs of one sample
  model::RamPlan ram;
};

// Empty image: nothing is computed in front of the first trainable layer, several tensors lead
// from there into the rest, or the model is a DFP16 one, whose outputs depend on their batch.
// Errors: those of plan_table.
Result<Tail> cut_tail(const std::string& image, const std::string& file);

}  // namespace odt::compiler
