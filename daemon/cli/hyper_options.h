#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}
namespace odt::api::v1 {
class HyperParams;
}

namespace odt::cli {

// Settings of training as options of a verb.
struct HyperOptions {
  std::string policy, rounding, loss, rule, shift_source, frozen = "auto";
  std::vector<std::int32_t> mu_weight;
  std::int32_t mu_offset = 0;
  std::uint32_t epochs = 0, batch = 0, k = 0, dead_zone = 0, seed = 0, sr_seed = 0;
  std::vector<std::uint32_t> layer_k;
  std::vector<double> lr;
  double apt_t_min = 0, apt_t_max = 0;
  std::uint32_t apt_k_max = 0;
  std::string apt_checks = "quarters";
  bool apt = false, apt_offsets = false, blocked = false;
  std::uint32_t telemetry_every = 0, checkpoint_epochs = 0, commit_every = 0;
  bool streamed = false, best_on_host = false, no_guard = false;
};
void add_hyper_options(CLI::App* verb, HyperOptions& options);

// Those that were given: absent ones are left to the policy. Errors: INVALID_ARGUMENT naming the
// option.
Status fill_hyper(const CLI::App& verb, const HyperOptions& options, api::v1::HyperParams& hyper);

// One setting by its name in the API: "mu_weight", "1/-1/-3"; "rounding", "half-up". Errors:
// INVALID_ARGUMENT (no such setting, no such value).
Status set_by_name(const std::string& name, const std::string& value, api::v1::HyperParams& hyper);

}  // namespace odt::cli
