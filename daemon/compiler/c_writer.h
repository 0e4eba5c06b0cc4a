#pragma once

#include <string>
#include <vector>

#include "compiler/compile.h"
#include "data/dataset.h"
#include "data/derive.h"

// A model and its data as C files for TI's interface (firmware/odt, odt/ti.h): what a main.c
// written for TI's integer on-device training includes.
namespace odt::compiler {

struct CFile {
  std::string name, text;
};

// Samples of one split in the order in which they are written.
struct CSamples {
  std::uint32_t n = 0;
  std::vector<float> inputs;  // [n][values]
  std::vector<std::int8_t> labels;
  std::vector<std::int8_t> targets;  // [n][outputs], regressions: the outputs to be learnt
};
struct CData {
  CSamples train, val, test;
  std::string source;  // one line
  data::OutputStage outputs;
};

constexpr std::uint32_t kCBatch = 8;  // BATCH_SIZE as written

// Splits of a dataset, each shuffled by `seed`; limits: at most so many samples of train, held-out,
// test, 0: all. Errors: INVALID_ARGUMENT naming `file` (values per sample, labels against the
// model, values that are no number, no training samples, more than 2^23 values in all).
Result<CData> c_data(const data::Dataset& dataset, const std::string& file, const Network& net,
                     std::uint32_t seed, const std::uint32_t (&limits)[3]);

// integer_model_config.h/.c, tvmgen_default.h/.c (PREQUANT and the frozen layers), test_vector.h/.c
// (golden vectors), and with data train_data.h/.c. Errors, naming `file` and the layer:
// OUT_OF_RANGE (geometry beyond the interface's uint8), UNIMPLEMENTED.
Result<std::vector<CFile>> write_c(const Compiled& compiled, const std::string& file,
                                   const CData* data);

// All files or none: written beside `folder`, then put in its place. An existing folder is replaced
// only if nothing but such files is in it. Errors: ALREADY_EXISTS, NOT_FOUND, FAILED_PRECONDITION
// naming the path.
Status write_folder(const std::string& folder, const std::vector<CFile>& files);

}  // namespace odt::compiler
