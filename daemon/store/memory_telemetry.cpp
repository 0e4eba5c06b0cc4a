#include <algorithm>

#include "store/frame_choice.h"
#include "store/memory_store.h"
#include "store/telemetry_codec.h"

namespace odt::store {

MemoryTelemetryStore::MemoryTelemetryStore(std::size_t max_frames) : max_frames_(max_frames) {}

Status MemoryTelemetryStore::append(const std::vector<model::TelemetryFrame>& frames) {
  // Nothing may be written where one frame fails: new ones of this call are kept aside first.
  std::map<std::pair<Uuid, Key>, model::TelemetryFrame> fresh;
  const auto find = [&](const Uuid& run, const Key& key) -> const model::TelemetryFrame* {
    if (const auto it = fresh.find({run, key}); it != fresh.end()) return &it->second;
    const auto frames_of = runs_.find(run);
    if (frames_of == runs_.end()) return nullptr;
    const auto it = frames_of->second.find(key);
    return it == frames_of->second.end() ? nullptr : &it->second;
  };
  for (const model::TelemetryFrame& frame : frames) {
    const Key key{frame.attempt, frame.step};
    if (const model::TelemetryFrame* old = find(frame.run_id, key)) {
      const Merge merge = merge_frame(*old, frame);
      if (merge == Merge::kIgnore) continue;
      if (merge == Merge::kDiverged) return diverged(frame);
      if (frame.gap == 0 && old->gap > 1) {
        const model::TelemetryFrame rest = rest_of_gap(*old);
        const Key rest_key{rest.attempt, rest.step};
        if (find(rest.run_id, rest_key) == nullptr) fresh[{rest.run_id, rest_key}] = rest;
      }
    }
    fresh[{frame.run_id, key}] = frame;
  }
  if (size_ + fresh.size() > max_frames_)
    return absl::ResourceExhaustedError(
        "telemetry in memory is full: " + std::to_string(max_frames_) + " frames");
  for (auto& [where, frame] : fresh)
    if (runs_[where.first].insert_or_assign(where.second, std::move(frame)).second) ++size_;
  return {};
}

std::map<std::uint32_t, const model::TelemetryFrame*> MemoryTelemetryStore::by_step(
    const Uuid& id, std::uint32_t attempt, std::uint32_t first, std::uint32_t last) const {
  std::map<std::uint32_t, const Frame*> out;
  if (const auto run = runs_.find(id); run != runs_.end())
    for (const auto& [key, frame] : run->second)  // ascending attempt: the newest stays
      if (frame.step >= first && frame.step <= last && (attempt == 0 || attempt == frame.attempt))
        out[frame.step] = &frame;
  return out;
}

Result<TelemetryStore::Frames> MemoryTelemetryStore::read(const Range& range) {
  const auto found = by_step(range.run, range.attempt, range.first_step, range.last_step);
  Frames out;
  out.total = static_cast<std::uint32_t>(found.size());
  FrameChoice choice(out.total, range.max_frames);
  std::uint32_t index = 0;
  for (const auto& [step, frame] : found)
    if (choice.takes(index++)) out.frames.push_back(*frame);
  return out;
}

Result<TelemetryStore::Part> MemoryTelemetryStore::read_part(const Range& range) {
  Part out;
  out.next_step = std::uint64_t{0xFFFFFFFF} + 1;
  if (const auto cuts = cuts_.find(range.run); cuts != cuts_.end()) out.cuts = cuts->second;
  for (const auto& [step, frame] :
       by_step(range.run, range.attempt, range.first_step, range.last_step)) {
    if (out.frames.size() >= range.max_frames) {
      out.next_step = step;
      break;
    }
    out.frames.push_back(*frame);
  }
  return out;
}

Result<SeriesAnswer> MemoryTelemetryStore::series(const SeriesQuery& q) {
  Points points;
  std::string layers;
  for (const auto& [step, frame] : by_step(q.run, q.attempt, q.first_step, q.last_step)) {
    const Point point = point_of(*frame, layers);
    points.place(point, layers);
  }
  // The windows that are left of thinned attempts, newest first.
  std::map<std::uint32_t, std::pair<const Rollup*, std::size_t>> windows;
  if (const auto run = thinned_.find(q.run); run != thinned_.end())
    for (auto it = run->second.rbegin(); it != run->second.rend(); ++it)
      for (std::size_t w = 0; w < it->second.windows.size(); ++w) {
        const std::uint64_t start = std::uint64_t{it->second.windows[w].index} * kSmallWindow;
        if ((q.attempt == 0 || q.attempt == it->first) && start <= q.last_step &&
            start + kSmallWindow > q.first_step)
          windows.try_emplace(it->second.windows[w].index, &it->second, w);
      }
  std::uint32_t first = 0xFFFFFFFF, last = 0;
  const auto seen = [&](std::uint32_t from, std::uint32_t to) {
    first = std::min(first, std::max(from, q.first_step));
    last = std::max(last, std::min(to, q.last_step));
  };
  for (const Point& p : points.rows) seen(p.step, p.step);
  for (const auto& [index, window] : windows)
    seen(index * kSmallWindow, index * kSmallWindow + (kSmallWindow - 1));
  if (points.rows.empty() && windows.empty()) return SeriesAnswer{};
  Buckets buckets(q, first, last, !windows.empty());
  for (const Point& p : points.rows) buckets.add(points, p);
  for (const auto& [index, window] : windows) {
    Rollup wanted;
    wanted.windows = {window.first->windows[window.second]};
    wanted.series.resize(window.first->series.size());
    for (const std::size_t i : buckets.wanted(wanted.series.size()))
      wanted.series[i] = {window.first->series[i][window.second]};
    buckets.add(wanted, 0, index * kSmallWindow, true);
  }
  return std::move(buckets).finish();
}

Result<TelemetryStore::Use> MemoryTelemetryStore::use(const Uuid& id) {
  Use use;
  if (const auto run = runs_.find(id); run != runs_.end()) {
    use.raw_frames = run->second.size();
    use.raw_bytes = use.raw_frames * sizeof(Frame);
  }
  if (const auto run = thinned_.find(id); run != thinned_.end())
    for (const auto& [attempt, rollup] : run->second)
      for (const Rollup::Window& window : rollup.windows) use.thinned_frames += window.records;
  return use;
}

Result<TelemetryStore::Use> MemoryTelemetryStore::use_of_all() {
  Use all;
  all.raw_frames = size_;
  all.raw_bytes = size_ * sizeof(Frame);
  return all;
}

Result<std::uint64_t> MemoryTelemetryStore::thin(const Uuid& id) {
  const auto run = runs_.find(id);
  if (run == runs_.end()) return 0;
  std::map<std::uint32_t, Points> attempts;
  std::string layers;
  for (const auto& [key, frame] : run->second) {
    const Point point = point_of(frame, layers);
    attempts[frame.attempt].place(point, layers);
  }
  for (const auto& [attempt, points] : attempts)
    thinned_[id][attempt] = roll_up(points, kSmallWindow);
  const std::size_t frames = run->second.size();
  size_ -= frames;
  runs_.erase(run);
  ++cuts_[id];
  return frames * sizeof(Frame);
}

Result<std::uint64_t> MemoryTelemetryStore::runs_thinned() { return thinned_.size(); }

Result<TelemetryStore::Room> MemoryTelemetryStore::room() {
  return Room{size_ * sizeof(Frame), size_ * sizeof(Frame), max_frames_ * sizeof(Frame)};
}

Result<std::uint64_t> MemoryTelemetryStore::size_bytes() {
  return size_ * sizeof(model::TelemetryFrame);
}

Result<std::uint64_t> MemoryTelemetryStore::erase(const Uuid& run) {
  ODT_ASSIGN(const Use gone, use(run));
  size_ -= gone.raw_frames;
  runs_.erase(run);
  thinned_.erase(run);
  ++cuts_[run];
  return gone.raw_frames + gone.thinned_frames;
}

}  // namespace odt::store
