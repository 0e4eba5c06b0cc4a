#pragma once

#include <string>

#include "compiler/compile.h"

namespace odt::test {

// Compiles; a failure of the test and an empty image otherwise.
compiler::Compiled compile_ok(const std::string& bytes, std::uint32_t trainable = 0);

// Random source values in lo..hi; outputs of image + input stage against the nodes in float32, bit
// for bit. float_source: fractions too. must_vary: a model whose outputs are always the same fails.
void expect_equal(const std::string& bytes, int lo, int hi, bool float_source = false,
                  bool must_vary = true);

}  // namespace odt::test
