// Random networks, samples and settings, and a trainer with the memory it needs.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "image_builder.h"
#include "odt/odt.h"
#include "odt/trainer.h"
#include "oracle.h"

namespace odt::testing {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int range(int lo, int hi) {  // both included
    return lo + static_cast<int>(engine_() % static_cast<uint32_t>(hi - lo + 1));
  }
  bool chance(int percent) { return range(0, 99) < percent; }
  uint32_t word() { return static_cast<uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

NetSpec random_net(Random& r);
struct SampleSet {
  std::vector<Values> values;
  std::vector<int> labels;
  std::vector<uint8_t> blob;  // ODTS
};
SampleSet random_samples(Random& r, const NetSpec& net, int n);
// Settings inside the limits of rules 1.5 to 1.7, for a net's losses.
odt_run_spec_t random_spec(Random& r, const NetSpec& net, int samples);
odt_run_spec_t plain_spec(int samples, int batch, int epochs);
OracleSettings oracle_settings(const odt_run_spec_t& spec, const NetSpec& net);
std::string describe(const odt_run_spec_t& spec);

// Owns image, model and arena.
class Rig {
 public:
  explicit Rig(const std::vector<uint8_t>& image);
  // Sets the trainer up; failures are gtest failures.
  void start(const odt_run_spec_t& spec, bool resident = true);
  odt_status_t try_start(const odt_run_spec_t& spec, bool resident, int64_t arena_change = 0);

  odt_model_t& model() { return model_; }
  odt_trainer_t* trainer() { return trainer_.get(); }
  odt_error_t err{};

 private:
  std::vector<uint8_t> image_;
  odt_model_t model_;
  std::vector<uint64_t> arena_;
  std::unique_ptr<odt_trainer_t> trainer_;
};

odt_samples_t open_samples(const std::vector<uint8_t>& blob);
// M of a layer in ONNX order.
Values stored(const odt_layer_t& l);
std::vector<uint8_t> state_of(const odt_trainer_t* t);
std::vector<uint8_t> weights_of(const odt_trainer_t* t, bool best = false);
// The batch that rule 1.8 gives at the trainer's position, as a streamed blob.
std::vector<uint8_t> next_batch(const odt_trainer_t* t, const NetSpec& net, const SampleSet& set);
NetSpec small_dense();
// Whatever an image says, if it is accepted it must also run: the kernels check nothing. True where
// it ran a whole epoch.
bool train_a_little(odt_model_t* m);

}  // namespace odt::testing
