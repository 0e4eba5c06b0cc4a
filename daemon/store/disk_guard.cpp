#include "store/disk_guard.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "store/garbage.h"

namespace odt::store {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kScarce = 16 << 20;    // under this the ballast goes
constexpr std::uint64_t kLowFree = 256 << 20;  // under this people should know
constexpr std::uint64_t kWarnPct = 80, kThinFromPct = 90, kThinToPct = 70;
// Where thinning found too little: going through all runs again, so soon, finds no more.
constexpr std::chrono::seconds kThinAgain{60};

std::string mib(std::uint64_t bytes) { return absl::StrCat(bytes >> 20, " MiB"); }

}  // namespace

struct DiskGuard::Impl {
  std::string data_dir;
  ControlThread& control;
  TelemetryThread& telemetry;
  BlobStore& blobs;
  const Clock& clock;
  DiskOptions options;

  mutable std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  DiskReport now;
  std::thread thread;
  DiskState told = DiskState::kOk;
  std::int64_t last_sweep_us = 0;
  std::chrono::steady_clock::time_point thin_after{};

  std::string ballast() const { return data_dir + "/ballast"; }
  std::uint64_t ballast_bytes() const {
    std::error_code ec;
    const std::uintmax_t bytes = fs::file_size(ballast(), ec);
    return ec ? 0 : bytes;
  }

  void keep_ballast(std::uint64_t free) {
    std::error_code ec;
    const std::uint64_t have = ballast_bytes();
    if (have > 0 && free < kScarce) {
      fs::remove(ballast(), ec);
    } else if (have < options.ballast_bytes && free > options.ballast_bytes + kLowFree) {
      // Real blocks: a file with holes would free nothing.
      const int fd = ::open(ballast().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640);
      if (fd < 0) return;
      const int failed = ::posix_fallocate(fd, 0, static_cast<off_t>(options.ballast_bytes));
      ::close(fd);
      if (failed != 0) fs::remove(ballast(), ec);
    }
  }

  Result<std::vector<model::Run>> oldest_runs() {
    return control.call_sync([](ControlStore& store) -> Result<std::vector<model::Run>> {
      std::vector<model::Run> out;
      ListQuery query{1000, {}};
      do {
        ODT_ASSIGN(auto page, store.runs(query));
        for (auto& run : page.items)
          if (model::is_final(run.state) && !run.pinned) out.push_back(std::move(run));
        query.page_token = page.next_token;
      } while (!query.page_token.empty());
      std::stable_sort(out.begin(), out.end(),
                       [](const auto& a, const auto& b) { return a.end_time_us < b.end_time_us; });
      return out;
    });
  }

  // The oldest finished runs give up their raw records until there is room.
  Status thin_old() {
    const auto time = clock.steady_now();
    if (time < thin_after) return {};
    thin_after = time + kThinAgain;
    ODT_ASSIGN(const std::vector<model::Run> runs, oldest_runs());
    for (const model::Run& run : runs) {
      const auto room =
          telemetry.call_sync([id = run.id](TelemetryStore& store) -> Result<TelemetryStore::Room> {
            ODT_ASSIGN(const auto use, store.use(id));
            if (use.raw_frames > 0) ODT_TRY(store.thin(id).status());
            return store.room();
          });
      ODT_TRY(room.status());
      if (room->used_bytes * 100 >= room->quota_bytes * kThinToPct) continue;
      thin_after = {};
      return {};
    }
    return {};
  }

  // Trash that has been there long enough, and blobs that nothing names. What fails stays in the
  // trash for the next time.
  Status sweep() {
    const std::int64_t time = clock.now_us();
    if (time - last_sweep_us < 3600LL * 1'000'000) return {};
    last_sweep_us = time;
    const std::int64_t before = time - options.trash_kept_us;
    ODT_ASSIGN(std::vector<TrashItem> items, control.call_sync([before](ControlStore& store) {
      return trash_before(store, before);
    }));
    const Status kept = erase_telemetry(items);
    ODT_ASSIGN(const std::set<Hash> named,
               control.call_sync([&items](ControlStore& store) -> Result<std::set<Hash>> {
                 ODT_ASSIGN(items, purge_rows(store, items, {}));
                 return store.named_hashes();
               }));
    ODT_TRY(collect_garbage(blobs, named, candidates_of(items), time).status());
    return kept;
  }

  // Run by run: frames that come in are not kept waiting for all of them.
  Status erase_telemetry(std::vector<TrashItem>& items) {
    Status first;
    std::erase_if(items, [&](const TrashItem& item) {
      const auto erased =
          telemetry.call_sync([&item](TelemetryStore& s) { return erase_telemetry_of(item, s); });
      first.Update(erased.status());
      return !erased.ok();
    });
    return first;
  }

  void tell(const DiskReport& report) {
    if (report.state == told) return;
    const bool worse = report.state > told;
    told = report.state;
    if (!worse) return;
    model::Warning warning;
    warning.reason.code = report.state == DiskState::kFull ? "DISK_FULL" : "DISK_LOW";
    warning.reason.text = report.text;
    warning.reason.remedy = "free space, raise the quota, or purge the trash";
    Batch batch;
    batch.changes.push_back(AppendWarning{std::move(warning)});
    control.commit(std::move(batch), [](const auto&) {});
  }

  void check() {
    std::error_code ec;
    const fs::space_info space = fs::space(data_dir, ec);
    const std::uint64_t free = ec ? 0 : space.available;
    keep_ballast(free);
    auto room = telemetry.call_sync([](TelemetryStore& store) { return store.room(); });
    if (room.ok() && room->used_bytes * 100 >= room->quota_bytes * kThinFromPct) {
      thin_old().IgnoreError();  // said by the state, which stays
      room = telemetry.call_sync([](TelemetryStore& store) { return store.room(); });
    }
    sweep().IgnoreError();
    const TelemetryThread::Refused refused = telemetry.refused();
    DiskReport report;
    report.ballast_bytes = ballast_bytes();
    report.frames_refused = refused.frames;
    if (refused.full_now || free < kScarce) {
      report.state = DiskState::kFull;
      report.text = absl::StrCat("the disk of ", data_dir, " is full (", mib(free),
                                 " free): telemetry waits in memory; boards train on");
    } else if (room.ok() && room->used_bytes * 100 >= room->quota_bytes * kWarnPct) {
      report.state = DiskState::kLow;
      report.text = absl::StrCat("telemetry takes ", mib(room->used_bytes), " of its quota of ",
                                 mib(room->quota_bytes),
                                 "; the oldest finished runs that are not pinned will be thinned");
    } else if (free < kLowFree) {
      report.state = DiskState::kLow;
      report.text = absl::StrCat("the disk of ", data_dir, " has ", mib(free), " left");
    }
    tell(report);
    const std::lock_guard lock(mutex);
    now = report;
  }

  void loop() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      lock.unlock();
      check();
      lock.lock();
      wake.wait_for(lock, options.period, [&] { return stopping; });
    }
  }
};

DiskGuard::DiskGuard(std::string data_dir, ControlThread& control, TelemetryThread& telemetry,
                     BlobStore& blobs, const Clock& clock, DiskOptions options)
    : impl_(new Impl{std::move(data_dir),
                     control,
                     telemetry,
                     blobs,
                     clock,
                     options,
                     {},
                     {},
                     false,
                     {},
                     {},
                     DiskState::kOk,
                     0,
                     {}}) {}

DiskGuard::~DiskGuard() { stop(); }

void DiskGuard::start() {
  impl_->thread = std::thread([impl = impl_.get()] { impl->loop(); });
}

void DiskGuard::stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->wake.notify_all();
  if (impl_->thread.joinable()) impl_->thread.join();
}

DiskReport DiskGuard::report() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->now;
}

void DiskGuard::check() { impl_->check(); }

}  // namespace odt::store
