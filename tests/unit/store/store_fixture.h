#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "store/store.h"

namespace odt::store {

// Time that a test moves by hand.
class FakeClock final : public Clock {
 public:
  std::int64_t now_us() const override { return time_us; }
  std::chrono::steady_clock::time_point steady_now() const override {
    return std::chrono::steady_clock::time_point(std::chrono::microseconds(time_us));
  }
  std::int64_t time_us = 1'700'000'000'000'000;
};

// A folder that goes with the test.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Resources with every stored field set, from a number.
BoardUid uid_of(int n);
Hash hash_of(int n);
model::Board board_of(int n);
model::Port port_of(int n);
model::Model model_of(int n);
model::Dataset dataset_of(int n);
model::Snapshot snapshot_of(int n);
model::Evaluation evaluation_of(int n);
model::Job job_of(int n);
model::Upload upload_of(int n);
model::Run run_of(int n);
model::EpochResult epoch_of(const Uuid& run, std::uint32_t epoch);
model::TelemetryFrame frame_of(const Uuid& run, std::uint32_t step);

// One change.
Batch batch_of(Change change);
TransitionRun transition_of(model::Run run, model::RunState to);

}  // namespace odt::store
