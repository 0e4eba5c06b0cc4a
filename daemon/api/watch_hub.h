#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/watch_stream.h"
#include "base/asio.h"
#include "base/call.h"
#include "store/store_thread.h"
#include "training/fleet_control.h"

namespace odt::api {

// Hands committed events and frames, and the fleet's live view, to every Watch.
//
// Operation: store threads post what they committed to the front thread, in order. A snapshot or a
// page is read on the store thread and posted from there: what was committed before it is in it,
// what comes after it is posted after it. So there is neither gap nor duplicate at the seam, and no
// lock.
// Concurrency: streams live on the front thread (one thread runs it). The public functions may be
// called from any thread.
class WatchHub final : public store::CommitObserver, private WatchStream::Reader {
 public:
  WatchHub(asio::io_context& front, store::ControlThread& control,
           store::TelemetryThread& telemetry, training::FleetControl& fleet, const Clock& clock,
           WatchOptions options = {});

  void start();  // listens to the fleet's view
  void stop();   // ends every stream with UNAVAILABLE; later ones are refused

  static std::uint64_t new_id();  // random: it is all that UpdateWatch asks for
  // Errors (INVALID_ARGUMENT, RESOURCE_EXHAUSTED) come as the end of the stream.
  void open(std::uint64_t id, std::shared_ptr<WatchSink> sink, std::vector<WatchTopic> topics,
            std::uint64_t resume_store_epoch, std::int64_t resume_seq);
  void written(std::uint64_t id, bool ok);
  void closed_by_peer(std::uint64_t id);
  // NOT_FOUND: no such stream.
  void update(std::uint64_t id, std::vector<WatchTopic> add, std::vector<WatchTopic> remove,
              Done<bool> done);

  std::size_t streams() const { return count_.load(); }

  void on_events(const std::vector<model::Event>& events, std::int64_t next_seq) override;
  void on_telemetry(const std::vector<model::TelemetryFrame>& frames) override;

 private:
  using StreamPtr = std::shared_ptr<WatchStream>;
  using ViewPtr = std::shared_ptr<const training::FleetView>;

  void read_events(StreamPtr stream, std::int64_t first) override;
  void read_snapshot(StreamPtr stream, std::vector<WatchTopic> topics) override;
  void read_frames(StreamPtr stream, WatchStream::Reader::FramePosition from) override;
  void closed(std::uint64_t id) override;
  const std::vector<LiveItem>& live() override;

  void deliver(const std::vector<model::Event>& events, std::int64_t next_seq);
  void show(ViewPtr view);
  void with_link(model::Event& event) const;
  StreamPtr find(std::uint64_t id) const;
  std::vector<StreamPtr> all() const;

  asio::io_context& front_;
  store::ControlThread& control_;
  store::TelemetryThread& telemetry_;
  training::FleetControl& fleet_;
  const Clock& clock_;
  const WatchOptions options_;
  std::atomic<std::size_t> count_{0};

  std::unordered_map<std::uint64_t, StreamPtr> streams_;
  ViewPtr view_, live_of_;
  std::vector<LiveItem> live_;
  bool stopped_ = false;
};

}  // namespace odt::api
