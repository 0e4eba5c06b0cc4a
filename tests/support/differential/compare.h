// The library against the reference, step by step. No test framework: the fuzzer uses it too.
#pragma once

#include <string>

#include "odt/odt.h"
#include "odt/trainer.h"
#include "random_graph.h"
#include "reference.h"

namespace odt::testing {

enum class RunKind { kNiti, kApt, kDfp16 };

// The host moves a layer's precision after a step, if that did not end the epoch.
struct Steer {
  int after_step = 0;
  uint32_t layer = 0;
  int k = 8;
};

#ifdef ODT_DFP_CHAIN32
constexpr bool kLibraryHasChain32 = true;
#else
constexpr bool kLibraryHasChain32 = false;
#endif

struct ComparedRun {
  NetSpec net;
  GraphSamples samples;
  odt_run_spec_t spec{};
  int max_steps = 8;
  bool chain32 = kLibraryHasChain32;  // DFP16's sums in chains of int32
  std::vector<Steer> steers;
  int restore_after = -1;  // step behind which a fresh trainer takes over the state
  // Held-out scores before training and after each epoch, where the run has a guard.
  std::vector<uint32_t> scores;
};

// Everything that a seed decides.
ComparedRun random_run(Choices& c, RunKind kind, int size, bool graphs);
std::unique_ptr<Reference> reference_of(const ComparedRun& run);

struct Difference {
  bool refused = false;  // the library does not take the model or the settings
  std::string text;      // empty: equal
};
Difference compare(const ComparedRun& run);
// What the library alone does in a run whose first epoch is one step.
struct LibraryStep {
  std::string failure;
  StateView before, after;
  odt_step_record_t record{};
  odt_epoch_record_t epoch{};
};
LibraryStep library_step(const ComparedRun& run);

std::string describe_run(const ComparedRun& run);

}  // namespace odt::testing
