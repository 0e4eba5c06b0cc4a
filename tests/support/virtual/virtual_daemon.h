#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "jobs/job_control.h"
#include "store/open.h"
#include "support/virtual/virtual_world.h"
#include "training/orchestrator.h"

namespace odt::test {

// A data directory with the golden model and a small dataset of its samples; removed at the end.
class VirtualData {
 public:
  explicit VirtualData(const std::string& golden_dir);
  explicit VirtualData(const VirtualData& other);  // a copy of what lies there now
  ~VirtualData();
  VirtualData& operator=(const VirtualData&) = delete;

  const std::string& path() const { return path_; }
  Hash model_hash;
  Uuid dataset;
  model::DerivedSamples samples;

 private:
  std::string path_;
};

// One life of the daemon below the API, on the thread of a VirtualTime: stores, fleet, sessions and
// runs are the real ones; the destructor is a kill: nobody is told, nothing is finished.
class VirtualDaemon {
 public:
  VirtualDaemon(VirtualTime& time, VirtualWorld& world, const VirtualData& data);
  ~VirtualDaemon();

  // Runs until `done` or virtual time `until`. True: done.
  bool run(const std::function<bool()>& done, std::int64_t until);
  // Makes run() look again.
  void wake() {
    asio::post(io_, [] {});
  }

  training::Orchestrator& fleet() { return *fleet_; }
  store::ControlThread& control() { return *control_; }
  store::TelemetryThread& telemetry() { return *telemetry_; }
  store::BlobStore& blobs() { return *stores_.blobs; }
  bool online(const BoardUid& uid) const;

 private:
  class Jobs;
  VirtualTime& time_;
  VirtualWorld& world_;
  std::unique_ptr<Jobs> jobs_;
  store::OpenedStores stores_;
  std::unique_ptr<store::ControlThread> control_;
  std::unique_ptr<store::TelemetryThread> telemetry_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  std::unique_ptr<training::Orchestrator> fleet_;
};

}  // namespace odt::test
