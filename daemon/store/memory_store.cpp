#include "store/memory_store.h"

#include <fstream>
#include <iterator>

#include "store/frame_choice.h"
#include "store/identity.h"
#include "store/memory_rows.h"
#include "store/telemetry_codec.h"

namespace odt::store {

MemoryControlStore::MemoryControlStore(const Clock& clock)
    : ControlEngine(std::make_unique<MemoryRows>(), clock, new_identity()) {}

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

Result<TelemetryStore::Frames> MemoryTelemetryStore::read(const Range& range) {
  std::map<std::uint32_t, const model::TelemetryFrame*> by_step;
  if (const auto run = runs_.find(range.run); run != runs_.end())
    for (const auto& [key, frame] : run->second)  // ascending attempt: the newest stays
      if (frame.step >= range.first_step && frame.step <= range.last_step &&
          (range.attempt == 0 || range.attempt == frame.attempt))
        by_step[frame.step] = &frame;
  Frames out;
  out.total = static_cast<std::uint32_t>(by_step.size());
  FrameChoice choice(out.total, range.max_frames);
  std::uint32_t index = 0;
  for (const auto& [step, frame] : by_step)
    if (choice.takes(index++)) out.frames.push_back(*frame);
  return out;
}

Result<std::uint64_t> MemoryTelemetryStore::size_bytes() {
  return size_ * sizeof(model::TelemetryFrame);
}

Result<std::uint64_t> MemoryTelemetryStore::erase(const Uuid& run) {
  const auto found = runs_.find(run);
  if (found == runs_.end()) return 0;
  const std::size_t frames = found->second.size();
  size_ -= frames;
  runs_.erase(found);
  return frames;
}

Result<Hash> MemoryBlobStore::put(std::string_view content) {
  const Hash hash = sha256(content);
  std::lock_guard lock(mutex_);
  blobs_[hash] = {std::string(content), SystemClock().now_us()};
  return hash;
}

Status MemoryBlobStore::adopt(const std::string& path, const Hash& hash) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(path + ": cannot be read");
  std::string content(std::istreambuf_iterator<char>(in), {});
  const Hash got = sha256(content);
  if (got != hash)
    return absl::InvalidArgumentError(path + ": SHA-256 is " + got.hex() + ", expected " +
                                      hash.hex());
  return put(content).status();
}

Result<std::string> MemoryBlobStore::get(const Hash& hash) {
  std::lock_guard lock(mutex_);
  const auto it = blobs_.find(hash);
  if (it == blobs_.end()) return absl::NotFoundError("no blob " + hash.hex());
  return it->second.content;
}

Result<std::string> MemoryBlobStore::path(const Hash&) {
  return absl::UnimplementedError("blobs in memory have no path");
}

bool MemoryBlobStore::has(const Hash& hash) {
  std::lock_guard lock(mutex_);
  const auto it = blobs_.find(hash);
  if (it == blobs_.end()) return false;
  it->second.used_us = SystemClock().now_us();
  return true;
}

Result<std::vector<BlobStore::Entry>> MemoryBlobStore::list() {
  std::lock_guard lock(mutex_);
  std::vector<Entry> out;
  for (const auto& [hash, blob] : blobs_) out.push_back({hash, blob.content.size(), blob.used_us});
  return out;
}

Result<bool> MemoryBlobStore::remove_unused(const Hash& hash, std::int64_t since_us) {
  std::lock_guard lock(mutex_);
  const auto it = blobs_.find(hash);
  if (it == blobs_.end() || it->second.used_us > since_us) return false;
  blobs_.erase(it);
  return true;
}

}  // namespace odt::store
