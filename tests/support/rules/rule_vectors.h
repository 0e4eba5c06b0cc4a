// Golden vectors of every rule, computed by the oracle alone; committed as
// tests/golden/rules/rules.json.
#pragma once

#include <nlohmann/json.hpp>

#include "rule_runs.h"

namespace odt::testing {

nlohmann::json rule_vectors();
// Random networks with long rows, for cores with wide kernels: inputs, losses and the hash of the
// last weights (tests/golden/rules/wide.json).
nlohmann::json wide_vectors();
// The settings of a run, by the names of odt_run_spec_t.
nlohmann::json spec_json(const odt_run_spec_t& spec);
odt_run_spec_t spec_of_json(const nlohmann::json& json);
std::vector<uint8_t> bytes_of_hex(const std::string& hex);

}  // namespace odt::testing
