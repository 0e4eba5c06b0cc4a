#include "data/import_source.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

namespace odt::data {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kProgressRows = 4096;

struct Feature {
  double sum = 0;
  float min = std::numeric_limits<float>::infinity();
  float max = -std::numeric_limits<float>::infinity();
  std::uint64_t count = 0;
  bool integral = true;
};

// Numbers texts in the order in which they come.
class Names {
 public:
  // kNone: there are `limit` names already and this is a new one.
  std::uint32_t id(const std::string& text, std::uint32_t limit) {
    const auto found = ids_.find(text);
    if (found != ids_.end()) return found->second;
    if (names_.size() >= limit) return kNone;
    ids_.emplace(text, static_cast<std::uint32_t>(names_.size()));
    names_.push_back(text);
    return static_cast<std::uint32_t>(names_.size() - 1);
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<std::string> names_;
};

// What the first pass gathers.
struct Survey {
  std::vector<Feature> features;
  Names classes, groups;
  std::uint32_t outputs = 0;
  SplitRows rows[2];  // the pool, the own test set
  std::vector<float> target_min, target_max;
  ImportNotes notes;
  std::uint32_t total() const { return rows[0].rows() + rows[1].rows(); }
};

std::string value_name(const SourceInfo& info, std::size_t value) {
  return value < info.value_names.size()
             ? absl::StrCat("value ", value, " (", info.value_names[value], ")")
             : absl::StrCat("value ", value);
}

Status in_row(const Row& row, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(row.name, ": ", what));
}

Status survey_targets(const Row& row, Survey& s) {
  if (s.total() == 0) {
    if (row.targets.size() > kMaxOutputs)
      return in_row(row, absl::StrCat(row.targets.size(), " targets; at most ", kMaxOutputs));
    s.outputs = static_cast<std::uint32_t>(row.targets.size());
    s.target_min.assign(s.outputs, std::numeric_limits<float>::infinity());
    s.target_max.assign(s.outputs, -std::numeric_limits<float>::infinity());
  }
  if (row.targets.size() != s.outputs)
    return in_row(row, absl::StrCat(row.targets.size(), " targets; the first row has ", s.outputs));
  for (std::size_t i = 0; i < s.outputs; ++i) {
    if (!std::isfinite(row.targets[i]))
      return in_row(row, absl::StrCat("target ", i, " is not a finite number"));
    s.target_min[i] = std::min(s.target_min[i], row.targets[i]);
    s.target_max[i] = std::max(s.target_max[i], row.targets[i]);
  }
  return absl::OkStatus();
}

Status survey_label(const Row& row, Survey& s) {
  SplitRows& to = s.rows[row.own_test ? 1 : 0];
  const bool labelled = !row.label.empty();
  if (labelled && s.outputs > 0) return in_row(row, "a label and targets; one of them is expected");
  if (s.total() > 0 && labelled != !s.classes.names().empty())
    return in_row(row, labelled ? "a label; the rows before it have none"
                                : "no label; the rows before it have one");
  std::uint32_t id = 0;
  if (labelled && (id = s.classes.id(row.label, kMaxClasses)) == kNone)
    return in_row(row, absl::StrCat("more than ", kMaxClasses,
                                    " different labels; is it the right column (or a regression: "
                                    "--target-column)?"));
  to.classes.push_back(static_cast<std::uint8_t>(id));
  return absl::OkStatus();
}

Status survey_group(const Row& row, Survey& s) {
  const bool grouped = !row.group.empty();
  if (s.total() > 1 && grouped != !s.groups.names().empty())
    return in_row(row, grouped ? "a recording; the rows before it have none"
                               : "no recording; the rows before it have one");
  if (grouped) s.rows[row.own_test ? 1 : 0].groups.push_back(s.groups.id(row.group, kNone));
  return absl::OkStatus();
}

// Adds the values of a row; false: it is to be left out.
Result<bool> survey_values(const Row& row, Missing missing, const Source& source, Survey& s) {
  std::uint64_t absent = 0;
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    const float v = row.values[i];
    if (std::isfinite(v)) continue;
    const auto name = [&] { return value_name(source.info(), i); };
    if (std::isinf(v)) return in_row(row, name() + " is infinite; a finite number is expected");
    if (missing == Missing::kRefuse)
      return in_row(row, name() +
                             " is missing; fill it, or import with --missing drop, mean or "
                             "zero");
    if (s.notes.missing.empty()) s.notes.missing.assign(row.values.size(), 0);
    ++s.notes.missing[i];
    ++absent;
  }
  s.notes.missing_cells += absent;
  if (absent > 0 && missing == Missing::kDrop) {
    ++s.notes.dropped;
    return false;
  }
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    const float v = std::isnan(row.values[i]) && missing == Missing::kZero ? 0 : row.values[i];
    if (std::isnan(v)) continue;
    Feature& f = s.features[i];
    ++f.count;
    f.sum += v;
    f.min = std::min(f.min, v);
    f.max = std::max(f.max, v);
    f.integral = f.integral && v == std::floor(v);
  }
  return true;
}

void report_pass(const Source& source, std::uint32_t row, std::uint32_t from, std::uint32_t span,
                 const char* what, const Progress& progress) {
  if (row % kProgressRows == 0)
    progress(from + static_cast<std::uint32_t>(std::clamp(source.progress(), 0.0, 1.0) * span),
             what);
}

Status check_length(const Row& row, std::size_t expected) {
  if (row.values.size() == expected) return absl::OkStatus();
  return in_row(row, absl::StrCat(row.values.size(), " values; expected ", expected));
}

Result<Survey> survey(Source& source, Missing missing, const Progress& progress) {
  Survey s;
  std::uint64_t len = 1;
  for (auto n : source.shape()) {
    len *= n;
    if (len < 1 || len > kMaxSampleValues)
      return absl::InvalidArgumentError(absl::StrCat(source.describe(), ": ", len,
                                                     " values per sample; 1 to ", kMaxSampleValues,
                                                     " are possible"));
  }
  s.features.resize(len);
  Row row;
  for (std::uint32_t n = 0;; ++n) {
    bool more;
    ODT_ASSIGN(more, source.next(row));
    if (!more) break;
    ODT_TRY(check_length(row, len));
    bool kept;
    ODT_ASSIGN(kept, survey_values(row, missing, source, s));
    report_pass(source, n, 0, 500, "reading", progress);
    if (!kept) continue;
    ODT_TRY(survey_targets(row, s));
    ODT_TRY(survey_label(row, s));
    ODT_TRY(survey_group(row, s));
  }
  s.notes.rows = s.total();
  if (s.rows[0].rows() == 0)
    return absl::InvalidArgumentError(absl::StrCat(
        source.describe(), ": no rows",
        s.notes.dropped > 0 ? absl::StrCat(" left: ", s.notes.dropped, " had missing values")
                            : ""));
  if (s.classes.names().size() == 1)
    return absl::InvalidArgumentError(absl::StrCat(source.describe(), ": the only class is '",
                                                   s.classes.names()[0],
                                                   "'; at least 2 classes are needed"));
  s.notes.info = source.info();
  return s;
}

// Rank of each class in the dataset, by its number of the first pass; fills the names.
std::vector<std::uint8_t> rank_classes(const Survey& s, Dataset& d) {
  const auto& names = s.classes.names();
  d.class_names = sorted_class_names(names);
  std::vector<std::uint8_t> rank(std::max<std::size_t>(names.size(), 1), 0);
  for (std::size_t i = 0; i < names.size(); ++i)
    rank[i] = static_cast<std::uint8_t>(
        std::find(d.class_names.begin(), d.class_names.end(), names[i]) - d.class_names.begin());
  return rank;
}

Dtype narrowest(const Survey& s) {
  float lo = 0, hi = 0;
  bool integral = true;
  for (const auto& f : s.features) {
    if (f.count == 0) continue;
    lo = std::min(lo, f.min);
    hi = std::max(hi, f.max);
    integral = integral && f.integral;
  }
  if (!integral) return Dtype::kF32;
  if (lo >= 0 && hi <= 255) return Dtype::kU8;
  if (lo >= -128 && hi <= 127) return Dtype::kS8;
  return lo >= -32768 && hi <= 32767 ? Dtype::kS16 : Dtype::kF32;
}

void store(Dtype dtype, float v, std::uint8_t* to) {
  switch (dtype) {
    case Dtype::kU8:
      *to = static_cast<std::uint8_t>(v);
      return;
    case Dtype::kS8:
      *to = static_cast<std::uint8_t>(static_cast<std::int8_t>(v));
      return;
    case Dtype::kS16: {
      const auto x = static_cast<std::int16_t>(v);
      std::memcpy(to, &x, sizeof x);
      return;
    }
    default:
      std::memcpy(to, &v, sizeof v);
  }
}

// Slot in the dataset of each row as it comes, kNone: not picked. Rows of pool and test set mix.
struct Slots {
  std::vector<std::uint32_t> pool, own_test;
};

Slots slots_of(const Picks& picks, const Survey& s) {
  Slots slots{std::vector<std::uint32_t>(s.rows[0].rows(), kNone),
              std::vector<std::uint32_t>(s.rows[1].rows(), kNone)};
  std::uint32_t at = 0;
  for (auto row : picks.train) slots.pool[row] = at++;
  for (auto row : picks.heldout) slots.pool[row] = at++;
  auto& test = slots.own_test.empty() ? slots.pool : slots.own_test;
  for (auto row : picks.test) test[row] = at++;
  return slots;
}

Status make_room(const Source& source, const Picks& picks, const Survey& s, Dataset& d) {
  d.dtype = narrowest(s);
  d.shape = source.shape();
  d.counts[0] = static_cast<std::uint32_t>(picks.train.size());
  d.counts[1] = static_cast<std::uint32_t>(picks.heldout.size());
  d.counts[2] = static_cast<std::uint32_t>(picks.test.size());
  const std::uint64_t bytes = std::uint64_t{d.samples()} * d.sample_len() * dtype_bytes(d.dtype);
  if (bytes > kMaxDatasetBytes)
    return absl::InvalidArgumentError(
        absl::StrCat(source.describe(), ": the dataset would have ", bytes, " bytes (", d.samples(),
                     " samples of ", d.sample_len(), " ", dtype_name(d.dtype), " values); at most ",
                     kMaxDatasetBytes, ": take fewer samples (--train, --heldout, --test)"));
  d.values.resize(bytes);
  d.labels.resize(d.samples());
  d.source_index.resize(d.samples());
  d.outputs = s.outputs;
  d.targets.resize(std::size_t{d.samples()} * s.outputs);
  d.target_min = s.target_min;
  d.target_max = s.target_max;
  if (!s.groups.names().empty()) d.groups.resize(d.samples());
  d.group_names = s.groups.names();
  d.kind = s.notes.info.kind;
  d.unit = s.notes.info.unit;
  d.sample_rate = s.notes.info.sample_rate;
  d.target_names = s.notes.info.target_names;
  return absl::OkStatus();
}

// What stands where a value is missing.
std::vector<float> fillers(const Survey& s, Missing missing) {
  std::vector<float> fill(s.features.size(), 0);
  for (std::size_t i = 0; missing == Missing::kMean && i < fill.size(); ++i) {
    const Feature& f = s.features[i];
    const double mean = f.count == 0 ? 0 : f.sum / static_cast<double>(f.count);
    fill[i] = static_cast<float>(f.integral ? std::nearbyint(mean) : mean);
  }
  return fill;
}

Status changed(const Source& source) {
  return absl::FailedPreconditionError(
      absl::StrCat(source.describe(), ": the file changed while it was read"));
}

void put_row(const Row& row, std::uint32_t slot, const std::vector<float>& fill, Dataset& d) {
  const std::size_t size = dtype_bytes(d.dtype);
  std::uint8_t* to = d.values.data() + std::size_t{slot} * row.values.size() * size;
  for (std::size_t i = 0; i < row.values.size(); ++i, to += size)
    store(d.dtype, std::isnan(row.values[i]) ? fill[i] : row.values[i], to);
  std::copy(row.targets.begin(), row.targets.end(),
            d.targets.begin() + static_cast<std::ptrdiff_t>(std::size_t{slot} * d.outputs));
  d.source_index[slot] = row.index;
}

Status fill_values(Source& source, const Survey& s, const Slots& slots, Missing missing,
                   const std::vector<std::uint8_t>& rank, const Progress& progress, Dataset& d) {
  const auto fill = fillers(s, missing);
  std::size_t at[2] = {0, 0};
  Row row;
  for (std::uint32_t n = 0;; ++n) {
    bool more;
    ODT_ASSIGN(more, source.next(row));
    if (!more) break;
    ODT_TRY(check_length(row, s.features.size()));
    report_pass(source, n, 500, 450, "storing", progress);
    const bool gaps =
        std::any_of(row.values.begin(), row.values.end(), [](float v) { return std::isnan(v); });
    if (gaps && missing == Missing::kDrop) continue;
    const std::size_t set = row.own_test ? 1 : 0, i = at[set]++;
    const auto& to = set == 1 ? slots.own_test : slots.pool;
    if (i >= to.size() || row.targets.size() != d.outputs) return changed(source);
    if (to[i] == kNone) continue;
    for (std::size_t v = 0; v < row.values.size(); ++v) {
      const Feature& f = s.features[v];
      if (row.values[v] < f.min || row.values[v] > f.max) return changed(source);
    }
    put_row(row, to[i], fill, d);
    d.labels[to[i]] = rank[s.rows[set].classes[i]];
    if (!d.groups.empty()) d.groups[to[i]] = s.rows[set].groups[i];
  }
  return at[0] == slots.pool.size() && at[1] == slots.own_test.size() ? absl::OkStatus()
                                                                      : changed(source);
}

}  // namespace

Result<Missing> parse_missing(const std::string& text) {
  if (text.empty() || text == "refuse") return Missing::kRefuse;
  if (text == "drop") return Missing::kDrop;
  if (text == "mean") return Missing::kMean;
  if (text == "zero") return Missing::kZero;
  return absl::InvalidArgumentError(
      absl::StrCat("missing '", text, "' is not known; use refuse, drop, mean or zero"));
}

std::vector<std::string> sorted_class_names(std::vector<std::string> names) {
  const auto number = [](const std::string& name) {
    double v = 0;
    return absl::SimpleAtod(name, &v) && !std::isnan(v) ? std::pair(true, v) : std::pair(false, v);
  };
  const bool numeric =
      std::all_of(names.begin(), names.end(), [&](const auto& name) { return number(name).first; });
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    if (!numeric) return a < b;
    const double x = number(a).second, y = number(b).second;
    return x != y ? x < y : a < b;
  });
  return names;
}

Result<Dataset> import_source(Source& source, const SplitOptions& options, Missing missing,
                              const Progress& progress, ImportNotes* notes) {
  progress(0, "reading");
  Survey s;
  ODT_ASSIGN(s, survey(source, missing, progress));
  Picks picks;
  ODT_ASSIGN(picks, choose_splits(options, s.rows[0], s.rows[1]));
  Dataset d;
  ODT_TRY(make_room(source, picks, s, d));
  std::copy(std::begin(picks.wanted), std::end(picks.wanted), std::begin(s.notes.wanted));
  s.notes.own_test = s.rows[1].rows() > 0;
  const Slots slots = slots_of(picks, s);
  picks = {};
  const auto rank = rank_classes(s, d);
  ODT_TRY(source.rewind());
  ODT_TRY(fill_values(source, s, slots, missing, rank, progress, d));
  d.source = absl::StrCat(source.describe(), ", seed ", options.seed);
  if (options.skip > 0) absl::StrAppend(&d.source, ", skip ", options.skip);
  progress(950, "measuring ranges");
  measure_ranges(d);
  if (notes != nullptr) *notes = std::move(s.notes);
  return d;
}

}  // namespace odt::data
