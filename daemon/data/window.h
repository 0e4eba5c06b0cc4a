#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/series.h"
#include "data/source.h"
#include "data/spectrogram.h"

namespace odt::data {

// What becomes of a window.
struct Features {
  enum class Kind : std::uint8_t {
    kRaw,          // its values: [channels, length, 1]
    kDecimate,     // the mean of every `factor` steps: [channels, length / factor, 1]
    kStats,        // statistics of each channel: [channels * stats]
    kSpectrogram,  // [channels, frames, bands]
  };
  enum class Stat : std::uint8_t { kMean, kStd, kMin, kMax, kRms };
  Kind kind = Kind::kRaw;
  std::uint32_t factor = 1;
  std::vector<Stat> stats;
  SpectrogramOptions spectrogram;
};

// "raw" or "", "decimate:2", "stats" or "stats:mean,std,min,max,rms" (std: divided by the count),
// "spectrogram" or "spectrogram:16x16,window=256,hop=64,bands=mel|linear,low=60,high=4000,range=60,
// reference=peak|full,type=u8|f32". Errors: INVALID_ARGUMENT with what is known.
Result<Features> parse_features(const std::string& text);

struct WindowOptions {
  // Steps; 0: each recording is one window (spectrogram and stats, which take any length).
  std::uint32_t length = 0;
  std::uint32_t stride = 0;  // 0: the length
  enum class Short : std::uint8_t { kRefuse, kPad, kDrop };
  Short when_short = Short::kRefuse;  // a recording shorter than a window: zeros behind it, or none
  Features features;
};

// Windows of recordings as rows. Steps behind the last whole window of a recording are left out.
// Windows of a recording share its group, so that none of its steps is in two splits; without
// windows (length 0) a recording without a group of its own has none. Errors: INVALID_ARGUMENT
// (lengths, features without what they need).
Result<std::unique_ptr<Source>> open_windows(std::unique_ptr<RecordingSource> recordings,
                                             const WindowOptions& options);

// Seconds in steps, rounded half up. Errors: INVALID_ARGUMENT where it is not 1..2^24 steps, or the
// rate is not known.
Result<std::uint32_t> steps_of(double seconds, double sample_rate, const std::string& what);

}  // namespace odt::data
