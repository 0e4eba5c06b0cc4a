#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/source.h"
#include "data/text_input.h"

namespace odt::data {

// RFC 4180 with ',', ';' or tab, plain or gzip. The delimiter is the one of the first line: a tab
// where there is one; ';' where no cell between them has two commas; else ','. With ';' and tab a
// number may have a decimal comma. A byte-order mark, CRLF, quoted text and empty lines are taken.
class CsvScanner {
 public:
  // Cells of the next row with any content, trimmed; false: the end. line(): of its first byte.
  // Errors: INVALID_ARGUMENT (a quoted cell without an end, a cell above 64 KiB, more than
  // kMaxCells cells).
  explicit CsvScanner(std::unique_ptr<TextInput> input) : input_(std::move(input)) {}
  Result<bool> next(std::vector<std::string>& cells);
  Status rewind();
  std::uint32_t line() const { return row_line_; }
  char delimiter() const { return delimiter_; }
  const TextInput& input() const { return *input_; }

  static constexpr std::size_t kMaxCells = 70000;

 private:
  Status read_row(std::vector<std::string>& cells);
  Status start();

  std::unique_ptr<TextInput> input_;
  std::string ahead_;  // of the first line, looked at for the delimiter
  std::size_t ahead_at_ = 0;
  char delimiter_ = 0;
  std::uint32_t line_ = 1, row_line_ = 1;
};

// Roles of columns; each by name, or number from 0.
struct CsvOptions {
  std::string label_column;  // empty: the last, where there are no targets; "-": no labels
  std::vector<std::string> target_columns, drop_columns;
  std::string group_column;
  bool missing_allowed = false;  // missing cells become NaN; else they are refused by place
};

// Rows of a CSV file. The first line is a header where a role is a name, or where none of its
// features is a number. A cell that is empty, NA, N/A, NaN, null, None or ? is missing. Errors:
// INVALID_ARGUMENT with file, line and column: not a number, not finite, missing, ragged line,
// unknown column, empty label; NOT_FOUND.
Result<std::unique_ptr<Source>> open_csv(const std::string& path, const std::string& name,
                                         const CsvOptions& options);

}  // namespace odt::data
