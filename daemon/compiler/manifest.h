#pragma once

#include <string>

#include "compiler/ir.h"
#include "compiler/plan.h"

namespace odt::compiler {

std::uint64_t macs_of(const Layer& layer);  // forward, per sample
std::string kind_name(const Layer& layer);  // "LINEAR", "LINEAR_RELU", "CONV2D", ...
// Largest |accumulator + offset| that weights and input range allow.
std::int64_t accumulator_bound(const Layer& layer, Storage input);

// Manifest of a compiled network (compiler/README.md): sorted keys, so equal models give equal
// bytes.
std::string write_manifest(const Network& net, const std::string& image, const std::string& onnx,
                           const MemoryPlan& k8, const MemoryPlan& k15, const MemoryTable& table);

}  // namespace odt::compiler
