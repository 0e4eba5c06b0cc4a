#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "odt/odt.h"

namespace odt::worker {

// firmware/odt on the host with memory from the heap: the arithmetic of the boards.
//
// Concurrency: one thread. Limitations: image and spec are fixed for its life.
class HostTrainer {
 public:
  // Default settings for inference only.
  static odt_run_spec_t inference_spec(bool dfp16 = false);

  // Errors: those of odt_model_open, odt_run_spec_check; RESOURCE_EXHAUSTED.
  static Result<std::unique_ptr<HostTrainer>> create(const std::string& image,
                                                     const odt_run_spec_t& spec);
  ~HostTrainer();
  HostTrainer(const HostTrainer&) = delete;
  HostTrainer& operator=(const HostTrainer&) = delete;

  const odt_model_t& model() const;
  odt_trainer_t* get();

 private:
  HostTrainer();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// An ODTS blob in aligned memory, checked against a model.
class HostSamples {
 public:
  // Empty blob: no samples. Errors: INVALID_ARGUMENT.
  static Result<HostSamples> open(const std::string& blob, const odt_model_t& model);
  const odt_samples_t& get() const { return samples_; }

 private:
  std::vector<std::uint32_t> words_;
  odt_samples_t samples_{};
};

// "what (number n): got g; expected lo..hi" with the code of the library.
Status host_status(const odt_error_t& error);

}  // namespace odt::worker
