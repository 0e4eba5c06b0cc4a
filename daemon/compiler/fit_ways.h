#pragma once

#include "compiler/fit.h"

// The ways to train that odtd would try, and what each takes (training/ram_fit.h; that both agree
// is a test).
namespace odt::compiler {

// In the order of training::placements(). wanted: the batch that is tried first.
std::vector<FitWay> ways_of(const Compiled& c, const FitRequest& r, std::uint16_t wanted);

// Errors: those of plan_memory.
Result<FitRam> ram_of(const Compiled& c, const std::string& file, const FitRequest& r,
                      const FitWay& way);

// Why a board's firmware does not take what this form loads, in words; empty: it takes it.
Result<std::string> refusal(const Compiled& c, const std::string& file, const BoardLimits& limits,
                            FitForm form);

}  // namespace odt::compiler
