#include "data/wav_reader.h"

#include <absl/strings/str_cat.h>
#include <samplerate.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "data/series.h"

namespace odt::data {
namespace {

constexpr int kMaxChannels = 64, kMaxRate = 1000000;

// A file in memory for libsndfile.
struct Memory {
  std::string_view bytes;
  sf_count_t at = 0;
};

sf_count_t memory_size(void* user) {
  return static_cast<sf_count_t>(static_cast<Memory*>(user)->bytes.size());
}
sf_count_t memory_seek(sf_count_t offset, int whence, void* user) {
  auto* m = static_cast<Memory*>(user);
  const auto size = static_cast<sf_count_t>(m->bytes.size());
  const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? m->at : size;
  // Checked without an overflow: offsets come from the file.
  if (offset < -base || offset > size - base) return -1;
  return m->at = base + offset;
}
sf_count_t memory_read(void* to, sf_count_t count, void* user) {
  auto* m = static_cast<Memory*>(user);
  const sf_count_t n =
      std::clamp<sf_count_t>(count, 0, static_cast<sf_count_t>(m->bytes.size()) - m->at);
  std::memcpy(to, m->bytes.data() + m->at, static_cast<std::size_t>(n));
  m->at += n;
  return n;
}
sf_count_t memory_write(const void*, sf_count_t, void*) { return 0; }
sf_count_t memory_tell(void* user) { return static_cast<Memory*>(user)->at; }

std::uint32_t number32(std::string_view b, std::size_t at, bool big) {
  std::uint32_t v = 0;
  for (std::size_t i = 0; i < 4; ++i)
    v = v << 8 | static_cast<unsigned char>(b[at + (big ? i : 3 - i)]);
  return v;
}

// Where a file's samples lie, and how many its header promises.
struct Extent {
  std::size_t size_at = 0, data_at = 0;  // of the data chunk; 0: none found
  std::uint64_t says = 0, has = 0, riff_says = 0;
  bool empty = false;  // a finished file without samples; what follows is other chunks
  // As sox and ffmpeg write into a pipe, or a recorder that was switched off.
  bool unknown() const { return says >= 0x7FFFF000 || (says == 0 && has > 0 && !empty); }
};

// Whether chunks fill a RIFF file from `at` to the end that its header promises: samples would not.
bool only_chunks(std::string_view b, std::size_t at, std::uint64_t riff_says, bool big) {
  const std::uint64_t end = riff_says + 8;
  if (riff_says >= 0x7FFFF000 || end <= at || end > b.size()) return false;
  while (at + 8 <= end) {
    for (const char c : b.substr(at, 4))
      if (c < ' ' || c > '~') return false;
    const std::uint64_t length = number32(b, at + 4, big);
    if (length > end - at - 8) return false;
    at += 8 + length + (length & 1);
  }
  return at >= end;  // some leave the last chunk's padding out
}

Extent find_samples(std::string_view b) {
  const bool big = b.substr(0, 4) == "RIFX", wide = b.substr(0, 4) == "RF64";
  Extent e;
  e.riff_says = number32(b, 4, big);
  const auto number64 = [&](std::size_t at) {
    return std::uint64_t{number32(b, at + 4, false)} << 32 | number32(b, at, false);
  };
  std::uint64_t wide_data = 0;
  for (std::size_t at = 12; at + 8 <= b.size();) {
    const std::uint64_t length = number32(b, at + 4, big);
    if (b.substr(at, 4) == "ds64" && wide && at + 24 <= b.size()) {
      e.riff_says = number64(at + 8);
      wide_data = number64(at + 16);
    }
    if (b.substr(at, 4) == "data") {
      e.size_at = at + 4;
      e.data_at = at + 8;
      e.says = wide && length == 0xFFFFFFFF ? wide_data : length;
      e.has = b.size() - e.data_at;
      e.empty = e.says == 0 && only_chunks(b, e.data_at, e.riff_says, big);
      break;
    }
    if (length > b.size() - at - 8) break;
    at += 8 + length + (length & 1);
  }
  return e;
}

std::string fault_of(const Extent& e, std::size_t bytes) {
  if (e.data_at == 0) return {};
  if (e.unknown()) return "its header does not say how long it is: taken up to its end";
  if (e.says > e.has)
    return absl::StrCat("cut off: ", e.has, " of ", e.says, " bytes of samples are there");
  if (e.riff_says < 0x7FFFF000 && e.riff_says > bytes - 8)
    return absl::StrCat("cut off behind its samples: ", bytes, " of ", e.riff_says + 8, " bytes");
  return {};
}

Status bad(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", what));
}

Status read_mono(SNDFILE* file, int channels, const std::string& name, std::vector<float>& out) {
  const auto width = static_cast<std::size_t>(channels);
  std::vector<float> block(4096 * width);
  sf_count_t frames;
  while ((frames = sf_readf_float(file, block.data(), 4096)) > 0) {
    const auto n = static_cast<std::size_t>(frames);
    if (out.size() + n > kMaxRecordingValues)
      return bad(name, absl::StrCat("more than ", kMaxRecordingValues, " samples"));
    for (std::size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (std::size_t c = 0; c < width; ++c) sum += block[i * width + c];
      if (!std::isfinite(sum)) return bad(name, "a sample is not a finite number");
      out.push_back(static_cast<float>(std::clamp(sum / static_cast<double>(width), -2.0, 2.0)));
    }
  }
  return absl::OkStatus();
}

Status resample(std::vector<float>& samples, double from, double to, const std::string& name) {
  const double ratio = to / from;
  const double length = std::ceil(static_cast<double>(samples.size()) * ratio);
  if (!src_is_valid_ratio(ratio) || length > static_cast<double>(kMaxRecordingValues))
    return bad(name, absl::StrCat("cannot be resampled from ", from, " to ", to, " Hz"));
  std::vector<float> out(static_cast<std::size_t>(length));
  SRC_DATA job{};
  job.data_in = samples.data();
  job.data_out = out.data();
  job.input_frames = static_cast<long>(samples.size());
  job.output_frames = static_cast<long>(out.size());
  job.src_ratio = ratio;
  if (const int error = src_simple(&job, SRC_SINC_MEDIUM_QUALITY, 1); error != 0)
    return bad(name, absl::StrCat("resampling: ", src_strerror(error)));
  out.resize(static_cast<std::size_t>(job.output_frames_gen));
  samples = std::move(out);
  return absl::OkStatus();
}

}  // namespace

Result<WavClip> read_wav(std::string_view bytes, const std::string& name, double rate) {
  const std::string_view magic = bytes.substr(0, 4);
  if (bytes.size() < 12 || (magic != "RIFF" && magic != "RIFX" && magic != "RF64") ||
      bytes.substr(8, 4) != "WAVE")
    return bad(name, "not a WAV file");
  const Extent extent = find_samples(bytes);
  if (extent.empty) return bad(name, "no samples");  // libsndfile takes the chunks for some
  std::string patched;
  if (extent.data_at != 0 && extent.unknown() && magic != "RF64") {
    patched = bytes;
    const auto has = static_cast<std::uint32_t>(std::min<std::uint64_t>(extent.has, 0x7FFFEFFF));
    for (std::size_t i = 0; i < 4; ++i)
      patched[extent.size_at + i] = static_cast<char>(has >> 8 * (magic == "RIFX" ? 3 - i : i));
    bytes = patched;
  }
  Memory memory{bytes};
  SF_VIRTUAL_IO io{memory_size, memory_seek, memory_read, memory_write, memory_tell};
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> file(
      sf_open_virtual(&io, SFM_READ, &info, &memory), sf_close);
  if (!file)
    return bad(name,
               absl::StrCat("not a readable WAV file: ", printable(sf_strerror(nullptr), 100)));
  if (info.channels < 1 || info.channels > kMaxChannels)
    return bad(name, absl::StrCat(info.channels, " channels; expected 1..", kMaxChannels));
  if (info.samplerate < 1 || info.samplerate > kMaxRate)
    return bad(name, absl::StrCat(info.samplerate, " Hz; expected 1..", kMaxRate));
  WavClip clip;
  clip.rate = info.samplerate;
  clip.fault = fault_of(extent, bytes.size());
  ODT_TRY(read_mono(file.get(), info.channels, name, clip.samples));
  if (clip.samples.empty())
    return bad(name, absl::StrCat("no samples", clip.fault.empty() ? "" : "; ", clip.fault));
  if (rate > 0 && rate != clip.rate) {
    ODT_TRY(resample(clip.samples, clip.rate, rate, name));
    if (clip.samples.empty())
      return bad(name,
                 absl::StrCat("too short to be resampled from ", clip.rate, " to ", rate, " Hz"));
    clip.rate = rate;
  }
  for (float& v : clip.samples)
    v = static_cast<float>(
        std::clamp(std::floor(static_cast<double>(v) * 32768 + 0.5), -32768.0, 32767.0));
  return clip;
}

}  // namespace odt::data
