#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "data/edge_impulse.h"
#include "data/named_files.h"
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
  explicit EdgeImpulseRecordings(NamedFiles files) : files_(std::move(files)) {}

  Status open() {
    std::map<std::string, Known> known;
    ODT_TRY(read_all_labels(known));
    bool training = false;
    // Exports put an id behind: "idle.json.65vvqk2v.ingestion-....json".
    const Status found = files_.find(
        "Edge Impulse files (.json or .cbor)", [&](std::size_t entry, SampleName& name) -> Status {
          const auto it = known.find(files_.files().entries()[entry].path);
          ODT_TRY(settle(entry, it == known.end() ? nullptr : &it->second, name));
          training = training || !name.own_test;
          return absl::OkStatus();
        });
    ODT_TRY(found);
    // Test recordings alone are just recordings.
    if (!training)
      for (auto& name : files_.names()) name.own_test = false;
    ODT_ASSIGN(first_, read(0));
    first_.values = {};
    return absl::OkStatus();
  }

  std::uint32_t channels() const override {
    return static_cast<std::uint32_t>(first_.sensors.size());
  }
  double sample_rate() const override { return 1000 / first_.interval_ms; }
  Status rewind() override {
    files_.rewind();
    return absl::OkStatus();
  }
  double progress() const override { return files_.progress(); }
  std::string describe() const override {
    return absl::StrCat("edge-impulse ", files_.files().name(), ", ", files_.size(), " files, ",
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
    if (files_.at_end()) return false;
    EdgeImpulseClip clip;
    ODT_ASSIGN(clip, read(files_.at()));
    const std::string shown = files_.shown(files_.at());
    if (clip.sensors != first_.sensors)
      return absl::InvalidArgumentError(
          absl::StrCat(shown, ": its sensors differ from those of ", files_.shown(0)));
    if (std::abs(clip.interval_ms - first_.interval_ms) > 0.01 * first_.interval_ms)
      return absl::InvalidArgumentError(absl::StrCat(shown, ": a step of ", clip.interval_ms,
                                                     " ms; the first file has ", first_.interval_ms,
                                                     " ms"));
    files_.pass(r);
    r.values = std::move(clip.values);
    return true;
  }

 private:
  Status read_all_labels(std::map<std::string, Known>& known) const {
    const FileSet& files = files_.files();
    const auto& entries = files.entries();
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
        return absl::InvalidArgumentError(absl::StrCat(files.shown(i), ": ", entry.bytes,
                                                       " bytes; at most ", kMaxLabelFileBytes,
                                                       " are accepted"));
      std::string text;
      ODT_ASSIGN(text, files.read(i));
      ODT_TRY(read_labels(text, folder, files.shown(i), known));
    }
    return absl::OkStatus();
  }

  Status settle(std::size_t i, const Known* known, SampleName& name) const {
    if (known != nullptr && known->testing) name.own_test = true;
    if (files_.has_pattern()) return absl::OkStatus();
    const std::string& path = files_.files().entries()[i].path;
    const std::string file = path.substr(path.rfind('/') + 1);
    if (known != nullptr)
      name.label = printable(known->label, 64);
    else
      name.label = printable(file.substr(0, file.find('.')), 64);
    if (!name.label.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(files_.files().shown(i),
                     ": no single label (unlabelled and multi-label recordings are not "
                     "supported); label it, or name it LABEL.ANYTHING.json without an entry "
                     "in info.labels"));
  }

  Result<EdgeImpulseClip> read(std::size_t n) const {
    std::string bytes;
    ODT_ASSIGN(bytes, files_.read(n));
    return read_edge_impulse(bytes, extension_of(files_.path(n)) == ".cbor", files_.shown(n));
  }

  NamedFiles files_;
  EdgeImpulseClip first_;  // without its values
};

}  // namespace

Result<std::unique_ptr<RecordingSource>> open_edge_impulse(std::unique_ptr<FileSet> files,
                                                           const NameOptions& options) {
  auto named = NamedFiles::create(std::move(files), options, {".json", ".cbor"});
  ODT_TRY(named.status());
  auto source = std::make_unique<EdgeImpulseRecordings>(*std::move(named));
  ODT_TRY(source->open());
  return std::unique_ptr<RecordingSource>(std::move(source));
}

}  // namespace odt::data
