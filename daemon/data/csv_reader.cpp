#include "data/csv_reader.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace odt::data {
namespace {

struct CsvRow {
  std::uint32_t line = 0;  // of its first byte, from 1
  std::vector<std::string> cells;
};

char find_delimiter(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  const auto at = first.find_first_of(",;\t");
  return at == std::string_view::npos ? ',' : first[at];
}

// Cells that come from the file reach errors and terminals: printable and short.
std::string shown(std::string_view cell) {
  std::string out;
  for (char c : cell.substr(0, 32)) out += absl::ascii_isprint(c) ? c : '?';
  if (cell.size() > 32) out += "...";
  return out;
}

class Splitter {
 public:
  Splitter(std::string_view text, std::string name)
      : text_(text), name_(std::move(name)), delimiter_(find_delimiter(text)) {}

  // Next row with any content; nullopt at the end.
  Result<std::optional<CsvRow>> next() {
    while (at_ < text_.size()) {
      CsvRow row;
      row.line = line_;
      ODT_TRY(read_row(row));
      if (row.cells.size() > 1 || !row.cells[0].empty())
        return std::optional<CsvRow>(std::move(row));
    }
    return std::optional<CsvRow>();
  }

 private:
  Status read_row(CsvRow& row) {
    std::string cell;
    bool quoted = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quoted) {
        if (c == '\n') ++line_;
        if (c != '"') {
          cell += c;
        } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
          cell += '"';
          ++at_;
        } else {
          quoted = false;
        }
      } else if (c == '"' && absl::StripAsciiWhitespace(cell).empty()) {
        cell.clear();
        quoted = true;
      } else if (c == delimiter_ || c == '\n') {
        row.cells.emplace_back(absl::StripAsciiWhitespace(cell));
        cell.clear();
        if (c == '\n') {
          ++line_;
          ++at_;
          return absl::OkStatus();
        }
      } else {
        cell += c;
      }
    }
    if (quoted)
      return absl::InvalidArgumentError(
          absl::StrCat(name_, ": line ", row.line, ": a quoted cell has no end"));
    row.cells.emplace_back(absl::StripAsciiWhitespace(cell));
    return absl::OkStatus();
  }

  std::string_view text_;
  std::string name_;
  char delimiter_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
};

bool is_number(const std::string& cell) {
  float v;
  return absl::SimpleAtof(cell, &v);
}

Result<std::size_t> find_label(const CsvRow& first, const std::string& label_column,
                               const std::string& name, bool& named) {
  named = false;
  const std::size_t n = first.cells.size();
  if (label_column.empty()) return n - 1;
  for (std::size_t i = 0; i < n; ++i)
    if (first.cells[i] == label_column && !is_number(label_column)) {
      named = true;
      return i;
    }
  std::uint32_t number;
  if (absl::SimpleAtoi(label_column, &number) && number < n) return number;
  return absl::InvalidArgumentError(absl::StrCat(name, ": label column '", shown(label_column),
                                                 "' is neither a name in the first line nor a "
                                                 "number from 0 to ",
                                                 n - 1));
}

bool is_header(const CsvRow& first, std::size_t label) {
  for (std::size_t i = 0; i < first.cells.size(); ++i)
    if (i != label && (first.cells[i].empty() || is_number(first.cells[i]))) return false;
  return true;
}

Status read_values(const CsvRow& row, std::size_t label, const std::string& name, CsvTable& table) {
  for (std::size_t i = 0, column = 0; i < row.cells.size(); ++i) {
    if (i == label) continue;
    const std::string& cell = row.cells[i];
    const auto where = [&] {
      return absl::StrCat(name, ": line ", row.line, ", column ", i, " (",
                          shown(table.columns[column]), "): ");
    };
    float v;
    if (cell.empty()) return absl::InvalidArgumentError(where() + "the cell is empty");
    if (!absl::SimpleAtof(cell, &v))
      return absl::InvalidArgumentError(
          absl::StrCat(where(), "'", shown(cell), "' is not a number"));
    if (!std::isfinite(v))
      return absl::InvalidArgumentError(
          absl::StrCat(where(), "'", shown(cell), "' is not a finite number"));
    if (v != std::floor(v)) table.integral = false;
    table.values.push_back(v);
    ++column;
  }
  return absl::OkStatus();
}

Status rank_labels(const std::vector<std::string>& cells, const std::string& name,
                   CsvTable& table) {
  std::map<std::string, std::uint32_t> seen;
  bool numeric = true;
  for (const auto& cell : cells) {
    seen.emplace(cell, 0);
    numeric = numeric && is_number(cell);
    if (seen.size() > kMaxClasses)
      return absl::InvalidArgumentError(absl::StrCat(name, ": the label column has more than ",
                                                     kMaxClasses,
                                                     " different values; is it the right column?"));
  }
  if (seen.size() < 2)
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": the label column has ", seen.size(),
                     " different values; at least 2 classes are needed"));
  for (const auto& [text, rank] : seen) table.class_names.push_back(text);
  if (numeric)
    std::sort(table.class_names.begin(), table.class_names.end(),
              [](const std::string& a, const std::string& b) {
                double x = 0, y = 0;
                (void)absl::SimpleAtod(a, &x);
                (void)absl::SimpleAtod(b, &y);
                return x != y ? x < y : a < b;
              });
  for (std::uint32_t i = 0; i < table.class_names.size(); ++i) seen[table.class_names[i]] = i;
  for (const auto& cell : cells) table.labels.push_back(static_cast<std::uint8_t>(seen[cell]));
  return absl::OkStatus();
}

}  // namespace

Result<CsvTable> read_csv(std::string_view text, const std::string& name,
                          const std::string& label_column) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  Splitter splitter(text, name);
  std::optional<CsvRow> row;
  ODT_ASSIGN(row, splitter.next());
  if (!row) return absl::InvalidArgumentError(absl::StrCat(name, ": the file is empty"));
  const std::size_t n = row->cells.size();
  if (n < 2)
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": one column; features and a label column are needed"));
  if (n - 1 > kMaxSampleValues)
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", n - 1, " features; at most ", kMaxSampleValues));
  bool named;
  std::size_t label;
  ODT_ASSIGN(label, find_label(*row, label_column, name, named));
  const bool header = named || is_header(*row, label);
  CsvTable table;
  for (std::size_t i = 0; i < n; ++i)
    if (i != label) table.columns.push_back(header ? row->cells[i] : absl::StrCat("column ", i));
  if (header) {
    ODT_ASSIGN(row, splitter.next());
  }
  std::vector<std::string> labels;
  while (row) {
    if (row->cells.size() != n)
      return absl::InvalidArgumentError(absl::StrCat(name, ": line ", row->line, ": ",
                                                     row->cells.size(), " cells; expected ", n,
                                                     " as in the first line"));
    if (row->cells[label].empty())
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": line ", row->line, ", column ", label, ": the label is empty"));
    ODT_TRY(read_values(*row, label, name, table));
    labels.push_back(row->cells[label]);
    ODT_ASSIGN(row, splitter.next());
  }
  if (labels.empty())
    return absl::InvalidArgumentError(absl::StrCat(name, ": no rows behind the header"));
  ODT_TRY(rank_labels(labels, name, table));
  return table;
}

}  // namespace odt::data
