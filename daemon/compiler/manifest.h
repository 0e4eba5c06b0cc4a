#pragma once

#include <string>

#include "compiler/ir.h"
#include "compiler/plan.h"
#include "compiler/tail.h"

namespace odt::compiler {

std::uint64_t macs_of(const Layer& layer);  // forward, per sample
std::string op_name(const Layer& layer);    // "LINEAR", "CONV2D", ...
std::string kind_name(const Layer& layer);  // "LINEAR", "LINEAR_RELU", "CONV2D", ...
// Largest |accumulator + offset|, whatever the order of summing, that weights and the input's range
// allow; CONV2D, LINEAR, AVGPOOL and GAP of an integer network.
std::int64_t accumulator_bound(const Network& net, const Layer& layer);

// Manifest of a compiled network (compiler/README.md): sorted keys, so equal models give equal
// bytes.
std::string write_manifest(const Network& net, const std::string& image, const std::string& onnx,
                           const MemoryPlan& k8, const MemoryPlan& k15, const model::RamPlan& table,
                           const Tail& tail);

}  // namespace odt::compiler
