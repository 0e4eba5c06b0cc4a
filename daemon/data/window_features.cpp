#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>

#include "data/window.h"

namespace odt::data {
namespace {

Status bad(const std::string& text, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("features '", printable(text, 80), "': ", what));
}

Status parse_stats(const std::string& text, const std::vector<std::string>& list, Features& f) {
  using Stat = Features::Stat;
  static constexpr std::pair<const char*, Stat> kStats[] = {{"mean", Stat::kMean},
                                                            {"std", Stat::kStd},
                                                            {"min", Stat::kMin},
                                                            {"max", Stat::kMax},
                                                            {"rms", Stat::kRms}};
  for (const auto& name : list) {
    const auto* found = std::find_if(std::begin(kStats), std::end(kStats),
                                     [&](const auto& s) { return name == s.first; });
    if (found == std::end(kStats)) return bad(text, "expected mean, std, min, max or rms");
    if (std::find(f.stats.begin(), f.stats.end(), found->second) != f.stats.end())
      return bad(text, absl::StrCat(name, " stands twice"));
    f.stats.push_back(found->second);
  }
  return absl::OkStatus();
}

// Fields of the range and shape are checked by Spectrogram::create, which knows the sample rate.
Status set_option(const std::string& text, const std::string& key, const std::string& value,
                  SpectrogramOptions& s) {
  const auto either = [&](const char* yes, const char* no, bool& out) {
    out = value == yes;
    return out || value == no ? absl::OkStatus()
                              : bad(text, absl::StrCat(key, " is ", yes, " or ", no));
  };
  const auto number = [&](bool parsed) {
    return parsed ? absl::OkStatus() : bad(text, absl::StrCat(key, " is not a number"));
  };
  if (key == "window") return number(absl::SimpleAtoi(value, &s.window));
  if (key == "hop") return number(absl::SimpleAtoi(value, &s.hop));
  if (key == "low") return number(absl::SimpleAtod(value, &s.low_hz));
  if (key == "high") return number(absl::SimpleAtod(value, &s.high_hz));
  if (key == "range") return number(absl::SimpleAtod(value, &s.range_db));
  if (key == "bands") return either("mel", "linear", s.mel);
  if (key == "reference") return either("peak", "full", s.peak);
  if (key == "type") return either("u8", "f32", s.as_u8);
  return bad(text, absl::StrCat("'", printable(key, 20),
                                "' is not known; use window, hop, bands, low, high, range, "
                                "reference or type"));
}

Status parse_spectrogram(const std::string& text, const std::vector<std::string>& list,
                         SpectrogramOptions& s) {
  bool window = false, hop = false;
  for (const auto& item : list) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(item, absl::MaxSplits('=', 1));
    if (item.find('=') != std::string::npos) {
      ODT_TRY(set_option(text, pair.first, pair.second, s));
      window = window || pair.first == "window";
      hop = hop || pair.first == "hop";
      continue;
    }
    const std::pair<std::string, std::string> size = absl::StrSplit(item, absl::MaxSplits('x', 1));
    if (!absl::SimpleAtoi(size.first, &s.frames) || !absl::SimpleAtoi(size.second, &s.bands))
      return bad(text, "expected FRAMESxBANDS, e.g. spectrogram:16x16");
  }
  if (window && !hop) s.hop = std::max(1u, s.window / 4);
  return absl::OkStatus();
}

}  // namespace

Result<Features> parse_features(const std::string& text) {
  Features f;
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  const std::vector<std::string> list = absl::StrSplit(parts.second, ',', absl::SkipEmpty());
  if (text.empty() || text == "raw") return f;
  if (parts.first == "decimate") {
    f.kind = Features::Kind::kDecimate;
    if (!absl::SimpleAtoi(parts.second, &f.factor) || f.factor < 1)
      return bad(text, "expected decimate:N, N at least 1");
    return f;
  }
  if (parts.first == "stats") {
    f.kind = Features::Kind::kStats;
    ODT_TRY(parse_stats(text, list, f));
    if (list.empty())
      f.stats = {Features::Stat::kMean, Features::Stat::kStd, Features::Stat::kMin,
                 Features::Stat::kMax, Features::Stat::kRms};
    return f;
  }
  if (parts.first == "spectrogram") {
    f.kind = Features::Kind::kSpectrogram;
    ODT_TRY(parse_spectrogram(text, list, f.spectrogram));
    return f;
  }
  return bad(text,
             "not known; use raw, decimate:N, stats[:mean,std,min,max,rms] or "
             "spectrogram[:FRAMESxBANDS,...]");
}

}  // namespace odt::data
