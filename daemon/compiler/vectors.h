#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "data/quantize.h"
#include "odt/odt.h"
#include "odt/trainer.h"

// Golden vectors: what an image gives, computed by the trainer itself.
namespace odt::compiler {

// The trainer of a checked image, with memory from the heap.
class GoldenTrainer {
 public:
  explicit GoldenTrainer(const std::string& image);
  // MSE, k 8, mu 1, one epoch of `samples` in batches of `batch`; DFP16: a rate that nobody uses.
  Status start(std::uint32_t samples, std::uint16_t batch);
  // The trainer's next step; false: failed() says why.
  bool step(const odt_samples_t& batch, odt_step_record_t& record);
  Status failed() const;

  odt_model_t model{};
  std::unique_ptr<odt_trainer_t> trainer;

 private:
  std::vector<std::uint32_t> words_;
  std::vector<std::uint64_t> arena_;
  odt_error_t error_{};
  odt_status_t status_;
};

// n samples of floats whose quantised values spread over the whole range.
std::vector<float> spread_inputs(const data::InputStage& in, std::uint32_t n);
// What the board receives for them.
std::vector<std::int16_t> quantised(const data::InputStage& in, const std::vector<float>& x);
// The same in bytes of in.dtype.
std::vector<std::uint8_t> sample_bytes(const data::InputStage& in,
                                       const std::vector<std::int16_t>& values);

struct Logits {
  std::vector<std::int16_t> values;     // [n][classes]
  std::vector<std::int32_t> exponents;  // [n]; 0 but for DFP16
};
// host has started.
Result<Logits> golden_logits(GoldenTrainer& host, const data::InputStage& in,
                             const std::vector<std::int16_t>& x, std::uint32_t n);

// JSON: {"format": "odt-vectors-1", "model_hash", "n", "inputs" floats, "quantised", "logits" of n
// samples, "exponents"}. Errors: INTERNAL, those of parse_input_stage.
Result<std::string> write_vectors(const Compiled& compiled);

}  // namespace odt::compiler
