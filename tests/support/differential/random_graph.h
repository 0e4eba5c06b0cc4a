// Random graphs of every layer kind, valid for the library, with samples that fit them.
#pragma once

#include <string>
#include <vector>

#include "choices.h"
#include "image_builder.h"
#include "oracle_math.h"

namespace odt::testing {

// What a generator may use. A smaller size makes smaller nets from the same seed, so that a
// failure can be shrunk.
struct GraphLimits {
  int size = 8;        // steps of growth, and a bound of dimensions
  bool graphs = true;  // false: chains of conv, linear and flatten
  bool dfp16 = false;
  bool tasks = true;         // regression and autoencoders too
  int task = -1;             // this one; -1: any of the above
  bool offsets_only = true;  // some layers
};

NetSpec random_graph(Choices& c, const GraphLimits& limits);
// One line per op, for a failure's report.
std::string describe_net(const NetSpec& net);

struct GraphSamples {
  DType dtype = DType::kS8;
  uint8_t flags = 0;  // of ODTS: 1 targets, 2 frozen
  std::vector<Values> values;
  std::vector<int> labels;
  std::vector<Values> targets;  // regression
};

GraphSamples random_graph_samples(Choices& c, const NetSpec& net, int n);
// ODTS of some of the samples, in this order.
std::vector<uint8_t> samples_blob(const GraphSamples& set, const std::vector<int>& which);
// The same samples as the values of the cut tensor (flag 2).
GraphSamples frozen_samples(const NetSpec& net, const GraphSamples& set, DType dtype,
                            const std::vector<Values>& values);
std::vector<uint8_t> value_bytes(DType dtype, const Values& values);

}  // namespace odt::testing
