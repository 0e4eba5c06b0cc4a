#pragma once

#include "training/run_checks.h"

// How long a run takes: from what runs before it have measured, else from the kernels' instructions
// and the clock of the board's type.
namespace odt::training {

// Of a board with a model; zeros: not known.
struct Rates {
  model::RunEstimate::Basis basis = model::RunEstimate::Basis::kUnspecified;
  // Measured step times stand as a factor on what is predicted, where anything is.
  double step_ns_per_predicted = 0;  // factor
  double step_ns_per_sample = 0;     // where nothing is predicted: of the same model
  std::uint32_t link_bytes_per_s = 0;
  bool link_measured = false;
  std::uint32_t sample_us = 0;  // of an evaluation over the link
};

// Time of a step in nanoseconds on that type of board; 0: not known there.
double step_ns(const Rates& rates, const model::Model& model, const std::string& board_type,
               std::uint32_t k, std::uint32_t batch);

// Of the newest runs in the store that measured anything: this board and model before others of its
// type, this model before others. Errors: those of the store.
asio::awaitable<Result<Rates>> read_rates(Env& env, model::Board board, model::Model model);

// Without the queue. resolved: settings and placement as they would be.
model::RunEstimate estimate(const RunParts& parts, const model::HyperParams& resolved,
                            const Placement& place, const Rates& rates);
// Settings and placement that the run would most likely have. Errors: those of check_settings.
struct Likely {
  model::HyperParams hyper;
  Placement place;
};
Result<Likely> likely_settings(const RunParts& parts, const model::HyperParams& asked);

}  // namespace odt::training
