#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/run.h"

// Values of HyperParams as text: axes of sweeps, settings by scope. "2", "1/-1/-3" (a/b/c: several
// numbers), words ("half-up"), "on" and "off".
namespace odt::model {

struct HyperKey {
  std::string name;
  bool sweeps = true;  // an axis of sweeps
};
// By name.
const std::vector<HyperKey>& hyper_keys();

// Ranges are not checked. Errors: INVALID_ARGUMENT naming value, key and what is allowed; no such
// key (names those there are).
Status set_hyper(const std::string& key, const std::string& value, HyperParams& hyper);
// As set_hyper takes it; empty: not set (also apt = off), or no such key.
std::string hyper_text(const std::string& key, const HyperParams& hyper);

}  // namespace odt::model
