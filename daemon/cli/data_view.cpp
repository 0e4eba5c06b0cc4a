#include "cli/data_view.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>

#include "cli/context.h"
#include "cli/text.h"
#include "odt/api/v1/types.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

constexpr int kTableFeatures = 64;    // of a report, in rows
constexpr std::uint32_t kWidth = 72;  // characters of an image or a curve

std::string figure(double value) { return absl::StrFormat("%.6g", value); }

void show_classes(Context& context, const v1::Dataset& d, const v1::DatasetReport& report) {
  std::uint64_t all = 0;
  for (const auto count : d.class_counts()) all += count;
  std::vector<std::string> head = {"CLASS", "SAMPLES", "SHARE"};
  for (const auto& split : report.splits()) head.push_back(split.split());
  Table classes(std::move(head));
  for (int i = 0; i < d.class_counts_size(); ++i) {
    std::vector<std::string> row = {i < d.class_names_size() ? d.class_names(i) : std::to_string(i),
                                    std::to_string(d.class_counts(i)),
                                    percent(d.class_counts(i), all)};
    for (const auto& split : report.splits())
      row.push_back(i < split.class_counts_size() ? std::to_string(split.class_counts(i)) : "");
    classes.add(std::move(row));
  }
  if (d.class_counts_size() != 0) context.print(classes);
}

void show_features(Context& context, const v1::DatasetReport& report) {
  if (report.features_size() == 0 || report.features_size() > kTableFeatures) return;
  Table table({"VALUE", "MIN", "MAX", "MEAN", "DEVIATION", "MISSING"});
  for (const auto& f : report.features())
    table.add({f.name(), figure(f.min()), figure(f.max()), figure(f.mean()), figure(f.deviation()),
               std::to_string(f.missing())});
  context.print(table);
}

struct Range {
  float lo = 0, hi = 0;
  explicit Range(const v1::DatasetPreview::Sample& s) {
    if (s.values_size() == 0) return;
    const auto [a, b] = std::minmax_element(s.values().begin(), s.values().end());
    lo = *a;
    hi = *b;
  }
  // 0..n-1 of a value.
  std::size_t step(float v, std::size_t n) const {
    if (!(hi > lo)) return 0;
    const auto at = static_cast<std::size_t>((v - lo) / (hi - lo) * static_cast<float>(n));
    return std::min(at, n - 1);
  }
};

// Rows of characters, darkest for the lowest value; every n-th pixel where it is wide.
std::string image_text(const v1::DatasetPreview::Sample& s, std::uint32_t h, std::uint32_t w) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  const Range range(s);
  const std::uint32_t step = (w * 2 + kWidth - 1) / kWidth, across = std::max(step, 1u);
  std::string out;
  for (std::uint32_t y = 0; y < h; y += across) {
    for (std::uint32_t x = 0; x < w; x += across)
      out.append(2, kShades[range.step(s.values(static_cast<int>(y * w + x)), kShades.size())]);
    out += '\n';
  }
  return out;
}

// A line of bars; where there are more values than columns, the largest of each column's.
std::string curve_text(const v1::DatasetPreview::Sample& s, std::uint32_t from, std::uint32_t n) {
  static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const Range range(s);
  const std::uint32_t columns = std::min(n, kWidth);
  std::string out;
  for (std::uint32_t c = 0; c < columns; ++c) {
    const std::uint32_t a = c * n / columns, b = std::max((c + 1) * n / columns, a + 1);
    float v = s.values(static_cast<int>(from + a));
    for (std::uint32_t i = a; i < b; ++i) v = std::max(v, s.values(static_cast<int>(from + i)));
    out += kBars[range.step(v, 8)];
  }
  return out;
}

std::string name_of(const v1::DatasetPreview& p, std::uint32_t i, const char* what) {
  return static_cast<int>(i) < p.value_names_size() ? clean(p.value_names(static_cast<int>(i)))
                                                    : absl::StrCat(what, " ", i);
}

std::string values_text(const v1::DatasetPreview& p, const v1::DatasetPreview::Sample& s) {
  constexpr int kShown = 64;
  std::string out;
  for (int i = 0; i < std::min(s.values_size(), kShown); ++i)
    absl::StrAppendFormat(&out, "%-24s %s\n", name_of(p, static_cast<std::uint32_t>(i), "value"),
                          figure(s.values(i)));
  if (s.values_size() > kShown) absl::StrAppend(&out, "and ", s.values_size() - kShown, " more\n");
  return out;
}

}  // namespace

void show_dataset(Context& context, const v1::Dataset& d, const v1::DatasetReport& report) {
  Table table({"dataset", d.name()});
  table.add({"id", hex(d.id())});
  table.add({"content", hex(d.content_hash())});
  table.add({"sample", d.dtype() + " " + join_numbers(d.shape(), "x")});
  table.add({"splits",
             absl::StrCat("train ", d.train(), ", held-out ", d.heldout(), ", test ", d.test())});
  if (d.outputs() != 0) table.add({"targets", absl::StrCat(d.outputs(), " per sample")});
  if (report.splits_size() == 3 && report.splits(0).groups() != 0)
    table.add({"recordings",
               absl::StrCat("train ", report.splits(0).groups(), ", held-out ",
                            report.splits(1).groups(), ", test ", report.splits(2).groups())});
  table.add({"source", d.source()});
  table.add({"size", size_text(d.bytes())});
  context.print(table);
  show_classes(context, d, report);
  show_features(context, report);
  for (const auto& warning : d.warnings()) context.say("warning: " + clean(warning));
}

std::string sample_text(const v1::DatasetPreview& p, int n) {
  const auto& s = p.samples(n);
  std::string out = absl::StrCat("sample ", s.index(), " (", s.split(), ")");
  if (!s.label().empty()) absl::StrAppend(&out, ", class ", clean(s.label()));
  if (!s.group().empty()) absl::StrAppend(&out, ", recording ", clean(s.group()));
  for (int i = 0; i < s.targets_size(); ++i)
    absl::StrAppend(&out, i == 0 ? ", target " : ", ", figure(s.targets(i)));
  out += '\n';
  std::uint64_t len = 1;
  for (const auto side : p.shape()) len *= side;
  if (len != static_cast<std::uint64_t>(s.values_size()) || p.shape_size() != 3)
    return out + values_text(p, s);
  const std::uint32_t c = p.shape(0), h = p.shape(1), w = p.shape(2);
  if (h > 1 && w > 1) return out + image_text(s, h, w);
  if (p.kind() != "series") return out + values_text(p, s);
  for (std::uint32_t i = 0; i < c; ++i)
    absl::StrAppend(&out, curve_text(s, i * h * w, h * w), "  ", name_of(p, i, "channel"), "\n");
  return out;
}

}  // namespace odt::cli
