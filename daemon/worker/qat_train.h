#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/ir.h"
#include "worker/qat_arch.h"

namespace odt::worker {

// Samples behind PREQUANT: int8 values [count][len], planes as [C,H,W].
struct QatSamples {
  std::uint32_t count = 0, len = 0;
  const std::int8_t* values = nullptr;
  const std::uint8_t* labels = nullptr;
  const std::int8_t* targets = nullptr;  // [count][outputs], of a regression
};

// Random changes of training images: moved by up to `shift` positions in both directions, mirrored
// left-right. [C,H,W] only.
struct Augment {
  std::uint32_t shift = 0;
  bool flip = false;
  bool any() const { return shift > 0 || flip; }
};
// "shift2,flip"; empty: none. Errors: INVALID_ARGUMENT.
Result<Augment> parse_augment(const std::string& text);

struct QatOptions {
  std::uint32_t epochs = 12;
  std::uint32_t seed = 1;
  float rate = 0.05f;
  float decay = 1e-3f;
  bool per_channel = true;
  // How release 0.1 trained dense models, whose bytes are kept: no warm-up, expf of the C library.
  bool plain_recipe = false;
  bool float_only = false;  // never on the integer grid: the fp32 model to compare with
  Augment augment;
  compiler::Task task = compiler::Task::kClassify;
};

struct QatEpoch {
  std::uint32_t epoch = 0;               // from 0
  double loss = 0;                       // mean of the training samples
  std::uint32_t correct = 0, total = 0;  // of the validation samples; total 0: none
};

struct QatResult {
  std::int8_t input_exponent = 0;       // of what the board receives
  std::vector<compiler::Layer> layers;  // power-of-two shifts, one bit of weight headroom
  std::uint16_t ce_scale = 0;           // Q8, of the logits' step
};

// Fake-quantised training on one thread: float for the first half of the epochs, then forward
// passes on the integer grid with straight-through gradients. Momentum SGD, cosine rate;
// cross-entropy, for autoencoders MSE against the input, for regressions against the targets. The
// same options and samples give the same bytes.
class QatTrainer {
 public:
  QatTrainer(const Arch& arch, const QatSamples& train, const QatOptions& options);
  ~QatTrainer();
  // Errors: ABORTED (the loss is no number any more: smaller rate).
  Status run(const QatSamples& validation, const std::function<void(const QatEpoch&)>& on_epoch);
  // Correct predictions of the network as it is: in float, or on the grid.
  std::uint32_t correct(const QatSamples& samples);
  QatResult exported();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace odt::worker
