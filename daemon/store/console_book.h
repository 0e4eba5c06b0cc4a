#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/console.h"

// What boards print, bounded, in a database of its own (console.db): it survives a restart of odtd,
// is no part of a backup, and never gets in the way of the two that matter.
namespace odt::store {

struct ConsoleLimits {
  std::uint64_t per_board = 10'000, of_all = 1'000'000;  // lines; the oldest give way
  std::size_t queue = 20'000;  // lines that wait to be written; what comes then is lost and counted
};

struct ConsoleQuery {
  std::size_t page_size = 100;
  std::vector<BoardUid> boards;      // empty: all
  std::vector<std::string> with;     // words that the text must have; case of a-z does not matter
  std::vector<std::string> without;  // and must not
  std::uint32_t least_level = 0;
  // At most one of: the oldest lines after it; the newest before it; the oldest of all.
  std::uint64_t after_seq = 0, before_seq = 0;
  bool begin = false;
};

struct ConsolePage {
  std::vector<model::ConsoleLine> lines;  // ascending
  bool more = false;                      // there are more in that direction
  std::uint64_t newest_seq = 0;           // of any board
  std::uint64_t epoch = 0;                // of this file; another one counts seq anew
  std::uint64_t kept = 0;                 // lines of these boards, whether they match or not
  std::uint64_t lost = 0;                 // since start
};

// Concurrency: a thread of its own. Lines are written in batches; a query sees all that came
// before it.
class ConsoleBook {
 public:
  // A damaged file is set aside and begun anew; where none can be written, lines are kept in memory
  // until odtd ends. `warning` (not null) says so then.
  static std::unique_ptr<ConsoleBook> open(const std::string& path, const Clock& clock,
                                           std::string* warning, ConsoleLimits limits = {});
  ~ConsoleBook();  // stop()

  // Any thread; never blocks. seq and time are given here.
  void add(const BoardUid& board, model::ConsoleSource source, int level, std::string text);
  // `done` on the book's thread; after stop() at once with UNAVAILABLE.
  using Done = std::function<void(Result<ConsolePage>)>;
  void list(ConsoleQuery query, Done done);
  void stop();  // writes what waits; idempotent
  const ConsoleLimits& limits() const;

 private:
  struct Impl;
  explicit ConsoleBook(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace odt::store
