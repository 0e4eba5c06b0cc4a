#include "store/console_book.h"

#include <absl/strings/str_cat.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <thread>

#include "store/console_table.h"
#include "store/open.h"

namespace odt::store {
namespace {

constexpr std::chrono::milliseconds kGather{200};  // lines of one transaction

}  // namespace

struct ConsoleBook::Impl {
  Impl(const Clock& c, ConsoleLimits l) : clock(c), limits(l) {}

  const Clock& clock;
  const ConsoleLimits limits;
  std::unique_ptr<ConsoleTable> table;
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<model::ConsoleLine> queue;
  struct Asked {
    ConsoleQuery query;
    Done done;
  };
  std::deque<Asked> asked;
  std::uint64_t lost = 0;
  bool stopping = false;
  std::thread thread;

  void run();
  void write(std::vector<model::ConsoleLine> lines);
};

std::unique_ptr<ConsoleBook> ConsoleBook::open(const std::string& path, const Clock& clock,
                                               std::string* warning, ConsoleLimits limits) {
  auto impl = std::make_unique<Impl>(clock, limits);
  auto table = ConsoleTable::open(path, limits);
  if (absl::IsDataLoss(table.status())) {
    if (warning) *warning = absl::StrCat(table.status().message(), "; it was set aside");
    set_aside(path, clock.now_us()).IgnoreError();
    table = ConsoleTable::open(path, limits);
  }
  if (!table.ok()) {
    if (warning)
      *warning = absl::StrCat(table.status().message(), "; consoles are kept in memory only");
    table = ConsoleTable::open(":memory:", limits);
  }
  if (table.ok()) impl->table = std::move(*table);
  std::unique_ptr<ConsoleBook> book(new ConsoleBook(std::move(impl)));
  book->impl_->thread = std::thread([impl = book->impl_.get()] { impl->run(); });
  return book;
}

ConsoleBook::ConsoleBook(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ConsoleBook::~ConsoleBook() { stop(); }
const ConsoleLimits& ConsoleBook::limits() const { return impl_->limits; }

void ConsoleBook::add(const BoardUid& board, model::ConsoleSource source, int level,
                      std::string text) {
  model::ConsoleLine line;
  line.time_us = impl_->clock.now_us();
  line.board_uid = board;
  line.source = source;
  line.level = static_cast<std::uint8_t>(level < 0 ? 0 : level > 5 ? 5 : level);
  line.text = std::move(text);
  const std::lock_guard lock(impl_->mutex);
  if (impl_->stopping || impl_->queue.size() >= impl_->limits.queue) {
    ++impl_->lost;
    return;
  }
  impl_->queue.push_back(std::move(line));
  if (impl_->queue.size() == 1) impl_->wake.notify_one();
}

void ConsoleBook::list(ConsoleQuery query, Done done) {
  {
    const std::lock_guard lock(impl_->mutex);
    if (!impl_->stopping) {
      impl_->asked.push_back({std::move(query), std::move(done)});
      return impl_->wake.notify_one();
    }
  }
  done(absl::UnavailableError("odtd is stopping"));
}

void ConsoleBook::stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    impl_->wake.notify_one();
  }
  if (impl_->thread.joinable()) impl_->thread.join();
}

void ConsoleBook::Impl::write(std::vector<model::ConsoleLine> lines) {
  if (lines.empty()) return;
  const Status status = table ? table->append(lines) : absl::UnavailableError("no table");
  if (status.ok()) return;
  const std::lock_guard lock(mutex);
  lost += lines.size();
}

void ConsoleBook::Impl::run() {
  std::unique_lock lock(mutex);
  while (true) {
    wake.wait(lock, [this] { return stopping || !queue.empty() || !asked.empty(); });
    if (!stopping && asked.empty())
      wake.wait_for(lock, kGather, [this] { return stopping || !asked.empty(); });
    auto lines = std::exchange(queue, {});
    auto questions = std::exchange(asked, {});
    const bool last = stopping;
    lock.unlock();
    write(std::move(lines));
    for (auto& q : questions) {
      auto page = table ? table->list(q.query)
                        : Result<ConsolePage>(absl::UnavailableError("consoles are not kept"));
      lock.lock();
      if (page.ok()) page->lost = lost;
      lock.unlock();
      q.done(std::move(page));
    }
    lock.lock();
    if (last) return;
  }
}

}  // namespace odt::store
