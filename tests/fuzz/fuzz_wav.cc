// WAV files are hostile bytes. First byte: resample or not; the rest: the file. What is accepted
// holds whole 16-bit samples and has a spectrogram of bytes.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "data/spectrogram.h"
#include "data/wav_reader.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view file(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto clip = odt::data::read_wav(file, "fuzz.wav", data[0] & 1 ? 8000 : 0);
  if (!clip.ok()) return 0;
  require(clip->rate >= 1 && !clip->samples.empty());
  for (const float v : clip->samples) require(v >= -32768 && v <= 32767 && v == std::floor(v));
  odt::data::SpectrogramOptions options;
  options.frames = options.bands = 4;
  auto spectrogram = odt::data::Spectrogram::create(options, clip->rate);
  if (!spectrogram.ok()) return 0;
  std::vector<float> out;
  if (!spectrogram->append(clip->samples.data(), clip->samples.size(), 1, 32768, out).ok())
    return 0;
  require(out.size() == 16);
  for (const float v : out) require(v >= 0 && v <= 255 && v == std::floor(v));
  return 0;
}
