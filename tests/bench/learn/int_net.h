// The same networks in integers, trained by firmware/odt.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data.h"
#include "float_net.h"
#include "image_builder.h"
#include "odt/odt.h"
#include "odt/trainer.h"

namespace odt::learn {

struct QuantOptions {
  float weight_limit = 64;  // of 127: a bit of headroom for training
  // Largest activation (99.9 % quantile of the calibration set) in units of the output's range.
  float hidden_range = 255, logit_range = 127;
  std::optional<int> logit_exp;  // the logits' step where it is settled
};

// An ODTM image with power-of-two scales, targets and cross-entropy scale from the calibration set.
// src: what the accuracy on its own data is measured with.
std::vector<std::uint8_t> quantise(FloatNet& net, const Matrix& calibration,
                                   const QuantOptions& options, double src_accuracy);

// NITI, exact shifts, MSE, mu_offset 1, batch 8, 10 epochs.
odt_run_spec_t plain_run(int k, std::array<int, 3> mu);

struct IntResult {
  double after = 0;  // accuracy on the test set
  double heldout_start = 0, heldout_best = 0;
  std::uint32_t alarms = 0;  // of all epochs
  std::uint32_t steps = 0;
  // Weights' precision: sum N k / 32 sum N at its peak; sum MAC k / 32 sum MAC, mean of the steps;
  // bytes of the weights as stored, at their peak.
  double memory_ratio = 0, energy_ratio = 0;
  std::uint32_t resident_bytes = 0;
  std::vector<odt_epoch_record_t> epochs;
  odt_memory_plan_t plan{};
};

class IntNet {
 public:
  explicit IntNet(std::vector<std::uint8_t> image);
  const odt_model_t& model() const { return *model_; }
  // Accuracy of the image's weights.
  double accuracy(const Set& set) const;
  std::uint32_t correct(const Set& set) const;
  // Trains from the image's weights; heldout may be null. Throws std::runtime_error with the
  // engine's refusal.
  IntResult train(odt_run_spec_t spec, const Set& train, const Set* heldout, const Set& test,
                  std::uint32_t seed) const;

 private:
  std::vector<std::uint8_t> image_;
  std::unique_ptr<odt_model_t> model_;
};

}  // namespace odt::learn
