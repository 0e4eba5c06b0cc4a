#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

namespace odt {

// Columns of the terminal on a descriptor; 80 where nobody knows.
std::size_t terminal_columns(int fd);
// UTF-8 text that takes fewer than `columns` columns (one a character): in the last one, many
// terminals start a new line.
std::string fit_columns(const std::string& text, std::size_t columns);
// "[####....]  25 %  message"; the bar is shorter or absent on a narrow terminal.
std::string progress_bar(std::uint32_t permille, const std::string& message, std::size_t columns);

// Progress on standard error. On a terminal one line, written over and gone at the end; elsewhere
// plain lines, so far apart that a log stays readable.
class ProgressLine {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Elsewhere : std::uint8_t {
    kRarely,       // every 5 s, none within the first 5: for what is mostly quick
    kFirstToLast,  // the first, the last of each first word, and one every 3 s between
  };
  ProgressLine(std::ostream& out, bool terminal, Elsewhere elsewhere = Elsewhere::kRarely);
  ~ProgressLine() { end(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& line);
  void show_bar(std::uint32_t permille, const std::string& message);
  // Clears the line, or writes the last one that was held back.
  void end();

  // Of the terminal that `out` is; tests give their own.
  std::function<std::size_t()> columns;
  std::function<Clock::time_point()> now = Clock::now;

 private:
  void draw(const std::string& line);
  void hold(const std::string& line);

  std::ostream& out_;
  const bool terminal_;
  const Elsewhere elsewhere_;
  bool shown_ = false, begun_ = false;
  Clock::time_point last_{};
  std::string held_;
};

}  // namespace odt
