#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "alerts/alert_control.h"
#include "alerts/webhook.h"
#include "base/asio.h"
#include "store/disk_guard.h"
#include "store/store_thread.h"
#include "training/fleet_control.h"

namespace odt::alerts {

struct DiskSeen {
  std::uint64_t free_bytes = 0;
  store::DiskReport report;
};
struct EngineOptions {
  std::vector<model::AlertRule> rules;  // default_rules(), as the configuration changed them
  WebhookOptions webhook;
  std::uint32_t rules_version = 0;                                   // odtd's
  std::string data_dir;                                              // for texts
  std::function<std::shared_ptr<const training::FleetView>()> view;  // any thread
  std::function<DiskSeen()> disk;                                    // any thread
  std::chrono::milliseconds period{1000};
  std::function<void(int level, const std::string& text)> log;
};

// Watches the fleet, its runs and the disk. Everything happens on the thread of `io`; the stores
// outlive this object. As an observer of the stores it hears of runs, epochs and telemetry.
class Engine final : public AlertControl, public store::CommitObserver {
 public:
  Engine(asio::io_context& io, const Clock& clock, store::ControlThread& control,
         EngineOptions options);
  ~Engine() override;

  // Takes up the alerts as stored. Blocks on the store.
  Status start();
  // Before `io` stops; nothing is lost: what waits for the webhook is tried at the next start.
  void stop();

  void acknowledge(CallContext ctx, Uuid alert, std::string note, Done<model::Alert> done) override;
  void silence(CallContext ctx, model::AlertSilence silence, Done<Silenced> done) override;
  void unsilence(CallContext ctx, Uuid silence, Done<bool> done) override;
  void overview(Done<Overview> done) override;
  void update_rule(CallContext ctx, RuleUpdate update, Done<model::AlertRule> done) override;
  void test_webhook(CallContext ctx, bool retry_dead, Done<WebhookTest> done) override;

  void on_events(const std::vector<model::Event>& events, std::int64_t next_seq) override;
  void on_telemetry(const std::vector<model::TelemetryFrame>& frames) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace odt::alerts
