#include "api/watch_hub.h"

#include <openssl/rand.h>

#include "api/api_convert.h"
#include "api/errors.h"

namespace odt::api {
namespace {

constexpr std::uint32_t kEventsPerPage = 500;
constexpr std::uint32_t kFramesPerPage = 2000;

LiveItem live_item(const model::Board& board, std::int64_t time_us) {
  v1::Event event;
  event.set_time_us(time_us);
  *event.mutable_board() = to_proto(board);
  LiveItem item;
  item.key = "board" + board.uid.str();
  item.all = event.board().SerializeAsString();
  v1::Board essence = event.board();
  essence.clear_last_seen_time_us();
  essence.clear_last_step();
  essence.mutable_link()->Clear();
  essence.mutable_link()->set_endpoint(event.board().link().endpoint());
  item.essence = essence.SerializeAsString();
  item.event = std::make_shared<v1::Event>(std::move(event));
  return item;
}

LiveItem live_item(const model::Port& port, std::int64_t time_us) {
  v1::Event event;
  event.set_time_us(time_us);
  *event.mutable_port() = to_proto(port);
  LiveItem item;
  item.key = "port" + port.path;
  item.essence = item.all = event.port().SerializeAsString();
  item.event = std::make_shared<v1::Event>(std::move(event));
  return item;
}

// Frames after a position: the rest of its attempt, then the newer attempts.
Result<WatchStream::FramePage> read_page(store::TelemetryStore& store,
                                         const WatchStream::Reader::FramePosition& from) {
  WatchStream::FramePage page;
  page.from = page.next = from;
  for (std::uint32_t attempt = from.attempt; attempt <= from.last_attempt + 1; ++attempt) {
    store::TelemetryStore::Range range;
    range.run = from.run;
    range.attempt = attempt;
    range.first_step = attempt == from.attempt ? from.first_step : 0;
    range.max_frames = kFramesPerPage;
    ODT_ASSIGN(auto read, store.read(range));
    if (read.total == 0) continue;
    if (read.total > kFramesPerPage) {
      // A sample of them: as many steps as one page holds at most.
      range.first_step = read.frames.front().step;
      range.last_step = range.first_step + (kFramesPerPage - 1);
      ODT_ASSIGN(read, store.read(range));
    }
    page.frames = encode_frames(read.frames);
    page.next.attempt = attempt;
    page.next.first_step = read.frames.back().step + 1;
    page.next.last_attempt = std::max(from.last_attempt, attempt);
    return page;
  }
  page.at_end = true;
  return page;
}

}  // namespace

WatchHub::WatchHub(asio::io_context& front, store::ControlThread& control,
                   store::TelemetryThread& telemetry, training::FleetControl& fleet,
                   const Clock& clock, WatchOptions options)
    : front_(front),
      control_(control),
      telemetry_(telemetry),
      fleet_(fleet),
      clock_(clock),
      options_(options) {}

std::uint64_t WatchHub::new_id() {
  std::uint64_t id = 0;
  while (id == 0)
    if (RAND_bytes(reinterpret_cast<unsigned char*>(&id), sizeof id) != 1) std::abort();
  return id;
}

void WatchHub::start() {
  fleet_.set_view_listener(
      [this](ViewPtr view) { asio::post(front_, [this, view = std::move(view)] { show(view); }); });
}

void WatchHub::stop() {
  asio::post(front_, [this] {
    stopped_ = true;
    for (const auto& stream : all())
      stream->end(with_reason(absl::UnavailableError("odtd is stopping"), "DAEMON_STOPPING",
                              "watch again when odtd is back"));
  });
}

void WatchHub::open(std::uint64_t id, std::shared_ptr<WatchSink> sink,
                    std::vector<WatchTopic> topics, std::uint64_t resume_store_epoch,
                    std::int64_t resume_seq) {
  const std::uint64_t epoch = control_.identity().store_epoch;
  asio::post(front_, [this, id, epoch, sink = std::move(sink), topics = std::move(topics),
                      resume_store_epoch, resume_seq]() mutable {
    if (stopped_)
      return sink->finish(with_reason(absl::UnavailableError("odtd is stopping"), "DAEMON_STOPPING",
                                      "watch again when odtd is back"));
    if (streams_.size() >= options_.max_streams)
      return sink->finish(
          with_reason(absl::ResourceExhaustedError(std::to_string(streams_.size()) +
                                                   " Watch streams are open; limit " +
                                                   std::to_string(options_.max_streams)),
                      "TOO_MANY_WATCHES", "one Watch with many topics is enough for a client"));
    if (topics.size() > options_.max_topics)
      return sink->finish(bad_field("topics", std::to_string(topics.size()) + "; limit " +
                                                  std::to_string(options_.max_topics)));
    WatchStream::Reader& reader = *this;
    auto stream =
        std::make_shared<WatchStream>(id, front_, clock_, reader, std::move(sink), epoch, options_);
    streams_[id] = stream;
    count_ = streams_.size();
    if (view_ == nullptr) view_ = fleet_.view();
    const bool resumes = resume_store_epoch != 0 && resume_seq >= 0;
    if (resumes && resume_store_epoch != epoch) return stream->resync();
    stream->begin(std::move(topics), resumes ? resume_seq : -1);
  });
}

void WatchHub::written(std::uint64_t id, bool ok) {
  asio::post(front_, [this, id, ok] {
    if (const auto stream = find(id)) stream->written(ok);
  });
}

void WatchHub::closed_by_peer(std::uint64_t id) {
  asio::post(front_, [this, id] {
    if (const auto stream = find(id)) stream->end(absl::CancelledError("the watcher went away"));
  });
}

void WatchHub::update(std::uint64_t id, std::vector<WatchTopic> add, std::vector<WatchTopic> remove,
                      Done<bool> done) {
  asio::post(front_,
             [this, id, add = std::move(add), remove = std::move(remove), done = std::move(done)] {
               const auto stream = find(id);
               if (stream == nullptr)
                 return done(with_reason(absl::NotFoundError("no Watch stream with this watch_id"),
                                         "WATCH_GONE", "open a new Watch", "watch_id"));
               if (const Status status = stream->update(add, remove); !status.ok())
                 return done(status);
               done(true);
             });
}

// ---- what is new

void WatchHub::on_events(const std::vector<model::Event>& events, std::int64_t next_seq) {
  if (count_.load() == 0) return;
  asio::post(front_,
             [this, shared = std::make_shared<std::vector<model::Event>>(events), next_seq] {
               for (auto& event : *shared) with_link(event);
               deliver(*shared, next_seq);
             });
}

void WatchHub::deliver(const std::vector<model::Event>& events, std::int64_t next_seq) {
  const auto streams = all();
  for (const auto& event : events) {
    const auto proto = std::make_shared<v1::Event>(to_proto(event));
    const std::size_t bytes = proto->ByteSizeLong();
    for (const auto& stream : streams) stream->on_event(event, proto, bytes);
  }
  for (const auto& stream : streams) stream->on_events_end(next_seq);
}

void WatchHub::on_telemetry(const std::vector<model::TelemetryFrame>& frames) {
  if (count_.load() == 0) return;
  asio::post(front_, [this, encoded = encode_frames(frames)] {
    for (const auto& stream : all()) stream->on_frames(encoded);
  });
}

void WatchHub::show(ViewPtr view) {
  view_ = std::move(view);
  for (const auto& stream : all()) stream->on_live();
}

// Stored boards know nothing of the link: a durable event must not blank what is live.
void WatchHub::with_link(model::Event& event) const {
  auto* board = std::get_if<model::Board>(&event.body);
  if (board == nullptr || view_ == nullptr) return;
  for (const auto& live : view_->boards) {
    if (live.uid != board->uid) continue;
    board->link = live.link;
    board->last_seen_time_us = std::max(board->last_seen_time_us, live.last_seen_time_us);
  }
}

const std::vector<LiveItem>& WatchHub::live() {
  if (live_of_ == view_) return live_;
  live_.clear();
  if (view_ != nullptr) {
    for (const auto& board : view_->boards) live_.push_back(live_item(board, view_->time_us));
    for (const auto& port : view_->ports) live_.push_back(live_item(port, view_->time_us));
  }
  live_of_ = view_;
  return live_;
}

// ---- what is read for a stream: on the store thread, answered on the front thread

void WatchHub::read_events(StreamPtr stream, std::int64_t first) {
  control_.post([this, stream, first](store::ControlStore& store) {
    const std::int64_t next_seq = store.next_seq();
    Result<std::vector<model::Event>> events = std::vector<model::Event>();
    if (first > next_seq) {
      events = absl::OutOfRangeError("event " + std::to_string(first) + " has not happened");
    } else if (first < next_seq) {
      events = store.events_from(first, kEventsPerPage);
    }
    Result<std::vector<std::pair<model::Event, EventPtr>>> page =
        std::vector<std::pair<model::Event, EventPtr>>();
    std::int64_t next_first = next_seq;
    if (!events.ok()) {
      page = events.status();
    } else {
      for (auto& event : *events) {
        auto proto = std::make_shared<v1::Event>(to_proto(event));
        page->emplace_back(std::move(event), std::move(proto));
      }
      next_first = std::min(next_seq, first + static_cast<std::int64_t>(kEventsPerPage));
    }
    asio::post(front_, [stream, page = std::move(page), next_first, next_seq]() mutable {
      stream->events_read(std::move(page), next_first, next_first == next_seq);
    });
  });
}

void WatchHub::read_snapshot(StreamPtr stream, std::vector<WatchTopic> topics) {
  control_.post([this, stream, topics = std::move(topics)](store::ControlStore& store) {
    const ViewPtr view = fleet_.view();
    auto events = take_snapshot(store, *view, topics);
    asio::post(front_, [this, stream, topics, view, events = std::move(events),
                        next_seq = store.next_seq()]() mutable {
      stream->snapshot_read(topics, std::move(events), next_seq, view == view_);
    });
  });
}

void WatchHub::read_frames(StreamPtr stream, WatchStream::Reader::FramePosition from) {
  control_.post([this, stream, from](store::ControlStore& control) mutable {
    // Attempts may have gone by without a frame.
    if (const auto run = control.run(from.run); run.ok())
      from.last_attempt = std::max(from.last_attempt, run->attempt);
    telemetry_.post([this, stream, from](store::TelemetryStore& store) {
      auto page = read_page(store, from);
      asio::post(front_, [stream, page = std::move(page)]() mutable {
        stream->frames_read(std::move(page));
      });
    });
  });
}

// ---- streams

void WatchHub::closed(std::uint64_t id) {
  streams_.erase(id);
  count_ = streams_.size();
}

WatchHub::StreamPtr WatchHub::find(std::uint64_t id) const {
  const auto it = streams_.find(id);
  return it == streams_.end() ? nullptr : it->second;
}

std::vector<WatchHub::StreamPtr> WatchHub::all() const {
  std::vector<StreamPtr> streams;
  streams.reserve(streams_.size());
  for (const auto& [id, stream] : streams_) streams.push_back(stream);
  return streams;
}

}  // namespace odt::api
