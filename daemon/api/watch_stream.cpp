#include "api/watch_stream.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>

#include "api/api_convert.h"
#include "api/errors.h"

namespace odt::api {
namespace {
constexpr std::size_t kRecentFrames = 256;
constexpr std::size_t kRecentOfEach = 64;  // of a run, where a topic is of all runs

// Who waits for a few of a batch must not keep all of it.
WatchFrame alone(const WatchFrame& frame) {
  WatchFrame out = frame;
  out.batch = std::make_shared<const std::string>(frame.batch->substr(frame.at, frame.size));
  out.at = 0;
  return out;
}
}  // namespace

WatchFrames encode_frames(const std::vector<model::TelemetryFrame>& frames) {
  using google::protobuf::internal::WireFormatLite;
  using google::protobuf::io::CodedOutputStream;
  const std::uint32_t tag = WireFormatLite::MakeTag(v1::WatchResponse::kTelemetryFieldNumber,
                                                    WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  const auto batch = std::make_shared<std::string>();
  WatchFrames out;
  out.reserve(frames.size());
  v1::TelemetryFrame message;
  for (const auto& frame : frames) {
    fill(message, frame);
    const std::size_t size = message.ByteSizeLong(), at = batch->size();
    const std::size_t head = CodedOutputStream::VarintSize32(tag) +
                             CodedOutputStream::VarintSize32(static_cast<std::uint32_t>(size));
    if (batch->capacity() < at + head + size)
      batch->reserve(std::max(at + head + size, frames.size() * (head + size + 16)));
    batch->resize(at + head + size);
    auto* p = reinterpret_cast<std::uint8_t*>(batch->data() + at);
    p = CodedOutputStream::WriteVarint32ToArray(tag, p);
    p = CodedOutputStream::WriteVarint32ToArray(static_cast<std::uint32_t>(size), p);
    message.SerializeWithCachedSizesToArray(p);
    out.push_back({frame.run_id, frame.attempt, frame.step, batch, at, head + size});
  }
  return out;
}

WatchStream::WatchStream(std::uint64_t id, asio::io_context& front, const Clock& clock,
                         Reader& reader, std::shared_ptr<WatchSink> sink, std::uint64_t store_epoch,
                         const WatchOptions& options)
    : id_(id),
      clock_(clock),
      reader_(reader),
      sink_(std::move(sink)),
      store_epoch_(store_epoch),
      options_(options),
      timer_(front) {}

bool WatchStream::wants_live() const {
  return std::any_of(topics_.begin(), topics_.end(), [](const WatchTopic& topic) {
    return topic.kind == TopicKind::kFleet || topic.kind == TopicKind::kAllEvents;
  });
}

void WatchStream::begin(std::vector<WatchTopic> topics, std::int64_t resume_seq) {
  last_write_ = clock_.steady_now();
  if (resume_seq < 0) {
    ++snapshots_;
    reader_.read_snapshot(shared_from_this(), std::move(topics));
  } else {
    resuming_ = true;
    next_seq_ = resume_seq + 1;
    activate(topics);
    resume_asked_ = true;
    reader_.read_events(shared_from_this(), next_seq_);
  }
  flush();
}

void WatchStream::resync() {
  resync_ = true;
  flush();
}

Status WatchStream::update(const std::vector<WatchTopic>& add,
                           const std::vector<WatchTopic>& remove) {
  if (topics_.size() + lanes_.size() + add.size() > options_.max_topics + remove.size())
    return with_reason(
        absl::ResourceExhaustedError("more than " + std::to_string(options_.max_topics) +
                                     " topics in one Watch"),
        "TOO_MANY_TOPICS", "remove topics that are out of sight");
  for (const auto& topic : remove) drop(topic);
  for (const auto& topic : add) drop(topic);
  if (resuming_) {
    adds_.insert(adds_.end(), add.begin(), add.end());
  } else if (!add.empty()) {
    ++snapshots_;
    reader_.read_snapshot(shared_from_this(), add);
  }
  flush();
  return absl::OkStatus();
}

void WatchStream::drop(const WatchTopic& topic) {
  const auto same = [&](const WatchTopic& other) { return other.same(topic); };
  topics_.erase(std::remove_if(topics_.begin(), topics_.end(), same), topics_.end());
  adds_.erase(std::remove_if(adds_.begin(), adds_.end(), same), adds_.end());
  lanes_.remove_if([&](const Lane& lane) { return lane.topic.same(topic); });
}

void WatchStream::activate(const std::vector<WatchTopic>& topics) {
  for (const auto& topic : topics) {
    if (topic.kind != TopicKind::kTelemetry) {
      topics_.push_back(topic);
      continue;
    }
    Lane& lane = lanes_.emplace_back();
    lane.topic = topic;
    lane.reading = topic.lossless && !topic.run.is_zero();
    lane.position.run = topic.run;
    lane.position.attempt = std::max(1u, topic.from_attempt);
    lane.position.first_step = topic.from_attempt == 0 ? 0 : topic.from_step + 1;
    lane.position.last_attempt = lane.position.attempt;
  }
}

void WatchStream::end(const Status& status) {
  if (ended_) return;
  ended_ = true;
  timer_.cancel();
  items_.clear();
  conflated_.clear();
  lanes_.clear();
  sink_->finish(status);
  sink_.reset();
  reader_.closed(id_);
}

void WatchStream::written(bool ok) {
  if (ended_) return;
  writing_ = false;
  if (!ok) return end(absl::CancelledError("the watcher went away"));
  if (resync_ && last_write_ == TimePoint::max()) return end(absl::OkStatus());
  flush();
}

// ---- what comes in

void WatchStream::push(Item item) {
  if (!item.key.empty()) {
    if (const auto old = conflated_.find(item.key); old != conflated_.end()) {
      behind_bytes_ -= old->second->live ? old->second->bytes : 0;
      items_.erase(old->second);
      conflated_.erase(old);
    }
  } else {
    ++urgent_;
  }
  if (item.live) add_behind(item.bytes);
  const std::string key = item.key;
  items_.push_back(std::move(item));
  if (!key.empty()) conflated_[key] = std::prev(items_.end());
}

void WatchStream::add_behind(std::size_t bytes) {
  behind_bytes_ += bytes;
  if (behind_bytes_ <= options_.behind_limit_bytes || resync_) return;
  resync_ = true;
  items_.clear();
  conflated_.clear();
  lanes_.clear();
  topics_.clear();
}

void WatchStream::on_event(const model::Event& event, const EventPtr& proto, std::size_t bytes) {
  if (ended_ || resync_ || resuming_) return;
  bool wanted = false, lossless = false;
  for (const auto& topic : topics_) {
    if (!wants(topic, event)) continue;
    wanted = true;
    lossless = lossless || topic.lossless;
  }
  if (!wanted) return;
  // The next live view is to be sent again, whatever it says.
  if (const auto* board = std::get_if<model::Board>(&event.body))
    sent_live_.erase("board" + board->uid.str());
  push({proto, event.seq, bytes, lossless ? std::string() : conflation_key(event), true});
}

void WatchStream::on_events_end(std::int64_t next_seq) {
  if (ended_ || resuming_) return;
  // Before the first snapshot the stream has no position yet.
  if (next_seq_ != 0) next_seq_ = std::max(next_seq_, next_seq);
  flush();
}

void WatchStream::on_frames(const WatchFrames& frames) {
  if (ended_ || resync_ || lanes_.empty()) return;
  for (Lane& lane : lanes_) {
    const bool all = lane.topic.run.is_zero();
    for (const WatchFrame& frame : frames) {
      if (!all && frame.run != lane.topic.run) continue;
      if (lane.reading || resuming_) {
        lane.position.last_attempt = std::max(lane.position.last_attempt, frame.attempt);
      } else if (!first_time(lane, frame)) {
        continue;
      } else if (lane.topic.lossless) {
        lane.pending.push_back(all ? frame : alone(frame));
        add_behind(frame.size);
        if (resync_) return flush();
      } else {
        dropped_ += lane.pending.size();
        lane.pending.assign(1, alone(frame));
      }
    }
  }
  flush();
}

// A board may report again what is stored already: equal records are announced twice.
bool WatchStream::first_time(Lane& lane, const WatchFrame& frame) {
  const bool one_run = !lane.topic.run.is_zero();
  const std::size_t most = one_run ? kRecentFrames : kRecentOfEach;
  auto& recent = lane.recent[lane.topic.run.is_zero() ? frame.run : Uuid{}];
  const std::pair key(frame.attempt, frame.step);
  const auto at = recent.empty() || recent.back() < key
                      ? recent.end()
                      : std::lower_bound(recent.begin(), recent.end(), key);
  if (at != recent.end() && *at == key) return false;
  if (recent.size() < most) {
    recent.insert(at, key);
  } else if (at != recent.begin()) {
    // The oldest one goes.
    std::move(recent.begin() + 1, at, recent.begin());
    *(at - 1) = key;
  }
  return true;
}

void WatchStream::on_live() {
  if (!ended_ && !resync_ && !resuming_ && wants_live()) flush();
}

void WatchStream::events_read(Result<std::vector<std::pair<model::Event, EventPtr>>> events,
                              std::int64_t next_first, bool at_end) {
  if (ended_ || resync_) return;
  resume_asked_ = false;
  if (!events.ok()) {
    if (!absl::IsOutOfRange(events.status())) return end(events.status());
    resync_ = true;
    return flush();
  }
  for (const auto& [event, proto] : *events) {
    const bool wanted = std::any_of(topics_.begin(), topics_.end(),
                                    [&e = event](const WatchTopic& t) { return wants(t, e); });
    if (wanted) push({proto, event.seq, proto->ByteSizeLong(), {}, false});
  }
  next_seq_ = next_first;
  if (at_end) go_live();
  flush();
}

void WatchStream::go_live() {
  resuming_ = false;
  ++snapshots_;
  push({});
  if (adds_.empty()) return;
  ++snapshots_;
  reader_.read_snapshot(shared_from_this(), std::move(adds_));
  adds_.clear();
}

void WatchStream::snapshot_read(const std::vector<WatchTopic>& topics,
                                Result<std::vector<EventPtr>> events, std::int64_t next_seq,
                                bool live_is_in_it) {
  if (ended_ || resync_) return;
  if (!events.ok()) return end(events.status());
  activate(topics);
  if (live_is_in_it && wants_live())
    for (const auto& item : reader_.live())
      sent_live_[item.key] = {item.essence, item.all, clock_.steady_now()};
  for (const auto& event : *events) push({event, 0, event->ByteSizeLong(), {}, false});
  push({});
  next_seq_ = std::max(next_seq_, next_seq);
  flush();
}

void WatchStream::frames_read(Result<FramePage> page) {
  if (ended_ || resync_) return;
  if (!page.ok()) return end(page.status());
  for (Lane& lane : lanes_) {
    if (lane.topic.run != page->from.run || !lane.reading || !lane.read_asked) continue;
    lane.read_asked = false;
    for (const auto& frame : page->frames)
      if (first_time(lane, frame)) lane.pending.push_back(frame);
    const auto seen = lane.position.last_attempt;
    lane.position = page->next;
    lane.position.last_attempt = std::max(seen, page->next.last_attempt);
    // A newer attempt was seen while the page was read: it is in the store.
    lane.reading = !page->at_end || seen > page->from.last_attempt;
  }
  flush();
}

// ---- what goes out

WatchStream::TimePoint WatchStream::events_due() const {
  if (items_.empty()) return TimePoint::max();
  if (urgent_ > 0) return TimePoint::min();
  auto interval = std::chrono::milliseconds::max();
  for (const auto& topic : topics_)
    if (!topic.lossless) interval = std::min(interval, topic.interval);
  if (interval == std::chrono::milliseconds::max()) return TimePoint::min();
  return events_sent_ + interval;
}

bool WatchStream::take_events(v1::WatchResponse& response) {
  std::size_t bytes = 0;
  bool any = false;
  while (!items_.empty() && bytes < options_.response_bytes) {
    Item& item = items_.front();
    any = true;
    if (item.key.empty())
      --urgent_;
    else
      conflated_.erase(item.key);
    if (item.live) behind_bytes_ -= std::min(behind_bytes_, item.bytes);
    if (item.event == nullptr) {
      if (--snapshots_ == 0) response.set_snapshot_done(true);
    } else {
      *response.add_events() = *item.event;
      bytes += item.bytes;
    }
    items_.pop_front();
  }
  return any;
}

bool WatchStream::live_waits() const {
  if (!wants_live() || resuming_ || snapshots_ > 0) return false;
  const auto now = clock_.steady_now();
  for (const auto& item : reader_.live()) {
    const auto sent = sent_live_.find(item.key);
    if (sent == sent_live_.end() || sent->second.essence != item.essence ||
        (sent->second.all != item.all && now - sent->second.time >= options_.counters_interval))
      return true;
  }
  return false;
}

bool WatchStream::take_live(v1::WatchResponse& response, TimePoint now) {
  if (!live_waits()) return false;
  auto interval = std::chrono::milliseconds::max();
  for (const auto& topic : topics_)
    if (topic.kind == TopicKind::kFleet || topic.kind == TopicKind::kAllEvents)
      interval = std::min(interval, topic.interval);
  if (now < live_sent_ + interval) return false;
  for (const auto& item : reader_.live()) {
    SentLive& sent = sent_live_[item.key];
    const bool changed = sent.time == TimePoint{} || sent.essence != item.essence;
    const bool counted = sent.all != item.all && now - sent.time >= options_.counters_interval;
    if (!changed && !counted) continue;
    sent = {item.essence, item.all, now};
    *response.add_events() = *item.event;
  }
  live_sent_ = now;
  return true;
}

bool WatchStream::take_frames(std::string& telemetry, TimePoint now) {
  bool any = false;
  for (Lane& lane : lanes_) {
    if (!lane.topic.lossless && now < lane.due) continue;
    if (!lane.pending.empty()) lane.due = now + lane.topic.interval;
    while (!lane.pending.empty() && telemetry.size() < options_.response_bytes) {
      const WatchFrame& frame = lane.pending.front();
      if (lane.topic.lossless && !lane.reading)
        behind_bytes_ -= std::min(behind_bytes_, frame.size);
      telemetry.append(*frame.batch, frame.at, frame.size);
      lane.pending.pop_front();
      any = true;
    }
  }
  return any;
}

void WatchStream::ask_frames(Lane& lane) {
  if (!lane.reading || lane.read_asked || !lane.pending.empty()) return;
  lane.read_asked = true;
  reader_.read_frames(shared_from_this(), lane.position);
}

void WatchStream::read_on() {
  if (resuming_) {
    if (resume_asked_ || !items_.empty()) return;
    resume_asked_ = true;
    reader_.read_events(shared_from_this(), next_seq_);
    return;
  }
  for (Lane& lane : lanes_) ask_frames(lane);
}

void WatchStream::flush() {
  if (ended_ || writing_) return;
  const auto now = clock_.steady_now();
  v1::WatchResponse response;
  std::string telemetry;
  bool any = resync_;
  if (resync_) {
    response.set_resync(true);
  } else {
    if (now >= events_due()) {
      any = take_events(response);
      events_sent_ = now;
    }
    any = take_live(response, now) || any;
    any = take_frames(telemetry, now) || any;
  }
  if (!any && now < last_write_ + options_.heartbeat) {
    read_on();
    arm(next_due(now));
    return;
  }
  // A position that a client may resume from: only once the first snapshot is out.
  const std::int64_t position =
      items_.empty() || items_.front().seq == 0 ? next_seq_ : items_.front().seq;
  response.set_watch_id(id_);
  response.set_store_epoch(store_epoch_);
  response.set_next_seq(snapshots_ > 0 && !resuming_ ? 0 : position);
  response.set_dropped(dropped_);
  response.set_server_time_us(clock_.now_us());
  dropped_ = 0;
  last_write_ = resync_ ? TimePoint::max() : now;
  writing_ = true;
  sink_->write(std::move(response), std::move(telemetry));
  read_on();
}

WatchStream::TimePoint WatchStream::next_due(TimePoint now) const {
  TimePoint due = std::min(last_write_ + options_.heartbeat, events_due());
  for (const Lane& lane : lanes_)
    if (!lane.pending.empty()) due = std::min(due, lane.due);
  // Live items are looked at with each new view; what waits for its interval is caught here.
  if (live_waits()) due = std::min(due, now + std::chrono::milliseconds(20));
  return std::max(due, now);
}

void WatchStream::arm(TimePoint at) {
  timer_.expires_after(
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(at - clock_.steady_now()));
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self != nullptr && !error) self->flush();
  });
}

}  // namespace odt::api
