#include "cli/text.h"

#include <absl/strings/numbers.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "base/ids.h"

namespace odt::cli {
namespace {

std::string printed(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

struct Sequence {
  std::size_t length = 0;  // 0: no valid UTF-8
  std::uint32_t code = 0;
};

Sequence sequence_at(std::string_view text, std::size_t i) {
  const auto at = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned lead = at(i);
  if (lead < 0x80) return {1, lead};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || i + length > text.size()) return {};
  std::uint32_t code = lead & (0x7Fu >> length);
  for (std::size_t k = 1; k < length; ++k) {
    if ((at(i + k) & 0xC0u) != 0x80u) return {};
    code = code << 6 | (at(i + k) & 0x3Fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (code < kLeast[length] || code > 0x10FFFF || surrogate) return {};
  return {length, code};
}

// Length of the sequence at text[i] that a terminal may show; 0: none.
std::size_t shown_length(std::string_view text, std::size_t i) {
  const Sequence s = sequence_at(text, i);
  const bool control = s.code < 0x20 || (s.code >= 0x7F && s.code < 0xA0) ||
                       (s.code >= 0x2028 && s.code <= 0x202E) ||
                       (s.code >= 0x2066 && s.code <= 0x2069);  // line breaks, writing direction
  return control ? 0 : s.length;
}

std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const Sequence s = sequence_at(text, i);
    if (s.length == 0) return false;
    i += s.length;
  }
  return true;
}

std::string clean(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = shown_length(text, i);
    if (length == 0) {
      out += '?';
      ++i;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  return out;
}

std::string hex(std::string_view raw) {
  return to_hex(reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size());
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return printed("%.1f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string size_text(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"KB", "MB", "GB", "TB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return printed("%.1f ", value) + unit;
}

std::string duration_text(std::int64_t us) {
  const double seconds = static_cast<double>(us) / 1e6;
  if (us < 1000) return std::to_string(us) + " us";
  if (seconds < 1) return printed("%.0f ms", seconds * 1000);
  if (seconds < 60) return printed("%.1f s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 3600) {
    char buffer[48];
    std::snprintf(buffer, sizeof buffer, "%d min %02d s", static_cast<int>(whole / 60),
                  static_cast<int>(whole % 60));
    return buffer;
  }
  return printed("%.1f h", seconds / 3600);
}

std::string ago_text(std::int64_t time_us, std::int64_t now_us) {
  if (time_us == 0) return "never";
  const std::int64_t seconds = std::max<std::int64_t>(0, (now_us - time_us) / 1'000'000);
  if (seconds < 120) return std::to_string(seconds) + " s ago";
  if (seconds < 7200) return std::to_string(seconds / 60) + " min ago";
  if (seconds < 172'800) return std::to_string(seconds / 3600) + " h ago";
  return std::to_string(seconds / 86'400) + " days ago";
}

namespace {
std::string local_time(std::int64_t time_us, const char* format) {
  const std::time_t seconds = static_cast<std::time_t>(time_us / 1'000'000);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  char buffer[40];
  return {buffer, std::strftime(buffer, sizeof buffer, format, &parts)};
}
}  // namespace

std::string clock_text(std::int64_t time_us) { return local_time(time_us, "%H:%M:%S"); }
std::string date_text(std::int64_t time_us) { return local_time(time_us, "%Y-%m-%d %H:%M"); }

std::string loss_text(std::int64_t sum, int exp2, std::uint32_t count) {
  if (count == 0) return "-";
  return significant(std::ldexp(static_cast<double>(sum), exp2) / count);
}

std::string significant(double value) { return printed("%.4g", value); }

std::string without_prefix(const std::string& name, std::string_view prefix) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const std::size_t replace = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

std::vector<std::string> near_words(std::string_view word, const std::vector<std::string>& words) {
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const std::string& candidate : words) {
    const std::size_t distance = edit_distance(word, candidate);
    const std::size_t most = std::max<std::size_t>(1, std::min(word.size(), candidate.size()) / 3);
    const bool begins = word.size() >= 3 && candidate.starts_with(word);
    if (distance <= most || begins) found.emplace_back(begins ? 0 : distance, candidate);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<std::string> out;
  for (const auto& [distance, candidate] : found)
    if (out.size() < 3) out.push_back(candidate);
  return out;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& candidate : near_words(word, words))
    out += (out.empty() ? " Did you mean '" : " or '") + clean(candidate) + "'";
  return out.empty() ? out : out + "?";
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : rows_) {
    auto& cleaned = rows.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i) {
      cleaned.push_back(clean(row[i]));
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], width(cleaned[i]));
    }
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

Result<std::int64_t> parse_duration(const std::string& text) {
  std::int64_t n = 0, unit = 0;
  switch (text.empty() ? '\0' : text.back()) {
    case 's':
      unit = 1;
      break;
    case 'm':
      unit = 60;
      break;
    case 'h':
      unit = 3600;
      break;
    case 'd':
      unit = 86'400;
      break;
    default:
      break;
  }
  if (unit == 0 || !absl::SimpleAtoi(text.substr(0, text.size() - 1), &n) || n <= 0 ||
      n > 366 * 86'400 / unit)
    return absl::InvalidArgumentError("'" + text +
                                      "' is no time; expected 90s, 30m, 2h or 7d, at most 366d");
  return n * unit * 1'000'000;
}

}  // namespace odt::cli
