#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/watch_topics.h"
#include "base/asio.h"
#include "base/clock.h"

namespace odt::api::v1 {
class Event;
class WatchResponse;
}  // namespace odt::api::v1

namespace odt::api {

struct WatchOptions {
  std::chrono::milliseconds heartbeat{10'000};
  std::size_t behind_limit_bytes = 4u << 20;  // then RESYNC
  std::size_t response_bytes = 256u << 10;
  std::size_t max_streams = 256, max_topics = 256;
  // A board of which only counters and last_seen moved is sent again after this.
  std::chrono::milliseconds counters_interval{1000};
};

// Where a stream's responses go: the gRPC reactor. One write at a time; WatchStream::written()
// answers it. Called on the front thread.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // `telemetry`: the response's telemetry fields as they go over the wire.
  virtual void write(v1::WatchResponse response, std::string telemetry) = 0;
  virtual void finish(const Status& status) = 0;  // no call follows
};

// A step record, encoded once for whoever watches: a field of WatchResponse within a batch.
struct WatchFrame {
  Uuid run;
  std::uint32_t attempt = 0, step = 0;
  std::shared_ptr<const std::string> batch;
  std::size_t at = 0, size = 0;
};
using WatchFrames = std::vector<WatchFrame>;
WatchFrames encode_frames(const std::vector<model::TelemetryFrame>& frames);

// A board or port as the fleet sees it now; `essence` changes with anything but counters.
struct LiveItem {
  std::string key, essence, all;
  EventPtr event;
};

// What one Watch has still to send. Only decides what goes out and when; reading the store is the
// hub's (see Reader).
//
// Order: events leave in the order in which they came, which is that of event_seq. A conflated
// event is taken out when a newer one of the same resource comes. Events wait for the shortest
// interval of the conflated topics, unless a lossless one is among them: then all go at once.
// Bounded: more than behind_limit_bytes of live events and frames end the stream with RESYNC.
//
// Concurrency: front thread only.
class WatchStream : public std::enable_shared_from_this<WatchStream> {
 public:
  // What the stream asks of the hub; answers come through the *_read functions.
  class Reader {
   public:
    virtual ~Reader() = default;
    virtual void read_events(std::shared_ptr<WatchStream> stream, std::int64_t first) = 0;
    virtual void read_snapshot(std::shared_ptr<WatchStream> stream,
                               std::vector<WatchTopic> topics) = 0;
    struct FramePosition {
      Uuid run;
      std::uint32_t attempt = 0, first_step = 0, last_attempt = 0;
    };
    virtual void read_frames(std::shared_ptr<WatchStream> stream, FramePosition from) = 0;
    virtual void closed(std::uint64_t id) = 0;
    virtual const std::vector<LiveItem>& live() = 0;
  };

  WatchStream(std::uint64_t id, asio::io_context& front, const Clock& clock, Reader& reader,
              std::shared_ptr<WatchSink> sink, std::uint64_t store_epoch,
              const WatchOptions& options);

  std::uint64_t id() const { return id_; }
  bool wants_live() const;

  // Begins with a snapshot, or after event `resume_seq` (>= 0).
  void begin(std::vector<WatchTopic> topics, std::int64_t resume_seq);
  void resync();  // instead of begin: the watcher's position is of another store
  Status update(const std::vector<WatchTopic>& add, const std::vector<WatchTopic>& remove);
  void written(bool ok);
  void end(const Status& status);  // also after the sink is gone

  void on_event(const model::Event& event, const EventPtr& proto, std::size_t bytes);
  void on_events_end(std::int64_t next_seq);
  void on_frames(const WatchFrames& frames);
  void on_live();  // reader.live() changed

  void events_read(Result<std::vector<std::pair<model::Event, EventPtr>>> events,
                   std::int64_t next_first, bool at_end);
  // live_is_in_it: the snapshot shows the boards as reader.live() does.
  void snapshot_read(const std::vector<WatchTopic>& topics, Result<std::vector<EventPtr>> events,
                     std::int64_t next_seq, bool live_is_in_it);
  struct FramePage {
    Reader::FramePosition from;
    WatchFrames frames;
    Reader::FramePosition next;
    bool at_end = false;
  };
  void frames_read(Result<FramePage> page);

 private:
  struct Item {
    EventPtr event;  // null: the end of a snapshot
    std::int64_t seq = 0;
    std::size_t bytes = 0;
    std::string key;    // conflated; empty: lossless
    bool live = false;  // counts towards the limit
  };
  struct Lane {  // one telemetry topic; run zero: all runs, from now on
    WatchTopic topic;
    bool reading = false, read_asked = false;
    Reader::FramePosition position;
    std::deque<WatchFrame> pending;
    // The newest (attempt, step) taken in, ascending, by run where the topic is of all runs.
    using Recent = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
    std::unordered_map<Uuid, Recent, IdHash> recent;
    std::chrono::steady_clock::time_point due{};
  };
  struct SentLive {
    std::string essence, all;
    std::chrono::steady_clock::time_point time{};
  };
  using TimePoint = std::chrono::steady_clock::time_point;

  void activate(const std::vector<WatchTopic>& topics);
  void drop(const WatchTopic& topic);
  void push(Item item);
  void add_behind(std::size_t bytes);
  void go_live();
  static bool first_time(Lane& lane, const WatchFrame& frame);
  void ask_frames(Lane& lane);
  void flush();
  TimePoint events_due() const;
  bool take_events(v1::WatchResponse& response);
  bool take_live(v1::WatchResponse& response, TimePoint now);
  bool take_frames(std::string& telemetry, TimePoint now);
  void read_on();
  void arm(TimePoint at);
  TimePoint next_due(TimePoint now) const;
  bool live_waits() const;

  const std::uint64_t id_;
  const Clock& clock_;
  Reader& reader_;
  std::shared_ptr<WatchSink> sink_;
  const std::uint64_t store_epoch_;
  const WatchOptions& options_;
  asio::steady_timer timer_;

  std::vector<WatchTopic> topics_;
  std::vector<WatchTopic> adds_;  // wait for the end of a resume
  std::list<Lane> lanes_;
  std::list<Item> items_;
  std::unordered_map<std::string, std::list<Item>::iterator> conflated_;
  std::map<std::string, SentLive> sent_live_;
  std::size_t behind_bytes_ = 0;
  std::size_t urgent_ = 0;     // items that wait for no interval
  std::size_t snapshots_ = 0;  // asked or on the way out
  std::int64_t next_seq_ = 0;  // everything before it is sent or in items_
  std::uint64_t dropped_ = 0;
  bool resuming_ = false, resume_asked_ = false;
  bool writing_ = false, resync_ = false, ended_ = false;
  TimePoint last_write_{}, events_sent_{}, live_sent_{};
};

}  // namespace odt::api
