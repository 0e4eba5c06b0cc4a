#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/ids.h"
#include "model/event.h"
#include "store/store.h"
#include "training/fleet_control.h"

namespace odt::api::v1 {
class Event;
class Topic;
}  // namespace odt::api::v1

namespace odt::api {

enum class TopicKind {
  kFleet = 1,
  kRuns = 2,
  kRun = 3,
  kTelemetry = 4,
  kLibrary = 5,
  kJobs = 6,
  kAllEvents = 7,
  kCampaigns = 8,
  kAlerts = 9,
  kSettings = 10,
  kLab = 11,
};

struct WatchTopic {
  TopicKind kind = TopicKind::kFleet;
  Uuid run;  // of kRun and kTelemetry
  bool lossless = false;
  std::chrono::milliseconds interval{250};  // of conflated ones
  std::uint32_t from_attempt = 0, from_step = 0;

  bool same(const WatchTopic& other) const { return kind == other.kind && run == other.run; }
};

// INVALID_ARGUMENT: unknown kind, a key that is no run id, more than 60 Hz.
Result<WatchTopic> parse_topic(const v1::Topic& topic);

bool wants(const WatchTopic& topic, const model::Event& event);
// What an event is about: of two with the same key only the newer counts in a conflated topic.
// Appended records (run events, epochs, warnings) have a key of their own each.
std::string conflation_key(const model::Event& event);

using EventPtr = std::shared_ptr<const v1::Event>;

// The state of the topics as events with event_seq 0. Boards and ports are as the fleet sees them
// now. On the store thread.
Result<std::vector<EventPtr>> take_snapshot(store::ControlStore& store,
                                            const training::FleetView& view,
                                            const std::vector<WatchTopic>& topics);

}  // namespace odt::api
