#include "data/report.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

namespace odt::data {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxFeatures = 1024;  // in JSON
constexpr std::size_t kTextFeatures = 64;   // in text
constexpr std::size_t kPreviewSamples = 60, kPreviewValues = 131072;
constexpr const char* kSplitNames[] = {"train", "held-out", "test"};

struct Hashed {
  std::uint64_t hash;
  std::uint32_t sample;
};

std::string_view bytes_of(const Dataset& d, std::uint32_t sample) {
  const std::size_t size = d.sample_len() * dtype_bytes(d.dtype);
  return {reinterpret_cast<const char*>(d.values.data()) + sample * size, size};
}

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t h = bytes.size();
  const auto mix = [&h](std::uint64_t word) {
    h = (h ^ word) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
  };
  std::size_t at = 0;
  for (std::uint64_t word; at + 8 <= bytes.size(); at += 8) {
    std::memcpy(&word, bytes.data() + at, 8);
    mix(word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  mix(rest);
  return h;
}

// Samples sorted by hash, then by place: equal ones stand together, the first of them first.
std::vector<Hashed> hashed_samples(const Dataset& d) {
  std::vector<Hashed> all(d.samples());
  for (std::uint32_t s = 0; s < d.samples(); ++s) all[s] = {hash_of(bytes_of(d, s)), s};
  std::sort(all.begin(), all.end(), [](const Hashed& a, const Hashed& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.sample < b.sample;
  });
  return all;
}

bool same_target(const Dataset& d, std::uint32_t a, std::uint32_t b) {
  const auto at = [&](std::uint32_t s) { return d.targets.begin() + std::size_t{s} * d.outputs; };
  return d.labels[a] == d.labels[b] && std::equal(at(a), at(a) + d.outputs, at(b));
}

void find_duplicates(const Dataset& d, Report& r) {
  const auto all = hashed_samples(d);
  const std::uint32_t train = d.count(Split::kTrain);
  for (std::size_t i = 0; i < all.size();) {
    const std::uint32_t first = all[i].sample;
    std::size_t end = i + 1;
    for (; end < all.size() && all[end].hash == all[i].hash; ++end) {
      const std::uint32_t other = all[end].sample;
      if (bytes_of(d, first) != bytes_of(d, other)) continue;  // 64 bits met by chance
      ++r.duplicates;
      r.leaked += first < train && other >= train;
      r.conflicting += !same_target(d, first, other);
    }
    i = end;
  }
}

void summarise(const Dataset& d, const ImportNotes& notes, Report& r) {
  const std::uint32_t len = d.sample_len();
  std::vector<double> sum(len, 0), squares(len, 0);
  // Around the minimum, so that far-off ranges keep their digits.
  for (std::uint32_t s = 0; s < d.samples(); ++s)
    for (std::uint32_t f = 0; f < len; ++f) {
      const double v = double{d.value(s, f)} - d.feature_min[f];
      sum[f] += v;
      squares[f] += v * v;
    }
  const double n = std::max(1u, d.samples());
  for (std::uint32_t f = 0; f < len; ++f) {
    const double mean = sum[f] / n;
    r.features.push_back({d.feature_min[f], d.feature_max[f], mean + d.feature_min[f],
                          std::sqrt(std::max(0.0, squares[f] / n - mean * mean)),
                          f < notes.missing.size() ? notes.missing[f] : 0});
  }
}

std::string feature_name(const Report& r, std::size_t f) {
  return f < r.value_names.size() && r.value_names.size() == r.features.size()
             ? r.value_names[f]
             : absl::StrCat("value ", f);
}

// "a, b, c and 7 more"
std::string some(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  const std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown)));
  std::string text = absl::StrJoin(shown, ", ");
  if (names.size() > kShown) absl::StrAppend(&text, " and ", names.size() - kShown, " more");
  return text;
}

void warn_of_samples(const Dataset& d, Report& r) {
  const auto warn = [&r](auto... parts) { r.warnings.push_back(absl::StrCat(parts...)); };
  if (r.leaked > 0)
    warn(r.leaked,
         " held-out or test samples have the values of one in train: accuracy on them "
         "says too much");
  if (r.conflicting > 0)
    warn(r.conflicting, " samples have the values of another one, but another ",
         d.outputs > 0 ? "target" : "label");
  if (r.duplicates > 0)
    warn(r.duplicates, " of ", d.samples(), " samples are exact duplicates of others");
  if (r.dropped > 0) warn(r.dropped, " rows with missing values were left out");
}

// Recordings stay whole: where they are large or few, a split that was asked for stays empty.
void warn_of_groups(const Dataset& d, const ImportNotes& notes, Report& r) {
  if (d.groups.empty()) return;
  std::vector<std::string> empty;
  std::uint64_t wanted = 0;
  for (int split = 1; split < 3; ++split)
    if (d.counts[split] == 0 && notes.wanted[split] > 0 && !(split == 2 && notes.own_test)) {
      empty.push_back(kSplitNames[split]);
      wanted = std::max(wanted, notes.wanted[split]);
    }
  if (empty.empty()) return;
  const std::uint32_t all = r.groups[0] + r.groups[1] + (notes.own_test ? 0 : r.groups[2]);
  r.warnings.push_back(absl::StrCat(
      "the ", absl::StrJoin(empty, " and "), empty.size() > 1 ? " splits are" : " split is",
      " empty: the samples of a group stay together, and ",
      all == 1 ? "there is 1 group, which trains"
               : absl::StrCat("none of the ", all, " groups fits into ", wanted, " of ",
                              d.samples(), " samples"),
      "; choose other parts (--split 60,20,20), or another group"));
}

void warn_of_faults(const ImportNotes& notes, Report& r) {
  const auto& faults = notes.info.faults;
  if (faults.empty()) return;
  r.warnings.push_back(absl::StrCat(faults.size(), faults.size() == 1 ? " file is" : " files are",
                                    " not whole: ", some(faults)));
}

void warn_of_classes(const Dataset& d, Report& r) {
  const auto& train = r.class_counts[0];
  std::vector<std::string> absent;
  for (std::size_t c = 0; c < train.size(); ++c)
    if (train[c] == 0) absent.push_back("'" + d.class_names[c] + "'");
  if (!absent.empty() && d.counts[0] > 0)
    r.warnings.push_back("no sample to train on of class " + some(absent));
  const auto [least, most] = std::minmax_element(train.begin(), train.end());
  if (train.empty() || *least == 0 || *most < 10 * std::uint64_t{*least}) return;
  r.warnings.push_back(absl::StrCat(
      "unbalanced: '", d.class_names[static_cast<std::size_t>(most - train.begin())], "' has ",
      *most, " samples in train, '", d.class_names[static_cast<std::size_t>(least - train.begin())],
      "' ", *least, "; class weights help"));
}

void warn_of_features(Report& r) {
  std::vector<std::string> constant, lacking;
  for (std::size_t f = 0; f < r.features.size(); ++f) {
    if (r.features[f].constant()) constant.push_back(feature_name(r, f));
    if (r.features[f].missing > 0)
      lacking.push_back(absl::StrCat(feature_name(r, f), " (", r.features[f].missing, ")"));
  }
  if (!lacking.empty() && r.dropped == 0)
    r.warnings.push_back(
        absl::StrCat(r.missing_cells, " missing values were filled: ", some(lacking)));
  if (!constant.empty())
    r.warnings.push_back(absl::StrCat(constant.size(), " of ", r.features.size(),
                                      " values are the same in every sample: ", some(constant)));
}

void append_row(std::string& out, const std::string& name, const std::vector<std::string>& cells) {
  absl::StrAppendFormat(&out, "  %-24s", name.substr(0, 24));
  for (const auto& cell : cells) absl::StrAppendFormat(&out, " %12s", cell);
  out += '\n';
}

std::string short_number(double v) { return absl::StrFormat("%.6g", v); }

}  // namespace

std::string kind_of(const Dataset& d) {
  if (!d.kind.empty()) return d.kind;
  return d.shape.size() == 3 && d.shape[1] > 1 && d.shape[2] > 1 ? "image" : "table";
}

Report make_report(const Dataset& d, const ImportNotes& notes) {
  Report r;
  r.rows = std::max<std::uint64_t>(notes.rows + notes.dropped, d.samples());
  r.dropped = notes.dropped;
  r.missing_cells = notes.missing_cells;
  r.value_names = notes.info.value_names;
  for (std::uint32_t s = 0, split = 0; split < 3; ++split) {
    r.class_counts[split].assign(d.class_names.size(), 0);
    std::set<std::uint32_t> groups;
    for (std::uint32_t i = 0; i < d.counts[split]; ++i, ++s) {
      if (!d.class_names.empty()) ++r.class_counts[split][d.labels[s]];
      if (!d.groups.empty()) groups.insert(d.groups[s]);
    }
    r.groups[split] = static_cast<std::uint32_t>(groups.size());
  }
  find_duplicates(d, r);
  summarise(d, notes, r);
  warn_of_samples(d, r);
  warn_of_faults(notes, r);
  warn_of_groups(d, notes, r);
  warn_of_classes(d, r);
  warn_of_features(r);
  return r;
}

json report_json(const Report& r, const Dataset& d) {
  json splits = json::array(), features = json::array();
  for (int split = 0; split < 3; ++split)
    splits.push_back({{"split", kSplitNames[split]},
                      {"samples", d.counts[split]},
                      {"class_counts", r.class_counts[split]},
                      {"groups", r.groups[split]}});
  std::uint32_t constant = 0;
  for (std::size_t f = 0; f < r.features.size(); ++f) {
    const FeatureSummary& s = r.features[f];
    constant += s.constant();
    if (f < kMaxFeatures)
      features.push_back({{"name", feature_name(r, f)},
                          {"min", s.min},
                          {"max", s.max},
                          {"mean", s.mean},
                          {"deviation", s.deviation},
                          {"missing", s.missing}});
  }
  return {{"rows", r.rows},
          {"dropped_rows", r.dropped},
          {"missing_cells", r.missing_cells},
          {"splits", splits},
          {"duplicates", r.duplicates},
          {"leaked", r.leaked},
          {"conflicting", r.conflicting},
          {"constant", constant},
          {"features", features},
          {"warnings", r.warnings}};
}

std::string report_text(const Report& r, const Dataset& d) {
  std::string out = absl::StrCat(d.source, "\n", kind_of(d), " of [", absl::StrJoin(d.shape, ","),
                                 "] ", dtype_name(d.dtype), " values, ", d.samples(), " samples\n");
  append_row(out, "", {"train", "held-out", "test"});
  append_row(out, "samples",
             {absl::StrCat(d.counts[0]), absl::StrCat(d.counts[1]), absl::StrCat(d.counts[2])});
  for (std::size_t c = 0; c < d.class_names.size(); ++c)
    append_row(out, d.class_names[c],
               {absl::StrCat(r.class_counts[0][c]), absl::StrCat(r.class_counts[1][c]),
                absl::StrCat(r.class_counts[2][c])});
  if (!d.groups.empty())
    append_row(out, "recordings",
               {absl::StrCat(r.groups[0]), absl::StrCat(r.groups[1]), absl::StrCat(r.groups[2])});
  if (r.features.size() <= kTextFeatures) {
    append_row(out, "", {"min", "max", "mean", "deviation"});
    for (std::size_t f = 0; f < r.features.size(); ++f)
      append_row(out, feature_name(r, f),
                 {short_number(r.features[f].min), short_number(r.features[f].max),
                  short_number(r.features[f].mean), short_number(r.features[f].deviation)});
  }
  for (std::size_t i = 0; i < d.target_min.size(); ++i)
    absl::StrAppend(&out, "target ",
                    i < d.target_names.size() ? d.target_names[i] : absl::StrCat(i), ": ",
                    short_number(d.target_min[i]), " to ", short_number(d.target_max[i]), "\n");
  for (const auto& warning : r.warnings) absl::StrAppend(&out, "warning: ", warning, "\n");
  return out;
}

json preview_json(const Dataset& d, const std::vector<std::string>& value_names) {
  const std::size_t len = d.sample_len(), classes = std::max<std::size_t>(d.class_names.size(), 1);
  const std::size_t room =
      std::max<std::size_t>(std::min(kPreviewSamples, kPreviewValues / len), 1);
  const std::size_t each = d.class_names.empty() ? std::min<std::size_t>(room, 12)
                                                 : std::clamp<std::size_t>(room / classes, 1, 3);
  std::vector<std::size_t> taken(classes, 0);
  json samples = json::array();
  for (std::uint32_t s = 0; s < d.samples() && samples.size() < room; ++s) {
    if (taken[d.labels[s]]++ >= each) continue;
    json values = json::array();
    for (std::uint32_t f = 0; f < len; ++f) values.push_back(d.value(s, f));
    const int split = s < d.first(Split::kHeldout) ? 0 : s < d.first(Split::kTest) ? 1 : 2;
    json sample = {{"index", s}, {"split", kSplitNames[split]}, {"values", std::move(values)}};
    if (!d.class_names.empty()) sample["label"] = d.class_names[d.labels[s]];
    if (!d.groups.empty()) sample["group"] = d.group_names[d.groups[s]];
    for (std::uint32_t i = 0; i < d.outputs; ++i)
      sample["targets"].push_back(d.targets[std::size_t{s} * d.outputs + i]);
    samples.push_back(std::move(sample));
  }
  std::stable_sort(samples.begin(), samples.end(), [](const json& a, const json& b) {
    return a.value("label", "") < b.value("label", "");
  });
  json names = json::array();
  if (value_names.size() <= kMaxFeatures) names = value_names;
  return {{"kind", kind_of(d)},
          {"shape", d.shape},
          {"unit", d.unit},
          {"sample_rate", d.sample_rate},
          {"value_names", std::move(names)},
          {"target_names", d.target_names},
          {"samples", std::move(samples)}};
}

}  // namespace odt::data
