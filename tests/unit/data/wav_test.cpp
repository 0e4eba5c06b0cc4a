#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/ids.h"
#include "data/open_series.h"
#include "data/spectrogram.h"
#include "data/wav_reader.h"
#include "temp_files.h"

namespace odt::data::wav_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof v);
}

// A RIFF file around samples as they are stored. format 1: PCM, 3: float.
std::string wav(std::uint16_t format, std::uint16_t channels, std::uint32_t rate,
                std::uint16_t bits, const std::string& samples) {
  std::string out = "RIFF";
  put<std::uint32_t>(out, static_cast<std::uint32_t>(36 + samples.size()));
  out += "WAVEfmt ";
  put<std::uint32_t>(out, 16);
  put(out, format);
  put(out, channels);
  put(out, rate);
  put<std::uint32_t>(out, rate * channels * bits / 8);
  put<std::uint16_t>(out, static_cast<std::uint16_t>(channels * bits / 8));
  put(out, bits);
  out += "data";
  put<std::uint32_t>(out, static_cast<std::uint32_t>(samples.size()));
  return out + samples;
}
template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
// Integers only, so that the samples are the same on every machine.
std::vector<std::int16_t> chirp(std::size_t n, std::uint32_t speed) {
  std::vector<std::int16_t> x;
  std::uint32_t phase = 0, step = 1u << 25;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t t = static_cast<std::int32_t>(phase) >> 16;  // a saw, folded to a triangle
    x.push_back(static_cast<std::int16_t>(t < 0 ? -t - 16384 : t - 16384));
    phase += step += speed;
  }
  return x;
}
std::string chirp_wav(std::size_t n, std::uint32_t speed, std::uint32_t rate = 8000) {
  return wav(1, 1, rate, 16, bytes_of(chirp(n, speed)));
}

std::string refusal(const std::string& bytes, double rate = 0) {
  const auto clip = read_wav(bytes, "a.wav", rate);
  return clip.ok() ? "accepted" : std::string(clip.status().message());
}

TEST(WavReaderTest, SixteenBitSamplesAreTakenAsTheyAre) {
  const std::vector<std::int16_t> x = {0, 1, -1, 32767, -32768};
  const auto clip = read_wav(wav(1, 1, 11025, 16, bytes_of(x)), "a.wav", 0);
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_EQ(clip->rate, 11025);
  EXPECT_THAT(clip->samples, ElementsAre(0, 1, -1, 32767, -32768));
}

TEST(WavReaderTest, ChannelsAreAveragedHalfUp) {
  const std::vector<std::int16_t> x = {10, 21, -10, -21, 32767, 32767};
  const auto clip = read_wav(wav(1, 2, 8000, 16, bytes_of(x)), "a.wav", 0);
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_THAT(clip->samples, ElementsAre(16, -15, 32767));
}

TEST(WavReaderTest, OtherSampleFormatsBecomeSixteenBits) {
  const std::vector<std::uint8_t> u8 = {128, 255, 0};
  EXPECT_THAT(read_wav(wav(1, 1, 8000, 8, bytes_of(u8)), "a", 0)->samples,
              ElementsAre(0, 127 * 256, -32768));
  const std::vector<float> f = {0.5f, -1.0f, 1.5f, 1.4f / 32768};
  EXPECT_THAT(read_wav(wav(3, 1, 8000, 32, bytes_of(f)), "a", 0)->samples,
              ElementsAre(16384, -32768, 32767, 1));
}

TEST(WavReaderTest, ResampledSinesKeepFrequencyAndLevel) {
  std::vector<std::int16_t> x;
  for (int i = 0; i < 16000; ++i)
    x.push_back(static_cast<std::int16_t>(std::lround(10000 * std::sin(i * 0.1))));
  const auto clip = read_wav(wav(1, 1, 16000, 16, bytes_of(x)), "a.wav", 8000);
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_EQ(clip->rate, 8000);
  EXPECT_NEAR(static_cast<double>(clip->samples.size()), 8000, 2);
  for (std::size_t i = 1000; i < 7000; ++i)
    ASSERT_NEAR(clip->samples[i], 10000 * std::sin(static_cast<double>(i) * 0.2), 30) << i;
}

TEST(WavReaderTest, BadFilesAreRefusedByName) {
  const std::string good = chirp_wav(100, 1000);
  EXPECT_EQ(refusal(""), "a.wav: not a WAV file");
  EXPECT_EQ(refusal("ID3\x03 and so on, an MP3 file"), "a.wav: not a WAV file");
  EXPECT_THAT(refusal(good.substr(0, 30)), HasSubstr("a.wav: "));
  EXPECT_EQ(refusal(good.substr(0, 44)),
            "a.wav: no samples; cut off: 0 of 200 bytes of samples are there");
  const std::vector<float> f = {std::nanf("")};
  EXPECT_EQ(refusal(wav(3, 1, 8000, 32, bytes_of(f))), "a.wav: a sample is not a finite number");
  EXPECT_THAT(refusal(wav(1, 1, 2000000, 16, "ab")), HasSubstr("2000000 Hz; expected 1..1000000"));
  EXPECT_EQ(refusal(wav(3, 1, 532288, 32, std::string(8, '\0')), 8000),
            "a.wav: too short to be resampled from 532288 to 8000 Hz");
  EXPECT_THAT(refusal(good, 1), HasSubstr("cannot be resampled from 8000 to 1 Hz"));
}

// sox, scipy and ffmpeg take what there is of a file that was cut off; so does the import, and says
// it.
TEST(WavReaderTest, FilesThatEndEarlyAreTakenAsFarAsTheyGo) {
  const auto x = chirp(100, 1000);
  const std::string good = chirp_wav(100, 1000);
  const auto all = read_wav(good, "a.wav", 0);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->fault, "");
  for (const std::size_t missing : {1u, 2u, 101u, 198u}) {
    const auto clip = read_wav(good.substr(0, good.size() - missing), "a.wav", 0);
    ASSERT_TRUE(clip.ok()) << clip.status();
    EXPECT_EQ(clip->samples,
              std::vector<float>(all->samples.begin(), all->samples.begin() + (200 - missing) / 2));
    EXPECT_EQ(clip->fault,
              "cut off: " + std::to_string(200 - missing) + " of 200 bytes of samples are there");
  }
  // Cut off behind the samples: they are whole.
  std::string list = good + "LIST";
  put<std::uint32_t>(list, 100);
  list[4] = static_cast<char>(36 + 200 + 108);
  list[5] = 1;
  const auto clip = read_wav(list, "a.wav", 0);
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_EQ(clip->samples, all->samples);
  EXPECT_EQ(clip->fault, "cut off behind its samples: 252 of 352 bytes");
  EXPECT_EQ(read_wav(good + "ID3 and other things behind it", "a.wav", 0)->fault, "");
}

TEST(WavReaderTest, FilesWithoutALengthAreTakenToTheirEnd) {
  const std::string good = chirp_wav(100, 1000);
  const auto all = read_wav(good, "a.wav", 0);
  for (const std::uint32_t length : {0u, 0xFFFFFFFFu, 0x7FFFFFFFu, 0x7FFFF000u}) {
    std::string open = good;
    for (std::size_t i = 0; i < 4; ++i) {
      open[4 + i] = static_cast<char>(length >> 8 * i);
      open[40 + i] = static_cast<char>(length >> 8 * i);
    }
    const auto clip = read_wav(open, "a.wav", 0);
    ASSERT_TRUE(clip.ok()) << length << ": " << clip.status();
    EXPECT_EQ(clip->samples, all->samples) << length;
    EXPECT_EQ(clip->fault, "its header does not say how long it is: taken up to its end");
  }
}

// An empty recording's other chunks are no samples; samples behind a length of 0 are.
TEST(WavReaderTest, ChunksBehindAnEmptyRecordingAreNoSamples) {
  const auto with_riff_size = [](std::string file) {
    const auto size = static_cast<std::uint32_t>(file.size() - 8);
    std::memcpy(file.data() + 4, &size, 4);
    return file;
  };
  const auto chunk = [](const char* id, const std::string& body) {
    std::string out = id;
    put<std::uint32_t>(out, static_cast<std::uint32_t>(body.size()));
    return out + body + std::string(body.size() % 2, '\0');
  };
  const std::string empty = wav(1, 1, 8000, 16, "");
  const std::string list = chunk("LIST", "INFOISFT" + std::string("\x05\0\0\0Lavf\0\0", 10));
  const std::string id3 = chunk("id3 ", "ID3\x04 an odd length");
  EXPECT_EQ(refusal(empty), "a.wav: no samples");
  EXPECT_EQ(refusal(with_riff_size(empty + list)), "a.wav: no samples");
  EXPECT_EQ(refusal(with_riff_size(empty + id3 + list)), "a.wav: no samples");
  EXPECT_EQ(refusal(with_riff_size(empty + list) + "behind it"), "a.wav: no samples");
  // A recorder that brought its RIFF size up to date, but not its data's.
  const auto x = chirp(100, 1000);
  const auto clip = read_wav(with_riff_size(empty + bytes_of(x)), "a.wav", 0);
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_EQ(clip->samples.size(), x.size());
}

TEST(SpectrogramTest, ASineIsOneBandAtItsLevel) {
  SpectrogramOptions o;
  o.mel = false;
  o.low_hz = 0;
  o.bands = 15;  // edges 250 Hz apart: tops at 250, 500, ...
  o.window = 256;
  o.as_u8 = false;
  o.peak = false;
  auto s = Spectrogram::create(o, 8000);
  ASSERT_TRUE(s.ok()) << s.status();
  std::vector<float> x, out;
  for (int i = 0; i < 8000; ++i)
    x.push_back(static_cast<float>(0.1 * std::sin(2 * std::acos(-1.0) * 1000 / 8000 * i)));
  ASSERT_TRUE(s->append(x.data(), x.size(), 1, 1, out).ok());
  ASSERT_EQ(out.size(), 16u * 15);
  for (std::size_t f = 0; f < 16; ++f) {
    // 1000 Hz is a bin; the window gives the bins beside it a quarter of its power each, and they
    // lie an eighth down the triangle: 1 + 2 * 0.25 * 0.875 = 1.58 dB.
    EXPECT_NEAR(out[f * 15 + 3], -20 + 1.576, 0.01);
    EXPECT_NEAR(out[f * 15 + 10], -60, 0.01);
  }
}

TEST(SpectrogramTest, PeakIsTheReferenceAndSilenceIsZero) {
  auto s = Spectrogram::create({}, 8000);
  ASSERT_TRUE(s.ok()) << s.status();
  std::vector<float> loud, quiet, silent(3000, 0.0f), a, b, c;
  for (auto v : chirp(3000, 300000)) {
    loud.push_back(v);
    quiet.push_back(static_cast<float>(v) / 4);
  }
  ASSERT_TRUE(s->append(loud.data(), 3000, 1, 32768, a).ok());
  ASSERT_TRUE(s->append(quiet.data(), 3000, 1, 32768, b).ok());
  ASSERT_TRUE(s->append(silent.data(), 3000, 1, 32768, c).ok());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1);  // a rounding apart
  EXPECT_GT(*std::max_element(a.begin(), a.end()), 200);
  EXPECT_THAT(c, testing::Each(0));
}

// Made by this code: a change of the order of its arithmetic, or a machine that computes
// differently, shows here.
TEST(SpectrogramTest, BytesAreTheSameEverywhere) {
  std::string u8, f32;
  for (bool as_u8 : {true, false})
    for (bool mel : {true, false}) {
      SpectrogramOptions o;
      o.as_u8 = as_u8;
      o.mel = mel;
      auto s = Spectrogram::create(o, 8000);
      ASSERT_TRUE(s.ok()) << s.status();
      std::vector<float> x, out;
      for (auto v : chirp(5000, 200000)) x.push_back(v);
      ASSERT_TRUE(s->append(x.data(), x.size(), 1, 32768, out).ok());
      (as_u8 ? u8 : f32) += bytes_of(out);
    }
  EXPECT_EQ(sha256(u8).hex().substr(0, 16), "dde80817705e6d59");
  EXPECT_EQ(sha256(f32).hex().substr(0, 16), "c728975c082d7522");
}

TEST(SpectrogramTest, BadOptionsAreRefused) {
  const auto refused = [](auto set, double rate = 8000) {
    SpectrogramOptions o;
    set(o);
    return std::string(Spectrogram::create(o, rate).status().message());
  };
  EXPECT_THAT(refused([](auto& o) { o.window = 100; }), HasSubstr("a power of two"));
  EXPECT_THAT(refused([](auto& o) { o.hop = 257; }), HasSubstr("hop 257"));
  EXPECT_THAT(refused([](auto& o) { o.high_hz = 4001; }), HasSubstr("4000 Hz (half"));
  EXPECT_THAT(refused([](auto& o) { o.bands = 200; }), HasSubstr("no frequency bin falls into"));
  EXPECT_THAT(refused([](auto& o) { o.range_db = 0; }), HasSubstr("range 0 dB"));
  EXPECT_THAT(refused([](auto& o) { o.frames = 0; }), HasSubstr("0 frames"));
  EXPECT_THAT(refused([](auto&) {}, 0), HasSubstr("sample rate is not known"));
}

class WavFolderTest : public testing::Test {
 protected:
  WavFolderTest() { request_.format = "wav"; }
  std::vector<Row> rows() {
    auto source = open_wav_rows(request_, files_.folder(), "clips");
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return {};
    shape_ = (*source)->shape();
    return rows_of(**source);
  }
  std::string refusal() {
    auto source = open_wav_rows(request_, files_.folder(), "clips");
    if (!source.ok()) return std::string(source.status().message());
    Status status;
    rows_of(**source, &status);
    return std::string(status.message());
  }
  TempFiles files_;
  ImportRequest request_;
  std::vector<std::uint32_t> shape_;
};

TEST_F(WavFolderTest, ClassIsTheFolderByDefault) {
  files_.put("yes/b.wav", chirp_wav(3000, 1000));
  files_.put("no/a.wav", chirp_wav(2000, 2000));
  files_.put("no/notes.txt", "text");
  files_.put("no/.hidden.wav", "junk");
  const auto r = rows();
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r[0].label, "no");
  EXPECT_EQ(r[1].label, "yes");
  EXPECT_EQ(r[1].name, "clips/yes/b.wav");
  EXPECT_EQ(r[1].group, "");
  EXPECT_THAT(shape_, ElementsAre(1, 16, 16));
  EXPECT_EQ(r[0].values.size(), 256u);
}

TEST_F(WavFolderTest, PatternGivesClassGroupAndFilter) {
  for (const char* name : {"0_ann_1", "1_ann_2", "0_bob_1"})
    files_.put(std::string(name) + ".wav", chirp_wav(3000, 1000));
  request_.pattern = "{label}_{speaker}_{n}.wav";
  request_.group_column = "speaker";
  auto r = rows();
  ASSERT_EQ(r.size(), 3u);
  EXPECT_EQ(r[0].label, "0");
  EXPECT_EQ(r[0].group, "ann");
  EXPECT_EQ(r[1].group, "bob");
  EXPECT_EQ(r[2].label, "1");
  request_.only = "speaker!=bob; n=1";
  r = rows();
  ASSERT_EQ(r.size(), 1u);
  EXPECT_EQ(r[0].group, "ann");
  request_.only = "";
  files_.put("odd.wav", chirp_wav(3000, 1000));
  EXPECT_EQ(refusal(), "clips/odd.wav: does not match the pattern {label}_{speaker}_{n}.wav");
}

TEST_F(WavFolderTest, PatternMayReachIntoFolders) {
  files_.put("set/ann/yes-1.wav", chirp_wav(3000, 1000));
  request_.pattern = "{speaker}/{label}-*";
  request_.group_column = "speaker";
  const auto r = rows();
  ASSERT_EQ(r.size(), 1u);
  EXPECT_EQ(r[0].label, "yes");
  EXPECT_EQ(r[0].group, "ann");
}

TEST_F(WavFolderTest, TestFoldersAreTheOwnTestSet) {
  files_.put("train/a/1.wav", chirp_wav(3000, 1000));
  files_.put("test/a/1.wav", chirp_wav(3000, 1000));
  const auto r = rows();
  ASSERT_EQ(r.size(), 2u);
  EXPECT_TRUE(r[0].own_test);
  EXPECT_FALSE(r[1].own_test);
}

TEST_F(WavFolderTest, RawWindowsShareTheRecordingsGroup) {
  files_.put("a/1.wav", chirp_wav(2500, 1000));
  request_.window_s = 0.125;
  request_.features = "raw";
  const auto r = rows();
  ASSERT_EQ(r.size(), 2u);  // 2500 steps hold two windows of 1000
  EXPECT_THAT(shape_, ElementsAre(1, 1000, 1));
  EXPECT_EQ(r[0].group, "clips/a/1.wav");
  EXPECT_EQ(r[1].group, r[0].group);
  EXPECT_EQ(r[1].values[0], chirp(2500, 1000)[1000]);
}

TEST_F(WavFolderTest, FilesThatAreNotWholeAreToldOnce) {
  files_.put("a/1.wav", chirp_wav(3000, 1000));
  files_.put("a/2.wav", chirp_wav(3000, 1000).substr(0, 4044));
  auto source = open_wav_rows(request_, files_.folder(), "clips");
  ASSERT_TRUE(source.ok()) << source.status();
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(rows_of(**source).size(), 2u);
    EXPECT_THAT((*source)->info().faults,
                ElementsAre("clips/a/2.wav: cut off: 4000 of 6000 bytes of samples are there"));
    ASSERT_TRUE((*source)->rewind().ok());
  }
}

TEST_F(WavFolderTest, ImageOptionsAreRefused) {
  files_.put("yes/a.wav", chirp_wav(3000, 1000));
  request_.resize = {8, 8};
  EXPECT_THAT(refusal(), HasSubstr("wav: resize is for images"));
  request_.resize = {};
  request_.transform = "flip";
  EXPECT_THAT(refusal(), HasSubstr("wav: transform is for images"));
  request_.transform = "none";
  EXPECT_TRUE(open_wav_rows(request_, files_.folder(), "clips").ok());
}

TEST_F(WavFolderTest, AnotherRateIsResampledOrRefused) {
  files_.put("a/1.wav", chirp_wav(3000, 1000));
  files_.put("a/2.wav", chirp_wav(3000, 1000, 16000));
  EXPECT_EQ(refusal(),
            "clips/a/2.wav: 16000 Hz; the first file has 8000 Hz (give a sample rate to resample "
            "to)");
  request_.sample_rate = 8000;
  EXPECT_EQ(rows().size(), 2u);
}

TEST_F(WavFolderTest, BadFoldersAndOptionsAreRefused) {
  EXPECT_EQ(refusal(), "clips: no WAV files");
  files_.put("1.wav", chirp_wav(3000, 1000));
  EXPECT_THAT(refusal(), HasSubstr("clips/1.wav: no class"));
  request_.pattern = "{label}{n}.wav";
  EXPECT_THAT(refusal(), HasSubstr("text is needed between two fields"));
  request_.pattern = "{n}.wav";
  EXPECT_THAT(refusal(), HasSubstr("no {label}"));
  request_.pattern = "{label}.wav";
  request_.group_column = "speaker";
  EXPECT_THAT(refusal(), HasSubstr("group 'speaker' is neither"));
  request_.group_column = "recording";
  request_.only = "speaker";
  EXPECT_THAT(refusal(), HasSubstr("filter 'speaker'"));
  request_.only = "";
  request_.features = "mfcc";
  EXPECT_THAT(refusal(), HasSubstr("features 'mfcc': not known"));
  request_.features = "raw";
  EXPECT_THAT(refusal(), HasSubstr("need a window length"));
}

TEST_F(WavFolderTest, LinksAreNotFollowed) {
  TempFiles outside;
  outside.put("secret.wav", chirp_wav(3000, 1000));
  files_.put("a/1.wav", chirp_wav(3000, 1000));
  std::filesystem::create_symlink(outside.path("secret.wav"), files_.path("a/2.wav"));
  std::filesystem::create_directory_symlink(outside.folder(), files_.path("b"));
  EXPECT_EQ(rows().size(), 1u);
  // A file that becomes a link after the folder was read.
  auto source = open_wav_rows(request_, files_.folder(), "clips");
  ASSERT_TRUE(source.ok()) << source.status();
  std::filesystem::remove(files_.path("a/1.wav"));
  std::filesystem::create_symlink(outside.path("secret.wav"), files_.path("a/1.wav"));
  Row row;
  const auto more = (*source)->next(row);
  ASSERT_FALSE(more.ok());
  EXPECT_THAT(std::string(more.status().message()), HasSubstr("clips/a/1.wav: cannot open"));
}

}  // namespace
}  // namespace odt::data::wav_test
