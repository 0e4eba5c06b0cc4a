#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Words and figures for people. Nothing here knows the API.
namespace odt::cli {

// Text that came from a board or a peer, safe for a terminal: control characters and invalid UTF-8
// become '?'.
std::string clean(std::string_view text);
bool is_utf8(std::string_view text);

std::string hex(std::string_view raw);
std::string percent(std::uint64_t part, std::uint64_t whole);  // "81.3 %", "-" where whole is 0
std::string size_text(std::uint64_t bytes);                    // "1.5 KB" (1024)
std::string duration_text(std::int64_t us);  // "90 us", "850 ms", "12.3 s", "4 min 05 s"
std::string ago_text(std::int64_t time_us, std::int64_t now_us);  // "3 s ago", "never" for 0
std::string clock_text(std::int64_t time_us);                     // local "14:03:07"
std::string date_text(std::int64_t time_us);                      // local "2026-11-30 14:03"
// sum * 2^exp2 / count; "-" where count is 0.
std::string loss_text(std::int64_t sum, int exp2, std::uint32_t count);
std::string significant(double value);  // four digits: "12.34", "0.001234", "1.234e+06"
template <typename Numbers>
std::string join_numbers(const Numbers& numbers, const char* separator) {
  std::string out;
  for (const auto n : numbers) out += (out.empty() ? "" : separator) + std::to_string(n);
  return out;
}
// "RUN_STATE_WAITING_BOARD" of prefix "RUN_STATE_": "WAITING_BOARD".
std::string without_prefix(const std::string& name, std::string_view prefix);

// Fewest insertions, deletions, replacements and swaps of neighbours from one word to the other.
std::size_t edit_distance(std::string_view a, std::string_view b);
// Those of `words` near enough to be what was meant, nearest first, at most 3.
std::vector<std::string> near_words(std::string_view word, const std::vector<std::string>& words);
// " Did you mean 'x' or 'y'?" or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& words);

// "90s", "30m", "2h", "7d" in microseconds, at most 366 days. Errors: INVALID_ARGUMENT.
Result<std::int64_t> parse_duration(const std::string& text);

// Columns seen by people: cells of one column begin below each other.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;  // cleaned, one line a row

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace odt::cli
