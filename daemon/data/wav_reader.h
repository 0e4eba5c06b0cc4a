#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace odt::data {

struct WavClip {
  double rate = 0;             // Hz
  std::vector<float> samples;  // mono, whole numbers in -32768..32767
  // What of the file is not as its header says, in words; empty: nothing.
  std::string fault;
};

// A WAV file (RIFF, WAVEX, RF64; PCM 8..32 bit, float, A-law, mu-law, ADPCM): the mean of its
// channels, rounded half up to 16 bits. rate 0: as it is; else resampled to it (before rounding;
// libsamplerate, medium sinc). A file that ends before its samples do is taken as far as it goes,
// one whose header does not say how long it is up to its end (a stream, or a recording that was not
// closed): clip.fault says so. Errors: INVALID_ARGUMENT with `name`.
Result<WavClip> read_wav(std::string_view bytes, const std::string& name, double rate);

}  // namespace odt::data
