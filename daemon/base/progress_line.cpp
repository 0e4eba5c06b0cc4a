#include "base/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <ostream>

namespace odt {
namespace {

using std::chrono::seconds;

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }

std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

}  // namespace

std::size_t terminal_columns(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string fit_columns(const std::string& text, std::size_t columns) {
  if (columns_of(text) < columns) return text;
  const std::size_t room = columns > 0 ? columns - 1 : 0, dots = room > 10 ? 2 : 0;
  std::size_t end = 0, taken = 0;
  for (; end < text.size(); ++end)
    if (starts_character(text[end]) && taken++ == room - dots) break;
  return text.substr(0, end) + std::string(dots, '.');
}

std::string progress_bar(std::uint32_t permille, const std::string& message, std::size_t columns) {
  const std::size_t width = columns >= 60 ? 24 : columns >= 40 ? 10 : 0;
  const std::size_t done = std::min<std::size_t>(permille, 1000), full = done * width / 1000;
  std::string percent = std::to_string(done / 10);
  percent.insert(0, 3 - percent.size(), ' ');
  std::string line;
  if (width > 0) line = "[" + std::string(full, '#') + std::string(width - full, '.') + "] ";
  return fit_columns(line + percent + " %  " + message, columns);
}

ProgressLine::ProgressLine(std::ostream& out, bool terminal, Elsewhere elsewhere)
    : columns([] { return terminal_columns(STDERR_FILENO); }),
      out_(out),
      terminal_(terminal),
      elsewhere_(elsewhere) {}

void ProgressLine::show(const std::string& line) {
  terminal_ ? draw(fit_columns(line, columns())) : hold(line);
}

void ProgressLine::show_bar(std::uint32_t permille, const std::string& message) {
  if (terminal_) return draw(progress_bar(permille, message, columns()));
  hold(elsewhere_ == Elsewhere::kFirstToLast
           ? message
           : std::to_string(std::min<std::uint32_t>(permille, 1000) / 10) + " %  " + message);
}

void ProgressLine::draw(const std::string& line) {
  out_ << "\r\x1b[K" << line << std::flush;
  shown_ = true;
}

void ProgressLine::hold(const std::string& line) {
  const auto time = now();
  const bool first = !begun_;
  begun_ = true;
  const bool each = elsewhere_ == Elsewhere::kFirstToLast;
  if (first && !each) last_ = time;
  // The last of its kind: "epoch 8 of 8" before "measuring".
  if (!held_.empty() && first_word(held_) != first_word(line)) {
    out_ << held_ << std::endl;
    held_.clear();
  }
  if (first ? each : time - last_ >= (each ? seconds(3) : seconds(5))) {
    out_ << line << std::endl;
    last_ = time;
    held_.clear();
  } else if (each) {
    held_ = line;
  }
}

void ProgressLine::end() {
  if (shown_) out_ << "\r\x1b[K" << std::flush;
  if (!held_.empty()) out_ << held_ << std::endl;
  held_.clear();
  shown_ = begun_ = false;
}

}  // namespace odt
