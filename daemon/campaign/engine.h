#pragma once

#include <atomic>
#include <map>
#include <memory>

#include "campaign/driver.h"

namespace odt::campaign {

// All campaigns. Everything happens on the links thread, where the fleet lives; the stores, blobs
// and the fleet outlive this object. As an observer of the store it hears of runs that changed.
class Engine final : public CampaignControl, public store::CommitObserver {
 public:
  Engine(asio::io_context& links, const Clock& clock, store::ControlThread& control,
         store::TelemetryThread& telemetry, store::BlobStore& blobs, training::FleetControl& fleet,
         std::function<void(int level, const std::string& text)> log);
  ~Engine() override;

  // Takes up the campaigns that are not over. Blocks on the store. After the fleet's start().
  Status start();
  // Nothing new begins; campaigns stay as they are. Any thread.
  void stop();

  void create(CallContext ctx, model::CampaignSpec spec, bool dry_run, Done<Created> done) override;
  void act(CallContext ctx, Uuid campaign, Act act, Done<model::Campaign> done) override;
  void stop_all(CallContext ctx, bool cancel, Done<std::vector<Uuid>> done) override;

  void on_events(const std::vector<model::Event>& events, std::int64_t next_seq) override;
  void on_telemetry(const std::vector<model::TelemetryFrame>&) override {}

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace odt::campaign
