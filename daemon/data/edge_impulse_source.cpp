#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "data/edge_impulse.h"
#include "data/series.h"

namespace odt::data {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxLabelFileBytes = 64u << 20;
constexpr char kLabelFile[] = "info.labels";

struct Known {
  std::string label;  // empty: the entry has none that we can take
  bool testing = false;
};

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

// The entries of an info.labels file, by path in the file set.
Status read_labels(const std::string& text, const std::string& folder, const std::string& name,
                   std::map<std::string, Known>& known) {
  const auto depth = [](int level, json::parse_event_t, json&) { return level < 12; };
  const json root = json::parse(text, depth, false);
  if (!root.is_object() || !root.contains("files") || !root["files"].is_array())
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected {\"version\": 1, \"files\": [...]}"));
  for (const auto& file : root["files"]) {
    if (!file.is_object() || !file.contains("path") || !file["path"].is_string()) continue;
    Known entry;
    if (file.contains("category") && file["category"].is_string())
      entry.testing = file["category"] == "testing";
    if (file.contains("label")) {
      const json& label = file["label"];
      if (label.is_string()) entry.label = label.get<std::string>();
      if (label.is_object() && label.contains("label") && label["label"].is_string())
        entry.label = label["label"].get<std::string>();
    }
    known.emplace(folder + file["path"].get<std::string>(), std::move(entry));
  }
  return absl::OkStatus();
}

class EdgeImpulseRecordings : public RecordingSource {
 public:
  EdgeImpulseRecordings(std::unique_ptr<FileSet> files, SampleNames names)
      : files_(std::move(files)), names_(std::move(names)) {}

  Status open() {
    std::map<std::string, Known> known;
    ODT_TRY(read_all_labels(known));
    bool training = false, testing = false;
    for (std::size_t i = 0; i < files_->entries().size(); ++i) {
      if (!is_recording(i)) continue;
      std::optional<SampleName> name;
      ODT_ASSIGN(name, names_.of(*files_, i));
      if (!name) continue;
      const auto entry = known.find(files_->entries()[i].path);
      ODT_TRY(settle(i, entry == known.end() ? nullptr : &entry->second, *name));
      (name->own_test ? testing : training) = true;
      wanted_.push_back(i);
      named_.push_back(*std::move(name));
    }
    if (wanted_.empty())
      return absl::InvalidArgumentError(
          absl::StrCat(files_->name(), ": no Edge Impulse files (.json or .cbor)"));
    // Test recordings alone are just recordings.
    if (!training)
      for (auto& name : named_) name.own_test = false;
    ODT_ASSIGN(first_, read(0));
    first_.values = {};
    return absl::OkStatus();
  }

  std::uint32_t channels() const override {
    return static_cast<std::uint32_t>(first_.sensors.size());
  }
  double sample_rate() const override { return 1000 / first_.interval_ms; }
  Status rewind() override {
    at_ = 0;
    return absl::OkStatus();
  }
  double progress() const override {
    return static_cast<double>(at_) / static_cast<double>(wanted_.size());
  }
  std::string describe() const override {
    return absl::StrCat("edge-impulse ", files_->name(), ", ", wanted_.size(), " files, ",
                        sample_rate(), " Hz");
  }
  SourceInfo info() const override {
    SourceInfo info;
    info.value_names = first_.sensors;
    info.unit = first_.units[0];
    for (const auto& unit : first_.units)
      if (unit != info.unit) info.unit.clear();
    return info;
  }

  Result<bool> next(Recording& r) override {
    if (at_ == wanted_.size()) return false;
    EdgeImpulseClip clip;
    ODT_ASSIGN(clip, read(at_));
    const std::string shown = files_->shown(wanted_[at_]);
    if (clip.sensors != first_.sensors)
      return absl::InvalidArgumentError(
          absl::StrCat(shown, ": its sensors differ from those of ", files_->shown(wanted_[0])));
    if (std::abs(clip.interval_ms - first_.interval_ms) > 0.01 * first_.interval_ms)
      return absl::InvalidArgumentError(absl::StrCat(shown, ": a step of ", clip.interval_ms,
                                                     " ms; the first file has ", first_.interval_ms,
                                                     " ms"));
    const SampleName& name = named_[at_];
    r.label = name.label;
    r.group = name.group;
    r.own_test = name.own_test;
    r.name = shown;
    r.values = std::move(clip.values);
    ++at_;
    return true;
  }

 private:
  bool is_recording(std::size_t i) const {
    const std::string ending = extension_of(files_->entries()[i].path);
    // Exports put an id behind: "idle.json.65vvqk2v.ingestion-....json".
    return ending == ".json" || ending == ".cbor" || files_->entries().size() == 1;
  }

  Status read_all_labels(std::map<std::string, Known>& known) const {
    const auto& entries = files_->entries();
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (entries[i].path.substr(folder_of(entries[i].path).size()) == kLabelFile)
        found.push_back(i);
    // The deepest first, which are the longest of those that lie in each other: the folder's own
    // file has the last word on its recordings.
    std::stable_sort(found.begin(), found.end(), [&entries](std::size_t a, std::size_t b) {
      return entries[a].path.size() > entries[b].path.size();
    });
    for (const std::size_t i : found) {
      const FileEntry& entry = entries[i];
      const std::string folder = folder_of(entry.path);
      if (entry.bytes > kMaxLabelFileBytes)
        return absl::InvalidArgumentError(absl::StrCat(files_->shown(i), ": ", entry.bytes,
                                                       " bytes; at most ", kMaxLabelFileBytes,
                                                       " are accepted"));
      std::string text;
      ODT_ASSIGN(text, files_->read(i));
      ODT_TRY(read_labels(text, folder, files_->shown(i), known));
    }
    return absl::OkStatus();
  }

  Status settle(std::size_t i, const Known* known, SampleName& name) const {
    if (known != nullptr && known->testing) name.own_test = true;
    if (names_.has_pattern()) return absl::OkStatus();
    const std::string& path = files_->entries()[i].path;
    const std::string file = path.substr(path.rfind('/') + 1);
    if (known != nullptr)
      name.label = printable(known->label, 64);
    else
      name.label = printable(file.substr(0, file.find('.')), 64);
    if (!name.label.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(files_->shown(i),
                     ": no single label (unlabelled and multi-label recordings are not "
                     "supported); label it, or name it LABEL.ANYTHING.json without an entry "
                     "in info.labels"));
  }

  Result<EdgeImpulseClip> read(std::size_t n) const {
    const std::size_t i = wanted_[n];
    std::string bytes;
    ODT_ASSIGN(bytes, files_->read(i));
    const bool cbor = extension_of(files_->entries()[i].path) == ".cbor";
    return read_edge_impulse(bytes, cbor, files_->shown(i));
  }

  std::unique_ptr<FileSet> files_;
  SampleNames names_;
  std::vector<std::size_t> wanted_;  // of the files' entries
  std::vector<SampleName> named_;
  EdgeImpulseClip first_;  // without its values
  std::size_t at_ = 0;
};

}  // namespace

Result<std::unique_ptr<RecordingSource>> open_edge_impulse(std::unique_ptr<FileSet> files,
                                                           const NameOptions& options) {
  auto names = SampleNames::create(options, *files);
  ODT_TRY(names.status());
  auto source = std::make_unique<EdgeImpulseRecordings>(std::move(files), *std::move(names));
  ODT_TRY(source->open());
  return std::unique_ptr<RecordingSource>(std::move(source));
}

}  // namespace odt::data
