#include <absl/strings/str_cat.h>

#include "data/png_reader.h"

namespace odt::data {
namespace {

Status bad(const std::string& what) { return absl::InvalidArgumentError(what); }

class PngSource : public Source {
 public:
  PngSource(std::unique_ptr<FileSet> files, const PngOptions& options)
      : files_(std::move(files)), o_(options) {}

  // Looks at the header of every file: shape and colours are known from the start.
  Status open() {
    auto names = SampleNames::create(o_.names, *files_);
    ODT_TRY(names.status());
    const auto& entries = files_->entries();
    PngHeader first;
    bool colour = false;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (extension_of(entries[i].path) != ".png" && entries.size() > 1) continue;
      std::optional<SampleName> name;
      ODT_ASSIGN(name, names->of(*files_, i));
      if (!name) continue;
      if (name->label.empty())
        return bad(absl::StrCat(files_->shown(i),
                                ": no class; put the images of a class into a folder of its name, "
                                "or give a pattern such as {label}_*.png"));
      std::string bytes;
      ODT_ASSIGN(bytes, files_->read(i));
      PngHeader h;
      ODT_ASSIGN(h, read_png_header(bytes, files_->shown(i)));
      if (wanted_.empty()) first = h;
      if (o_.resize.empty() && (h.height != first.height || h.width != first.width))
        return bad(absl::StrCat(files_->shown(i), ": ", h.width, " x ", h.height, " pixels; ",
                                files_->shown(wanted_[0]), " has ", first.width, " x ",
                                first.height, " (resize makes them alike)"));
      colour = colour || h.colour;
      wanted_.push_back(i);
      named_.push_back(*std::move(name));
      headers_.push_back(h);
    }
    if (wanted_.empty()) return bad(absl::StrCat(files_->name(), ": no PNG files"));
    return settle_shape(first, colour);
  }

  const std::vector<std::uint32_t>& shape() const override { return shape_; }
  Status rewind() override {
    at_ = 0;
    return absl::OkStatus();
  }
  double progress() const override {
    return static_cast<double>(at_) / static_cast<double>(wanted_.size());
  }
  std::string describe() const override {
    return absl::StrCat("png ", files_->name(), ", ", wanted_.size(), " files");
  }
  SourceInfo info() const override {
    SourceInfo info;
    info.kind = "image";
    return info;
  }

  Result<bool> next(Row& row) override {
    if (at_ == wanted_.size()) return false;
    const std::size_t i = wanted_[at_];
    row.label = named_[at_].label;
    row.group = named_[at_].group;
    row.own_test = named_[at_].own_test;
    row.targets.clear();
    row.index = static_cast<std::uint32_t>(at_);
    row.name = files_->shown(i);
    std::string bytes;
    ODT_ASSIGN(bytes, files_->read(i));
    std::vector<std::uint8_t> pixels;
    ODT_ASSIGN(pixels, read_png(bytes, shape_[0], row.name));
    // The file may have changed since it was looked at.
    std::uint32_t h = headers_[at_].height, w = headers_[at_].width;
    const std::size_t area = std::size_t{h} * w;
    if (pixels.size() != area * shape_[0])
      return bad(absl::StrCat(row.name, ": the file has changed during the import"));
    if (o_.transform.kind == Transform::Kind::kRot90) std::swap(h, w);
    row.values.clear();
    for (std::uint32_t c = 0; c < shape_[0]; ++c) {
      std::vector<std::uint8_t> plane = apply_transform(o_.transform, pixels.data() + c * area,
                                                        headers_[at_].height, headers_[at_].width);
      if (!o_.resize.empty()) plane = resize_area(plane.data(), h, w, shape_[1], shape_[2]);
      row.values.insert(row.values.end(), plane.begin(), plane.end());
    }
    ++at_;
    return true;
  }

 private:
  Status settle_shape(const PngHeader& first, bool colour) {
    if (o_.channels != 0 && o_.channels != 1 && o_.channels != 3)
      return bad(absl::StrCat(o_.channels, " channels; expected 1 (gray) or 3 (RGB)"));
    const bool turned = o_.transform.kind == Transform::Kind::kRot90;
    shape_ = {o_.channels != 0 ? o_.channels
              : colour         ? 3u
                               : 1u,
              turned ? first.width : first.height, turned ? first.height : first.width};
    if (o_.resize.empty()) return absl::OkStatus();
    if (o_.resize.size() != 2 || o_.resize[0] < 1 || o_.resize[1] < 1 || o_.resize[0] > 1024 ||
        o_.resize[1] > 1024)
      return bad("resize: expected [height,width] of 1..1024");
    shape_[1] = o_.resize[0];
    shape_[2] = o_.resize[1];
    return absl::OkStatus();
  }

  std::unique_ptr<FileSet> files_;
  PngOptions o_;
  std::vector<std::uint32_t> shape_;
  std::vector<std::size_t> wanted_;  // of the files' entries
  std::vector<SampleName> named_;
  std::vector<PngHeader> headers_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::unique_ptr<Source>> open_png(std::unique_ptr<FileSet> files,
                                         const PngOptions& options) {
  auto source = std::make_unique<PngSource>(std::move(files), options);
  ODT_TRY(source->open());
  return std::unique_ptr<Source>(std::move(source));
}

}  // namespace odt::data
