#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/asio.h"
#include "base/clock.h"
#include "fleet/async.h"
#include "fleet/registry.h"
#include "jobs/job_control.h"
#include "store/store_thread.h"
#include "training/blob_share.h"
#include "training/rate_book.h"
#include "training/reason.h"

// What the coroutines of this room share. Links thread only, but where said.
namespace odt::training {

using Session = std::shared_ptr<session::BoardSession>;

struct Env {
  asio::io_context& io;
  const Clock& clock;
  store::ControlThread& control;
  store::TelemetryThread& telemetry;
  store::BlobStore& blobs;
  jobs::JobControl& jobs;
  fleet::LogFn log;
  std::chrono::seconds resume_deadline;
  std::shared_ptr<fleet::Registry> registry;
  bool stopping = false;

  void say(int level, const std::string& text) const {
    if (log) log(level, text);
  }
  model::Meta new_meta(const std::string& actor) const {
    return {control.identity().gateway_id, actor, clock.now_us(), 0};
  }
  // For batches and evaluations: never 0, growing over restarts of odtd.
  std::uint32_t next_id() {
    // Of 10 ms: an odtd that follows another at once has others.
    if (last_id == 0) last_id = static_cast<std::uint32_t>(clock.now_us() / 10'000) << 6;
    if (++last_id == 0) last_id = 1;
    return last_id;
  }
  std::uint32_t last_id = 0;
  // A cancelled run is over after this at the latest, whatever its board does.
  std::chrono::milliseconds cancel_grace{10'000};

  // Without progress a holder of a board loses it after this.
  std::chrono::milliseconds lease_time{180'000};
  std::function<void(const BoardUid&)> renew{};  // progress on a board; empty: nobody holds leases
  std::function<std::uint64_t()> disk_free{};
  std::set<Hash> initial_noted{};  // models whose own weights the store knows
  std::shared_ptr<BlobShare> blob_share = std::make_shared<BlobShare>();
  std::shared_ptr<RateBook> rates = std::make_shared<RateBook>();
  void progress(const BoardUid& uid) const {
    if (renew) renew(uid);
  }

  // File work is not for the links thread.
  asio::awaitable<Result<std::shared_ptr<const std::string>>> read_blob(Hash hash) {
    if (auto here = blob_share->held(hash)) co_return here;
    const auto read = [this, hash](store::ControlStore&) { return blob_share->get(blobs, hash); };
    auto content = co_await control.call(read);
    co_return content;
  }
  asio::awaitable<Result<Hash>> write_blob(std::shared_ptr<const std::string> content) {
    const auto put = [this, content](store::ControlStore&) { return blobs.put(*content); };
    auto hash = co_await control.call(put);
    co_return hash;
  }
};

// Waits for an operation that answers with Done<T> on any thread.
template <typename T>
asio::awaitable<Result<T>> await_done(asio::io_context& io,
                                      std::function<void(Done<T>)> operation) {
  struct State {
    explicit State(asio::io_context& io) : signal(io) {}
    fleet::Signal signal;
    std::optional<Result<T>> answer;
  };
  auto state = std::make_shared<State>(io);
  Done<T> done = [state, &io](Result<T> answer) {
    asio::post(io, [state, answer = std::move(answer)]() mutable {
      state->answer = std::move(answer);
      state->signal.notify();
    });
  };
  operation(std::move(done));
  while (!state->answer) co_await state->signal.wait();
  co_return std::move(*state->answer);
}

// First body of that type among events.
template <typename T>
const T* find_body(const std::vector<model::Event>& events) {
  for (const auto& event : events)
    if (const auto* body = std::get_if<T>(&event.body)) return body;
  return nullptr;
}

inline std::string text_of(const Status& status) { return std::string(status.message()); }

}  // namespace odt::training
