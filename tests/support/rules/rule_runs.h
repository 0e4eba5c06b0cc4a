// Small runs, written by hand, each of which shows one rule of integer-training: the source of
// tests/golden/rules/rules.json.
#pragma once

#include <string>
#include <vector>

#include "compare.h"

namespace odt::testing {

struct RuleRun {
  std::string name, shows;
  ComparedRun run;
};

std::vector<RuleRun> rule_runs();

}  // namespace odt::testing
