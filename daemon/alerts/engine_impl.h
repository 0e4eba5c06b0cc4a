#pragma once

#include <atomic>
#include <deque>

#include "alerts/board_watch.h"
#include "alerts/book.h"
#include "alerts/engine.h"
#include "alerts/run_watch.h"

// Inside of engine*.cpp. All members but `any_run` belong to the thread of `io`.
namespace odt::alerts {

struct Engine::Impl : std::enable_shared_from_this<Engine::Impl> {
  Impl(asio::io_context& context, const Clock& c, store::ControlThread& store, EngineOptions o);

  asio::io_context& io;
  const Clock& clock;
  store::ControlThread& control;
  EngineOptions options;
  Book book;
  BoardWatch boards;
  RunWatch runs;
  std::set<BoardUid> muted;          // in maintenance
  std::unique_ptr<Webhook> webhook;  // absent: none is configured
  asio::steady_timer timer;
  bool stopping = false, saving = false, sending = false;
  std::atomic<bool> any_run{false};
  // Changes by people, one after the other: each sees what the one before it left.
  std::deque<std::function<void()>> changes;
  bool changing = false;

  RunWatch::Now now() const { return {clock.now_us(), mono_us()}; }
  std::int64_t mono_us() const;
  void log(int level, const std::string& text) const {
    if (options.log) options.log(level, text);
  }

  void schedule();
  void tick();
  void look_at_boards(RunWatch::Now now);
  void look_at_disk(RunWatch::Now now);
  void save();
  void saved(const Book::Unsaved& what, Result<std::vector<model::Event>> events);
  void send();
  void sent(const model::Alert& alert, const Webhook::Answer& answer);
  void heard(std::vector<model::Event> events);
  void watch_run(const model::Run& run);

  // Runs `change` on io when those before it are done; it ends with next_change().
  void queue_change(std::function<void()> change);
  void next_change();
  // Stores what the book has new; then the next change may begin.
  void commit(const CallContext& ctx, std::function<void(Status)> done);
};

}  // namespace odt::alerts
