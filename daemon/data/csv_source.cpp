#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "data/csv_reader.h"
#include "data/dataset.h"

namespace odt::data {
namespace {

enum class Role : std::uint8_t { kFeature, kLabel, kTarget, kGroup, kDropped };

// Cells that come from the file reach errors and terminals: printable and short.
std::string shown(std::string_view cell) {
  std::string out;
  for (char c : cell.substr(0, 32)) out += absl::ascii_isprint(c) ? c : '?';
  if (cell.size() > 32) out += "...";
  return out;
}

bool is_missing(const std::string& cell) {
  static constexpr std::array<std::string_view, 7> kTexts = {"NA",   "N/A",  "NaN", "nan",
                                                             "null", "None", "?"};
  return cell.empty() || std::find(kTexts.begin(), kTexts.end(), cell) != kTexts.end();
}

// A decimal comma only where it cannot be the delimiter.
bool parse_number(const std::string& cell, bool decimal_comma, float& v) {
  if (absl::SimpleAtof(cell, &v)) return true;
  const auto comma = cell.find(',');
  if (!decimal_comma || comma == std::string::npos || cell.find('.') != std::string::npos)
    return false;
  std::string point = cell;
  point[comma] = '.';
  return absl::SimpleAtof(point, &v);
}

class CsvSource : public Source {
 public:
  CsvSource(std::unique_ptr<TextInput> input, const CsvOptions& options)
      : scanner_(std::move(input)), name_(scanner_.input().name()), options_(options) {}

  // Reads the first line: columns, roles, header or not.
  Status start();

  const std::vector<std::uint32_t>& shape() const override { return shape_; }
  Result<bool> next(Row& row) override;
  Status rewind() override {
    row_ = 0;
    first_ = !header_;
    ODT_TRY(scanner_.rewind());
    bool more;
    ODT_ASSIGN(more, scanner_.next(cells_));
    if (!more || cells_.size() != roles_.size())
      return absl::FailedPreconditionError(
          absl::StrCat(name_, ": the file changed while it was read"));
    return absl::OkStatus();
  }
  double progress() const override { return scanner_.input().progress(); }
  std::string describe() const override { return absl::StrCat("csv ", name_); }
  SourceInfo info() const override { return info_; }

 private:
  bool number(const std::string& cell, float& v) const {
    return parse_number(cell, scanner_.delimiter() != ',', v);
  }
  Result<std::size_t> column(const std::string& wanted, const char* what);
  Status assign_roles();
  bool looks_like_header() const;
  std::string where(std::size_t column) const;
  Result<float> value(std::size_t column, bool may_lack) const;

  CsvScanner scanner_;
  std::string name_;
  CsvOptions options_;
  std::vector<std::string> cells_, columns_;
  std::vector<Role> roles_;
  std::vector<std::size_t> targets_;  // columns, in the order asked for
  std::vector<std::uint32_t> shape_;
  SourceInfo info_;
  bool header_ = false, first_ = false;  // first_: cells_ hold a row that next() has not given
  std::uint32_t row_ = 0;
};

Result<std::size_t> CsvSource::column(const std::string& wanted, const char* what) {
  float v;
  for (std::size_t i = 0; i < cells_.size(); ++i)
    if (cells_[i] == wanted && !number(wanted, v)) {
      header_ = true;
      return i;
    }
  std::uint32_t n;
  if (absl::SimpleAtoi(wanted, &n) && n < cells_.size()) return n;
  return absl::InvalidArgumentError(absl::StrCat(
      name_, ": ", what, " column '", shown(wanted),
      "' is neither a name in the first line nor a number from 0 to ", cells_.size() - 1));
}

Status CsvSource::assign_roles() {
  roles_.assign(cells_.size(), Role::kFeature);
  const auto give = [this](const std::string& wanted, const char* what, Role role) -> Status {
    std::size_t at;
    ODT_ASSIGN(at, column(wanted, what));
    if (roles_[at] != Role::kFeature)
      return absl::InvalidArgumentError(
          absl::StrCat(name_, ": column '", shown(wanted), "' is asked for twice"));
    roles_[at] = role;
    if (role == Role::kTarget) targets_.push_back(at);
    return absl::OkStatus();
  };
  for (const auto& wanted : options_.drop_columns) ODT_TRY(give(wanted, "dropped", Role::kDropped));
  for (const auto& wanted : options_.target_columns) ODT_TRY(give(wanted, "target", Role::kTarget));
  if (!options_.group_column.empty()) ODT_TRY(give(options_.group_column, "group", Role::kGroup));
  if (options_.label_column == "-") return absl::OkStatus();
  if (!options_.label_column.empty()) {
    if (!targets_.empty())
      return absl::InvalidArgumentError(
          absl::StrCat(name_, ": a label column and target columns; one of them is expected"));
    return give(options_.label_column, "label", Role::kLabel);
  }
  if (!targets_.empty()) return absl::OkStatus();
  for (std::size_t i = roles_.size(); i-- > 0;)
    if (roles_[i] == Role::kFeature) {
      roles_[i] = Role::kLabel;
      return absl::OkStatus();
    }
  return absl::OkStatus();
}

bool CsvSource::looks_like_header() const {
  bool any = false;
  float v;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (roles_[i] != Role::kFeature && roles_[i] != Role::kTarget) continue;
    if (number(cells_[i], v)) return false;
    any = any || !is_missing(cells_[i]);
  }
  return any;
}

Status CsvSource::start() {
  bool more;
  ODT_ASSIGN(more, scanner_.next(cells_));
  if (!more) return absl::InvalidArgumentError(absl::StrCat(name_, ": the file is empty"));
  if (cells_.size() < 2 && options_.label_column != "-")
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": one column; features and a label column are needed"));
  ODT_TRY(assign_roles());
  header_ = header_ || looks_like_header();
  first_ = !header_;
  for (std::size_t i = 0; i < cells_.size(); ++i)
    columns_.push_back(header_ ? cells_[i] : absl::StrCat("column ", i));
  for (std::size_t i = 0; i < cells_.size(); ++i)
    if (roles_[i] == Role::kFeature) info_.value_names.push_back(shown(columns_[i]));
  for (auto i : targets_) info_.target_names.push_back(shown(columns_[i]));
  const std::size_t n = info_.value_names.size();
  if (n < 1 || n > kMaxSampleValues)
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": ", n, " features; expected 1 to ", kMaxSampleValues));
  shape_ = {static_cast<std::uint32_t>(n)};
  return absl::OkStatus();
}

std::string CsvSource::where(std::size_t column) const {
  return absl::StrCat(name_, ": line ", scanner_.line(), ", column ", column, " (",
                      shown(columns_[column]), "): ");
}

Result<float> CsvSource::value(std::size_t i, bool may_lack) const {
  const std::string& cell = cells_[i];
  float v = std::numeric_limits<float>::quiet_NaN();
  if (is_missing(cell)) {
    if (may_lack) return v;
    return absl::InvalidArgumentError(absl::StrCat(
        where(i),
        cell.empty() ? "the cell is empty" : absl::StrCat("'", cell, "' stands for no value"),
        roles_[i] == Role::kTarget ? "; a target is expected"
                                   : "; a number is expected (or import with --missing drop, mean "
                                     "or zero)"));
  }
  if (!number(cell, v))
    return absl::InvalidArgumentError(
        absl::StrCat(where(i), "'", shown(cell), "' is not a number",
                     "; leave the column out with --drop-column, or name it with --label-column"));
  if (!std::isfinite(v))
    return absl::InvalidArgumentError(
        absl::StrCat(where(i), "'", shown(cell), "' is not a finite number"));
  return v;
}

Result<bool> CsvSource::next(Row& row) {
  bool more = true;
  if (!first_) {
    ODT_ASSIGN(more, scanner_.next(cells_));
  }
  first_ = false;
  if (!more && row_ == 0)
    return absl::InvalidArgumentError(absl::StrCat(name_, ": no rows behind the header"));
  if (!more) return false;
  if (cells_.size() != roles_.size())
    return absl::InvalidArgumentError(absl::StrCat(name_, ": line ", scanner_.line(), ": ",
                                                   cells_.size(), " cells; expected ",
                                                   roles_.size(), " as in the first line"));
  row.label.clear();
  row.group.clear();
  row.values.clear();
  row.targets.clear();
  row.own_test = false;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const Role role = roles_[i];
    if (role == Role::kFeature) {
      float v;
      ODT_ASSIGN(v, value(i, options_.missing_allowed));
      row.values.push_back(v);
    } else if (role == Role::kLabel || role == Role::kGroup) {
      if (cells_[i].empty())
        return absl::InvalidArgumentError(
            absl::StrCat(name_, ": line ", scanner_.line(), ", column ", i,
                         role == Role::kLabel ? ": the label is empty" : ": the group is empty"));
      (role == Role::kLabel ? row.label : row.group) = cells_[i];
    }
  }
  for (auto i : targets_) {
    float v;
    ODT_ASSIGN(v, value(i, false));
    row.targets.push_back(v);
  }
  row.index = row_++;
  row.name = absl::StrCat(name_, ": line ", scanner_.line());
  return true;
}

}  // namespace

Result<std::unique_ptr<Source>> open_csv(const std::string& path, const std::string& name,
                                         const CsvOptions& options) {
  std::unique_ptr<TextInput> input;
  ODT_ASSIGN(input, TextInput::open(path, name));
  auto source = std::make_unique<CsvSource>(std::move(input), options);
  ODT_TRY(source->start());
  return source;
}

}  // namespace odt::data
