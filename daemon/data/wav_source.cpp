#include <absl/strings/str_cat.h>

#include <cmath>

#include "data/named_files.h"
#include "data/series.h"
#include "data/wav_reader.h"

namespace odt::data {
namespace {

class WavRecordings : public RecordingSource {
 public:
  explicit WavRecordings(NamedFiles files) : files_(std::move(files)) {}

  Status open(double rate) {
    ODT_TRY(files_.find("WAV files", [this](std::size_t entry, SampleName& name) {
      return needs_label(files_.files(), entry, name, "files", "{label}_{speaker}_*.wav");
    }));
    rate_ = rate;
    fixed_rate_ = rate > 0;
    if (fixed_rate_) return absl::OkStatus();
    WavClip clip;
    ODT_ASSIGN(clip, read(0));
    rate_ = clip.rate;
    return absl::OkStatus();
  }

  std::uint32_t channels() const override { return 1; }
  double sample_rate() const override { return rate_; }
  double full_scale() const override { return 32768; }
  Status rewind() override {
    files_.rewind();
    faults_.clear();
    return absl::OkStatus();
  }
  double progress() const override { return files_.progress(); }
  std::string describe() const override {
    return absl::StrCat("wav ", files_.files().name(), ", ", files_.size(), " files, ", rate_,
                        " Hz");
  }
  SourceInfo info() const override {
    SourceInfo info;
    info.unit = "1/32768";
    info.value_names = {"sound"};
    info.faults = faults_;
    return info;
  }

  Result<bool> next(Recording& r) override {
    if (files_.at_end()) return false;
    WavClip clip;
    ODT_ASSIGN(clip, read(files_.at()));
    if (clip.rate != rate_)
      return absl::InvalidArgumentError(absl::StrCat(files_.shown(files_.at()), ": ", clip.rate,
                                                     " Hz; the first file has ", rate_,
                                                     " Hz (give a sample rate to resample to)"));
    if (!clip.fault.empty())
      faults_.push_back(absl::StrCat(files_.shown(files_.at()), ": ", clip.fault));
    files_.pass(r);
    r.values = std::move(clip.samples);
    return true;
  }

 private:
  Result<WavClip> read(std::size_t n) const {
    std::string bytes;
    ODT_ASSIGN(bytes, files_.read(n));
    return read_wav(bytes, files_.shown(n), fixed_rate_ ? rate_ : 0);
  }

  NamedFiles files_;
  std::vector<std::string> faults_;
  double rate_ = 0;
  bool fixed_rate_ = false;
};

}  // namespace

Result<std::unique_ptr<RecordingSource>> open_wav(std::unique_ptr<FileSet> files,
                                                  const NameOptions& options, double rate) {
  if (!(rate >= 0 && rate <= 1000000))
    return absl::InvalidArgumentError(
        absl::StrCat("sample rate ", rate, " Hz; expected 1..1000000"));
  auto named = NamedFiles::create(std::move(files), options, {".wav", ".wave"});
  ODT_TRY(named.status());
  auto source = std::make_unique<WavRecordings>(*std::move(named));
  ODT_TRY(source->open(rate));
  return std::unique_ptr<RecordingSource>(std::move(source));
}

}  // namespace odt::data
