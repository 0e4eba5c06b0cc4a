#pragma once

#include <map>
#include <optional>
#include <vector>

#include "model/library.h"
#include "model/run.h"
#include "store/store.h"

namespace odt::training {

// What the newest runs have measured, so that nobody reads them all to estimate one. Links thread;
// read() on the store's.
class RateBook {
 public:
  struct Measured {
    BoardUid board;
    Hash model;
    model::RunTiming timing;
    std::optional<std::uint32_t> k, batch;
  };
  struct Contents {
    std::map<Uuid, Measured> runs;  // by age
    std::map<Hash, model::Model> models;
  };

  bool loaded() const { return loaded_; }
  // Errors: those of the store.
  static Result<Contents> read(store::ControlStore& store);
  // What the store has; what was noted meanwhile is newer.
  void take(Contents contents);
  // After a change of the run is committed. model: the run's.
  void note(const model::Run& run, const model::Model* model);

  const std::map<Uuid, Measured>& runs() const { return here_.runs; }
  const model::Model* model(const Hash& hash) const;

 private:
  static constexpr std::size_t kMost = 1000;
  static Measured measured(const model::Run& run);
  void trim();

  Contents here_;
  bool loaded_ = false;
};

}  // namespace odt::training
