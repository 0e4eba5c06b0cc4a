#include "data/window.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/dataset.h"

namespace odt::data {
namespace {

constexpr double kMaxSteps = 1 << 24;

using Shape = std::vector<std::uint32_t>;

Status bad(const std::string& what) { return absl::InvalidArgumentError(what); }

float stat_of(Features::Stat stat, const float* x, std::size_t n, std::size_t stride) {
  double sum = 0, squares = 0;
  float lo = x[0], hi = x[0];
  for (std::size_t i = 0; i < n; ++i) {
    const float v = x[i * stride];
    if (std::isnan(v)) return v;
    sum += v;
    squares += static_cast<double>(v) * v;
    lo = std::min(lo, v);
    hi = std::max(hi, v);
  }
  const auto count = static_cast<double>(n);
  const double mean = sum / count;
  switch (stat) {
    case Features::Stat::kMean:
      return static_cast<float>(mean);
    case Features::Stat::kMin:
      return lo;
    case Features::Stat::kMax:
      return hi;
    case Features::Stat::kRms:
      return static_cast<float>(std::sqrt(squares / count));
    default: {
      // About the mean: the difference of two large sums would cancel.
      double around = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double d = x[i * stride] - mean;
        around += d * d;
      }
      return static_cast<float>(std::sqrt(around / count));
    }
  }
}

class WindowSource : public Source {
 public:
  WindowSource(std::unique_ptr<RecordingSource> recordings, const WindowOptions& options)
      : recordings_(std::move(recordings)), o_(options) {
    if (o_.stride == 0) o_.stride = o_.length;
  }

  Status open() {
    const Features& f = o_.features;
    const std::uint32_t channels = recordings_->channels();
    if (o_.length == 0 && (f.kind == Features::Kind::kRaw || f.kind == Features::Kind::kDecimate))
      return bad("features raw and decimate need a window length (recordings differ in theirs)");
    switch (f.kind) {
      case Features::Kind::kRaw:
        shape_ = {channels, o_.length, 1};
        break;
      case Features::Kind::kDecimate:
        if (f.factor < 1 || f.factor > o_.length)
          return bad(
              absl::StrCat("decimate:", f.factor, "; expected 1..", o_.length, " (the window)"));
        shape_ = {channels, o_.length / f.factor, 1};
        break;
      case Features::Kind::kStats:
        shape_ = {channels * static_cast<std::uint32_t>(f.stats.size())};
        break;
      case Features::Kind::kSpectrogram: {
        auto made = Spectrogram::create(f.spectrogram, recordings_->sample_rate());
        ODT_TRY(made.status());
        spectrogram_ = std::make_unique<Spectrogram>(*std::move(made));
        shape_ = {channels, f.spectrogram.frames, f.spectrogram.bands};
      }
    }
    std::uint64_t values = 1;
    for (auto d : shape_) values *= d;
    if (values < 1 || values > kMaxSampleValues)
      return bad(absl::StrCat("windows of ", absl::StrJoin(shape_, " x "), " = ", values,
                              " values; expected 1..", kMaxSampleValues));
    return absl::OkStatus();
  }

  const Shape& shape() const override { return shape_; }
  double progress() const override { return recordings_->progress(); }

  Status rewind() override {
    recording_ = {};
    steps_ = at_ = 0;
    index_ = 0;
    dropped_ = 0;
    return recordings_->rewind();
  }

  Result<bool> next(Row& row) override {
    while (at_ + length() > steps_ || steps_ == 0) {
      bool more;
      ODT_ASSIGN(more, recordings_->next(recording_));
      if (!more) return false;
      ODT_TRY(take_recording());
    }
    row.label = recording_.label;
    row.group = recording_.group;
    if (row.group.empty() && o_.length > 0) row.group = recording_.name;
    row.targets.clear();
    row.index = index_++;
    row.own_test = recording_.own_test;
    row.name = recording_.name;
    if (o_.length > 0) absl::StrAppend(&row.name, ", steps from ", at_);
    row.values.clear();
    ODT_TRY(append_features(row));
    at_ += o_.length > 0 ? o_.stride : steps_;
    return true;
  }

  std::string describe() const override {
    std::string text = recordings_->describe();
    if (o_.length > 0)
      absl::StrAppend(&text, ", windows of ", o_.length, " every ", o_.stride, " steps");
    if (dropped_ > 0) absl::StrAppend(&text, ", ", dropped_, " short recordings left out");
    return absl::StrCat(text, ", ", describe_features());
  }

  SourceInfo info() const override {
    SourceInfo info = recordings_->info();
    info.kind = "series";
    info.sample_rate = static_cast<float>(recordings_->sample_rate());
    const Features& f = o_.features;
    if (f.kind == Features::Kind::kSpectrogram) {
      info.kind = "image";
      info.unit = f.spectrogram.as_u8 ? "" : "dB";
    } else if (f.kind == Features::Kind::kDecimate) {
      info.sample_rate /= static_cast<float>(f.factor);
    } else if (f.kind == Features::Kind::kStats) {
      info.kind = "table";
      info.value_names = stat_names(info.value_names);
    }
    return info;
  }

 private:
  std::size_t length() const {
    return o_.length > 0 ? o_.length : steps_ - at_ > 0 ? steps_ - at_ : 1;
  }

  // Settles what a recording shorter than a window becomes.
  Status take_recording() {
    const std::size_t channels = recordings_->channels();
    steps_ = recording_.values.size() / channels;
    at_ = 0;
    const std::size_t wanted = o_.length > 0 ? o_.length : 1;
    if (steps_ >= wanted) return absl::OkStatus();
    if (o_.when_short == WindowOptions::Short::kRefuse)
      return bad(absl::StrCat(recording_.name, ": ", steps_, " steps, shorter than the window of ",
                              wanted, "; pad or drop short recordings, or use shorter windows"));
    if (o_.when_short == WindowOptions::Short::kDrop) {
      ++dropped_;
      at_ = steps_;
      return absl::OkStatus();
    }
    recording_.values.resize(wanted * channels, 0.0f);
    steps_ = wanted;
    return absl::OkStatus();
  }

  Status append_features(Row& row) {
    const Features& f = o_.features;
    const std::size_t channels = recordings_->channels(), n = length();
    for (std::size_t c = 0; c < channels; ++c) {
      const float* x = recording_.values.data() + at_ * channels + c;
      switch (f.kind) {
        case Features::Kind::kRaw:
          for (std::size_t i = 0; i < n; ++i) row.values.push_back(x[i * channels]);
          break;
        case Features::Kind::kDecimate:
          for (std::size_t i = 0; i + f.factor <= n; i += f.factor)
            row.values.push_back(
                stat_of(Features::Stat::kMean, x + i * channels, f.factor, channels));
          break;
        case Features::Kind::kStats:
          for (auto stat : f.stats) row.values.push_back(stat_of(stat, x, n, channels));
          break;
        case Features::Kind::kSpectrogram:
          if (auto st = spectrogram_->append(x, n, channels, recordings_->full_scale(), row.values);
              !st.ok())
            return bad(absl::StrCat(row.name, ": ", st.message()));
      }
    }
    return absl::OkStatus();
  }

  static const char* name_of(Features::Stat stat) {
    switch (stat) {
      case Features::Stat::kMean:
        return "mean";
      case Features::Stat::kStd:
        return "std";
      case Features::Stat::kMin:
        return "min";
      case Features::Stat::kMax:
        return "max";
      default:
        return "rms";
    }
  }

  std::vector<std::string> stat_names(const std::vector<std::string>& channels) const {
    std::vector<std::string> names;
    for (std::uint32_t c = 0; c < recordings_->channels(); ++c)
      for (auto stat : o_.features.stats)
        names.push_back(absl::StrCat(
            c < channels.size() ? channels[c] : absl::StrCat("channel ", c), " ", name_of(stat)));
    return names;
  }

  std::string describe_features() const {
    const Features& f = o_.features;
    switch (f.kind) {
      case Features::Kind::kRaw:
        return "raw";
      case Features::Kind::kDecimate:
        return absl::StrCat("decimate:", f.factor);
      case Features::Kind::kStats:
        return absl::StrCat("stats:", absl::StrJoin(f.stats, ",", [](std::string* out, auto stat) {
                              absl::StrAppend(out, name_of(stat));
                            }));
      default: {
        const SpectrogramOptions& s = spectrogram_->options();
        return absl::StrCat("spectrogram:", s.frames, "x", s.bands, ",window=", s.window,
                            ",hop=", s.hop, ",bands=", s.mel ? "mel" : "linear", ",low=", s.low_hz,
                            ",high=", s.high_hz, ",range=", s.range_db,
                            ",reference=", s.peak ? "peak" : "full",
                            ",type=", s.as_u8 ? "u8" : "f32");
      }
    }
  }

  std::unique_ptr<RecordingSource> recordings_;
  WindowOptions o_;
  Shape shape_;
  std::unique_ptr<Spectrogram> spectrogram_;
  Recording recording_;
  std::size_t steps_ = 0, at_ = 0;  // of recording_
  std::uint32_t index_ = 0, dropped_ = 0;
};

}  // namespace

Result<std::unique_ptr<Source>> open_windows(std::unique_ptr<RecordingSource> recordings,
                                             const WindowOptions& options) {
  if (options.length > kMaxSteps || options.stride > kMaxSteps)
    return bad(absl::StrCat("a window of ", options.length, " every ", options.stride,
                            " steps; at most 2^24"));
  if (options.length == 0 && options.stride > 0) return bad("a stride needs a window length");
  auto source = std::make_unique<WindowSource>(std::move(recordings), options);
  ODT_TRY(source->open());
  return std::unique_ptr<Source>(std::move(source));
}

Result<std::uint32_t> steps_of(double seconds, double sample_rate, const std::string& what) {
  if (!(sample_rate > 0))
    return bad(absl::StrCat(what, " in seconds needs a sample rate; the data does not tell one"));
  const double steps = std::floor(seconds * sample_rate + 0.5);
  if (!(steps >= 1 && steps <= kMaxSteps))
    return bad(absl::StrFormat("%s of %g s at %g Hz is %g steps; expected 1..2^24", what, seconds,
                               sample_rate, steps));
  return static_cast<std::uint32_t>(steps);
}

}  // namespace odt::data
