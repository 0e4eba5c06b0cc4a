#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/float_match.h"
#include "compiler/ir.h"
#include "compiler/tail.h"

namespace odt::compiler {

struct CompileOptions {
  std::string name;                    // of the model; empty: stem of the file; at most 16 bytes
  std::uint32_t trainable_layers = 0;  // last compute layers; 0: all (at most 16)
  std::optional<Task> task = {};       // instead of what the file says or its shapes suggest
  // Absent: integer for QAT files, DFP16 for float32 files. DFP16 of a QAT file: as to_dfp16.
  std::optional<Arithmetic> arithmetic = {};
  FloatInput input = {};  // float32 files only
};

struct Compiled {
  Network network;
  std::string image;     // ODTM, checked by firmware/odt itself
  std::string manifest;  // JSON, see compiler/README.md
  std::string tail;      // image of the trainable part alone (compiler/tail.h), or empty
  model::RamPlan ram, tail_ram;
  std::uint32_t tail_sample_bytes = 0;  // frozen outputs of one sample
};

// ONNX bytes -> image and manifest. `file` names the file in errors: those of read_onnx, match,
// match_float, to_dfp16, write_image; FAILED_PRECONDITION (integer arithmetic of a float32 file);
// INVALID_ARGUMENT (trainable_layers, name); UNIMPLEMENTED where firmware/odt of this release does
// not run an operator.
Result<Compiled> compile(const std::string& onnx, const std::string& file,
                         const CompileOptions& options);

// From a network that is already there; onnx: the bytes it came from, for the manifest's hash.
Result<Compiled> compile_network(Network network, const std::string& onnx, const std::string& file,
                                 const CompileOptions& options);

// What an image says, as text for people. Errors: INVALID_ARGUMENT naming the file and the field.
Result<std::string> inspect_image(const std::string& image, const std::string& file);
std::string inspect_manifest(const std::string& manifest);

}  // namespace odt::compiler
