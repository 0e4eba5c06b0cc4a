#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "data/csv_reader.h"

namespace odt::data {
namespace {

constexpr std::size_t kMaxCell = std::size_t{1} << 16;
constexpr std::size_t kMaxAhead = std::size_t{1} << 20, kMaxRow = std::size_t{16} << 20;

char find_delimiter(std::string_view line) {
  std::size_t commas = 0, most = 0, semicolons = 0;
  bool quoted = false;
  for (char c : line) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\t') return '\t';
    if (c == ',') most = std::max(most, ++commas);
    if (c == ';') {
      ++semicolons;
      commas = 0;
    }
  }
  return semicolons > 0 && most <= 1 ? ';' : ',';
}

void trim(std::string& cell) {
  const auto kept = absl::StripAsciiWhitespace(cell);
  if (kept.size() != cell.size()) cell = std::string(kept);
}

}  // namespace

Status CsvScanner::start() {
  for (int c; ahead_.size() < kMaxAhead && (c = input_->get()) >= 0;) {
    ahead_ += static_cast<char>(c);
    if (c == '\n') break;
  }
  ODT_TRY(input_->status());
  if (ahead_.starts_with("\xef\xbb\xbf")) ahead_.erase(0, 3);
  if (ahead_.starts_with("\xff\xfe") || ahead_.starts_with("\xfe\xff"))
    return absl::InvalidArgumentError(
        absl::StrCat(input_->name(), ": UTF-16 text; save it as UTF-8"));
  delimiter_ = find_delimiter(ahead_);
  return absl::OkStatus();
}

Status CsvScanner::rewind() {
  ODT_TRY(input_->rewind());
  ahead_.clear();
  ahead_at_ = 0;
  delimiter_ = 0;
  line_ = 1;
  return absl::OkStatus();
}

Result<bool> CsvScanner::next(std::vector<std::string>& cells) {
  if (delimiter_ == 0) ODT_TRY(start());
  while (ahead_at_ < ahead_.size() || input_->peek() >= 0) {
    row_line_ = line_;
    ODT_TRY(read_row(cells));
    ODT_TRY(input_->status());
    if (cells.size() > 1 || !cells[0].empty()) return true;
  }
  ODT_TRY(input_->status());
  return false;
}

Status CsvScanner::read_row(std::vector<std::string>& cells) {
  const auto get = [this] {
    return ahead_at_ < ahead_.size() ? static_cast<unsigned char>(ahead_[ahead_at_++])
                                     : input_->get();
  };
  const auto peek = [this] {
    return ahead_at_ < ahead_.size() ? static_cast<unsigned char>(ahead_[ahead_at_])
                                     : input_->peek();
  };
  std::size_t n = 0, bytes = 0;
  const auto open_cell = [&]() -> std::string& {
    if (n == cells.size()) cells.emplace_back();
    cells[n].clear();
    return cells[n++];
  };
  const auto fault = [this](const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat(input_->name(), ": line ", row_line_, ": ", what));
  };
  std::string* cell = &open_cell();
  bool quoted = false;
  for (int c; (c = get()) >= 0;) {
    if (c == '\n') ++line_;
    if (++bytes > kMaxRow) return fault("a row above 16 MiB");
    if (quoted) {
      if (c != '"') {
        *cell += static_cast<char>(c);
      } else if (peek() == '"') {
        *cell += static_cast<char>(get());
      } else {
        quoted = false;
      }
    } else if (c == '"' && absl::StripAsciiWhitespace(*cell).empty()) {
      cell->clear();
      quoted = true;
    } else if (c == delimiter_ || c == '\n') {
      trim(*cell);
      if (c == '\n') break;
      if (n == kMaxCells) return fault(absl::StrCat("more than ", kMaxCells, " cells"));
      cell = &open_cell();
    } else {
      *cell += static_cast<char>(c);
    }
    if (cell->size() > kMaxCell)
      return fault(quoted ? "a quoted cell has no end within 64 KiB" : "a cell above 64 KiB");
  }
  if (quoted) return fault("a quoted cell has no end");
  trim(*cell);
  cells.resize(n);
  return absl::OkStatus();
}

}  // namespace odt::data
