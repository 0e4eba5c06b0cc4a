#include "data/npy_source.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "data/dataset.h"
#include "data/npy_array.h"

namespace odt::data {
namespace {

constexpr std::uint64_t kMaxMember = std::uint64_t{1} << 32;

enum class Labels : std::uint8_t { kNone, kClasses, kTargets };

std::string dims_text(const NpyArray& a) {
  return absl::StrCat("[", absl::StrJoin(a.dims(), ","), "]");
}

Status fault(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", what));
}

// Whole numbers in one dimension are classes; everything else of numbers is a target.
Result<Labels> kind_of(NpyArray& y, bool targets) {
  if (y.dims().size() > 2)
    return fault(y.name(), absl::StrCat("labels are [N] or [N,outputs]; got ", dims_text(y)));
  if (y.is_text()) {
    if (y.dims().size() == 1 && !targets) return Labels::kClasses;
    return fault(y.name(), absl::StrCat("text labels are [N], and no targets; got ", dims_text(y)));
  }
  if (y.row_len() > kMaxOutputs)
    return fault(y.name(), absl::StrCat(y.row_len(), " targets per row; at most ", kMaxOutputs));
  if (targets || (y.dims().size() == 2 && y.row_len() > 1)) return Labels::kTargets;
  std::vector<float> v;
  for (std::uint64_t row = 0; y.is_float() && row < y.rows(); ++row) {
    ODT_TRY(y.read(row, v));
    if (v[0] != std::floor(v[0])) return Labels::kTargets;
  }
  return Labels::kClasses;
}

class NpySource : public Source {
 public:
  NpySource(NpyArray x, std::optional<NpyArray> y) : x_(std::move(x)), y_(std::move(y)) {}

  Status start(bool targets);
  const std::vector<std::uint32_t>& shape() const override { return shape_; }
  Result<bool> next(Row& row) override;
  Status rewind() override {
    row_ = 0;
    return absl::OkStatus();
  }
  double progress() const override {
    return static_cast<double>(row_) / static_cast<double>(x_.rows());
  }
  std::string describe() const override {
    return absl::StrCat("numpy ", x_.name(), channels_last_ ? " (channels last)" : "");
  }
  SourceInfo info() const override {
    SourceInfo info;
    info.kind = shape_.size() == 3 ? "image" : "table";
    return info;
  }

 private:
  NpyArray x_;
  std::optional<NpyArray> y_;
  Labels labels_ = Labels::kNone;
  bool channels_last_ = false;
  std::vector<std::uint32_t> shape_;
  std::vector<float> raw_;
  std::uint32_t row_ = 0;
};

Status NpySource::start(bool targets) {
  if (x_.is_text()) return fault(x_.name(), "text; numbers are expected as values");
  const auto& dims = x_.dims();
  if (dims.empty() || dims.size() > 4 || x_.rows() == 0 || x_.rows() > 0xFFFFFFFF)
    return fault(x_.name(),
                 absl::StrCat("[N], [N,V], [N,H,W] or [N,C,H,W] is expected; got ", dims_text(x_)));
  std::uint64_t len = 1;
  for (std::size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] == 0 || dims[i] > kMaxSampleValues || (len *= dims[i]) > kMaxSampleValues)
      return fault(x_.name(), absl::StrCat("1 to ", kMaxSampleValues,
                                           " values per row are possible; got ", dims_text(x_)));
    shape_.push_back(static_cast<std::uint32_t>(dims[i]));
  }
  if (shape_.empty()) shape_ = {1};
  if (shape_.size() == 2) shape_.insert(shape_.begin(), 1);
  const auto channels = [](std::uint32_t n) { return n == 1 || n == 3 || n == 4; };
  if (dims.size() == 4 && channels(shape_[2]) && !channels(shape_[0])) {
    channels_last_ = true;
    shape_ = {shape_[2], shape_[0], shape_[1]};
  }
  if (!y_) return absl::OkStatus();
  if (y_->rows() != x_.rows())
    return fault(y_->name(),
                 absl::StrCat(y_->rows(), " labels for ", x_.rows(), " rows of ", x_.name()));
  ODT_ASSIGN(labels_, kind_of(*y_, targets));
  return absl::OkStatus();
}

Result<bool> NpySource::next(Row& row) {
  if (row_ == x_.rows()) return false;
  row.label.clear();
  row.group.clear();
  row.targets.clear();
  row.own_test = false;
  row.name = absl::StrCat(x_.name(), ": row ", row_);
  ODT_TRY(x_.read(row_, channels_last_ ? raw_ : row.values));
  if (channels_last_) {
    row.values.resize(raw_.size());
    const std::size_t c = shape_[0], pixels = raw_.size() / c;
    for (std::size_t p = 0; p < pixels; ++p)
      for (std::size_t i = 0; i < c; ++i) row.values[i * pixels + p] = raw_[p * c + i];
  }
  if (labels_ == Labels::kTargets) ODT_TRY(y_->read(row_, row.targets));
  if (labels_ == Labels::kClasses) {
    ODT_ASSIGN(row.label, y_->text(row_));
    if (row.label.empty()) return fault(y_->name(), absl::StrCat("row ", row_, ": no label"));
  }
  row.index = row_++;
  return true;
}

Result<SourcePtr> make(NpyArray x, std::optional<NpyArray> y, bool targets) {
  auto source = std::make_unique<NpySource>(std::move(x), std::move(y));
  ODT_TRY(source->start(targets));
  return source;
}

// The arrays of an .npz by name, opened when they are asked for.
class Archive {
 public:
  Status open(const std::string& path, const std::string& name) {
    name_ = name;
    ODT_ASSIGN(file_, FileRange::open(path, name));
    ODT_ASSIGN(members_, zip_members(file_, name));
    std::erase_if(members_, [](const auto& m) { return !m.name.ends_with(".npy"); });
    for (auto& m : members_) m.name.resize(m.name.size() - 4);
    return members_.empty() ? fault(name, "no array in this archive") : absl::OkStatus();
  }
  // The array of that name, letters of any case; null: none.
  const ZipMember* find(const std::vector<std::string>& names) const {
    for (const auto& name : names)
      for (const auto& m : members_)
        if (absl::AsciiStrToLower(m.name) == name) return &m;
    return nullptr;
  }
  const ZipMember* exact(const std::string& name) const {
    for (const auto& m : members_)
      if (m.name == name) return &m;
    return nullptr;
  }
  Result<NpyArray> array(const ZipMember& m) const {
    const std::string name = absl::StrCat(name_, "[", shown(m.name), "]");
    FileRange content;
    ODT_ASSIGN(content, zip_open(file_, m, kMaxMember, name));
    return NpyArray::open(std::move(content), name);
  }
  Result<std::optional<NpyArray>> maybe(const ZipMember* m) const {
    if (m == nullptr) return std::optional<NpyArray>();
    NpyArray a;
    ODT_ASSIGN(a, array(*m));
    return std::optional<NpyArray>(std::move(a));
  }
  std::string list() const {
    constexpr std::size_t kShown = 20;
    std::string names;
    for (std::size_t i = 0; i < members_.size() && i < kShown; ++i)
      absl::StrAppend(&names, i == 0 ? "" : ", ", shown(members_[i].name));
    if (members_.size() > kShown)
      absl::StrAppend(&names, " and ", members_.size() - kShown, " more");
    return names;
  }
  const std::vector<ZipMember>& members() const { return members_; }
  const std::string& name() const { return name_; }

 private:
  static std::string shown(const std::string& text) {
    std::string out;
    for (char c : text.substr(0, 64)) out += absl::ascii_isprint(c) ? c : '?';
    return out;
  }

  std::string name_;
  FileRange file_;
  std::vector<ZipMember> members_;
};

struct Keys {
  const ZipMember *x = nullptr, *y = nullptr, *test_x = nullptr, *test_y = nullptr;
};

std::vector<std::string> with_part(const std::vector<std::string>& names, const char* part) {
  std::vector<std::string> out;
  for (const auto& name : names) {
    out.push_back(absl::StrCat(name, "_", part));
    out.push_back(absl::StrCat(part, "_", name));
  }
  return out;
}

Result<Keys> find_keys(const Archive& archive, const NpyOptions& o) {
  const std::vector<std::string> xs = {"x", "data", "images", "features", "inputs", "samples"};
  const std::vector<std::string> ys = {"y", "labels", "label", "targets", "target", "classes"};
  Keys keys;
  const auto named = [&](const std::string& key, const ZipMember*& to) {
    to = archive.exact(key);
    return to != nullptr ? absl::OkStatus()
                         : fault(archive.name(),
                                 absl::StrCat("no array '", key, "'; it has ", archive.list()));
  };
  if (!o.x_key.empty()) {
    ODT_TRY(named(o.x_key, keys.x));
    if (!o.y_key.empty()) ODT_TRY(named(o.y_key, keys.y));
    return keys;
  }
  keys.x = archive.find(with_part(xs, "train"));
  if (keys.x != nullptr) {
    keys.y = archive.find(with_part(ys, "train"));
    keys.test_x = archive.find(with_part(xs, "test"));
    if (keys.test_x != nullptr) keys.test_y = archive.find(with_part(ys, "test"));
  } else {
    keys.x = archive.find(xs);
    keys.y = archive.find(ys);
  }
  if (!o.y_key.empty()) ODT_TRY(named(o.y_key, keys.y));
  const auto& members = archive.members();
  if (keys.x == nullptr && members.size() == 1) keys.x = &members[0];
  // Two arrays: the one named like labels is y; where neither is, the smaller one.
  if (keys.x == nullptr && members.size() == 2) {
    if (keys.y == nullptr) keys.y = members[0].size < members[1].size ? &members[0] : &members[1];
    keys.x = keys.y == &members[0] ? &members[1] : &members[0];
  }
  if (keys.x == nullptr)
    return fault(archive.name(),
                 absl::StrCat("it has the arrays ", archive.list(),
                              "; say which are values and labels (--x-key, --y-key)"));
  if (keys.test_x != nullptr && (keys.test_y == nullptr) != (keys.y == nullptr))
    return fault(archive.name(), "train and test arrays: both have labels, or neither");
  return keys;
}

Result<SourcePtr> open_npz(const NpyOptions& o) {
  Archive archive;
  ODT_TRY(archive.open(o.path, o.name));
  Keys keys;
  ODT_ASSIGN(keys, find_keys(archive, o));
  const auto open_pair = [&](const ZipMember* x, const ZipMember* y) -> Result<SourcePtr> {
    NpyArray values;
    ODT_ASSIGN(values, archive.array(*x));
    std::optional<NpyArray> labels;
    ODT_ASSIGN(labels, archive.maybe(y));
    return make(std::move(values), std::move(labels), o.targets);
  };
  SourcePtr pool;
  ODT_ASSIGN(pool, open_pair(keys.x, keys.y));
  if (keys.test_x == nullptr) return pool;
  SourcePtr test;
  ODT_ASSIGN(test, open_pair(keys.test_x, keys.test_y));
  return with_test(std::move(pool), std::move(test));
}

}  // namespace

Result<SourcePtr> open_npy(const NpyOptions& o) {
  FileRange file;
  ODT_ASSIGN(file, FileRange::open(o.path, o.name));
  char mark[2] = {};
  if (file.size() >= 2) ODT_TRY(file.read(0, mark, 2));
  if (mark[0] == 'P' && mark[1] == 'K') return open_npz(o);
  NpyArray x;
  ODT_ASSIGN(x, NpyArray::open(std::move(file), o.name));
  std::optional<NpyArray> y;
  if (!o.labels.empty()) {
    FileRange labels;
    ODT_ASSIGN(labels, FileRange::open(o.labels, o.labels_name));
    ODT_ASSIGN(y, NpyArray::open(std::move(labels), o.labels_name));
  }
  return make(std::move(x), std::move(y), o.targets);
}

}  // namespace odt::data
