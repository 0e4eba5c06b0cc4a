#pragma once

#include <map>
#include <mutex>

#include "store/control_engine.h"
#include "store/telemetry_series.h"

// Stores without files: for tests, and telemetry when its database cannot be used.
namespace odt::store {

class MemoryControlStore final : public ControlEngine {
 public:
  explicit MemoryControlStore(const Clock& clock);  // a new identity; `clock` outlives this
};

class MemoryTelemetryStore : public TelemetryStore {
 public:
  // Past max_frames: RESOURCE_EXHAUSTED.
  explicit MemoryTelemetryStore(std::size_t max_frames = 2'000'000);
  Status append(const std::vector<model::TelemetryFrame>& frames) override;
  Result<Frames> read(const Range& range) override;
  Result<Part> read_part(const Range& range) override;
  Result<SeriesAnswer> series(const SeriesQuery& query) override;
  Result<Use> use(const Uuid& run) override;
  Result<Use> use_of_all() override;
  Result<std::uint64_t> thin(const Uuid& run) override;
  Result<std::uint64_t> runs_thinned() override;
  Result<Room> room() override;
  Result<std::uint64_t> size_bytes() override;
  Result<std::uint64_t> erase(const Uuid& run) override;

 private:
  using Key = std::pair<std::uint32_t, std::uint32_t>;  // attempt, step
  using Frame = model::TelemetryFrame;
  // Of every step of the range the newest attempt's.
  std::map<std::uint32_t, const Frame*> by_step(const Uuid& run, std::uint32_t attempt,
                                                std::uint32_t first, std::uint32_t last) const;
  std::map<Uuid, std::map<Key, Frame>> runs_;
  std::map<Uuid, std::map<std::uint32_t, Rollup>> thinned_;  // by attempt, small windows
  std::map<Uuid, std::uint64_t> cuts_;                       // Part::cuts
  std::size_t max_frames_, size_ = 0;
};

class MemoryBlobStore final : public BlobStore {
 public:
  Result<Hash> put(std::string_view content) override;
  Status adopt(const std::string& path, const Hash& hash) override;
  Result<std::string> get(const Hash& hash) override;
  Result<std::string> path(const Hash& hash) override;  // UNIMPLEMENTED: there is no file
  bool has(const Hash& hash) override;
  Result<std::vector<Entry>> list() override;
  Result<bool> remove_unused(const Hash& hash, std::int64_t since_us) override;

 private:
  struct Blob {
    std::string content;
    std::int64_t used_us = 0;
  };
  std::mutex mutex_;
  std::map<Hash, Blob> blobs_;
};

}  // namespace odt::store
