// Small networks of every layer kind, straight from the compiler's IR, and data that they can
// learn.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir.h"
#include "data/dataset.h"

namespace odt::test {

struct GraphModel {
  const char* name;
  compiler::Network (*build)();
  // Numbers of trainable layers that leave one tensor behind the frozen part; the others do not.
  std::vector<int> one_cut, several;
};

const std::vector<GraphModel>& graph_models();

// Shapes of three kinds in the model's input, one label each; an autoencoder's are all of one.
data::Dataset shapes_for(const compiler::Network& net, int train, int test);

}  // namespace odt::test
