#include <absl/strings/str_cat.h>

#include <cmath>

#include "data/series.h"
#include "data/wav_reader.h"

namespace odt::data {
namespace {

class WavRecordings : public RecordingSource {
 public:
  WavRecordings(std::unique_ptr<FileSet> files, SampleNames names)
      : files_(std::move(files)), names_(std::move(names)) {}

  Status open(double rate) {
    const auto& entries = files_->entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string ending = extension_of(entries[i].path);
      if (ending != ".wav" && ending != ".wave" && entries.size() > 1) continue;
      std::optional<SampleName> name;
      ODT_ASSIGN(name, names_.of(*files_, i));
      if (!name) continue;
      if (name->label.empty())
        return absl::InvalidArgumentError(
            absl::StrCat(files_->shown(i),
                         ": no class; put the files of a class into a folder of its name, or "
                         "give a pattern such as {label}_{speaker}_*.wav"));
      wanted_.push_back(i);
      named_.push_back(*std::move(name));
    }
    if (wanted_.empty())
      return absl::InvalidArgumentError(absl::StrCat(files_->name(), ": no WAV files"));
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
    at_ = 0;
    return absl::OkStatus();
  }
  double progress() const override {
    return static_cast<double>(at_) / static_cast<double>(wanted_.size());
  }
  std::string describe() const override {
    return absl::StrCat("wav ", files_->name(), ", ", wanted_.size(), " files, ", rate_, " Hz");
  }
  SourceInfo info() const override {
    SourceInfo info;
    info.unit = "1/32768";
    info.value_names = {"sound"};
    return info;
  }

  Result<bool> next(Recording& r) override {
    if (at_ == wanted_.size()) return false;
    WavClip clip;
    ODT_ASSIGN(clip, read(at_));
    if (clip.rate != rate_)
      return absl::InvalidArgumentError(absl::StrCat(files_->shown(wanted_[at_]), ": ", clip.rate,
                                                     " Hz; the first file has ", rate_,
                                                     " Hz (give a sample rate to resample to)"));
    const SampleName& name = named_[at_];
    r.label = name.label;
    r.group = name.group;
    r.own_test = name.own_test;
    r.name = files_->shown(wanted_[at_]);
    r.values = std::move(clip.samples);
    ++at_;
    return true;
  }

 private:
  Result<WavClip> read(std::size_t n) const {
    std::string bytes;
    ODT_ASSIGN(bytes, files_->read(wanted_[n]));
    return read_wav(bytes, files_->shown(wanted_[n]), fixed_rate_ ? rate_ : 0);
  }

  std::unique_ptr<FileSet> files_;
  SampleNames names_;
  std::vector<std::size_t> wanted_;  // of the files' entries
  std::vector<SampleName> named_;
  double rate_ = 0;
  bool fixed_rate_ = false;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::unique_ptr<RecordingSource>> open_wav(std::unique_ptr<FileSet> files,
                                                  const NameOptions& options, double rate) {
  if (!(rate >= 0 && rate <= 1000000))
    return absl::InvalidArgumentError(
        absl::StrCat("sample rate ", rate, " Hz; expected 1..1000000"));
  auto names = SampleNames::create(options, *files);
  ODT_TRY(names.status());
  auto source = std::make_unique<WavRecordings>(std::move(files), *std::move(names));
  ODT_TRY(source->open(rate));
  return std::unique_ptr<RecordingSource>(std::move(source));
}

}  // namespace odt::data
