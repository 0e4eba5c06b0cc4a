#include <absl/strings/str_cat.h>

#include "data/named_files.h"
#include "data/png_reader.h"
#include "data/source_parts.h"

namespace odt::data {
namespace {

Status bad(const std::string& what) { return absl::InvalidArgumentError(what); }

class PngSource : public Source {
 public:
  PngSource(NamedFiles files, const PngOptions& options)
      : files_(std::move(files)), o_(options), steps_{options.transform, options.resize} {}

  // Looks at the header of every file: shape and colours are known from the start.
  Status open() {
    bool colour = false;
    std::string first;
    const Status found =
        files_.find("PNG files", [&](std::size_t entry, SampleName& name) -> Status {
          const FileSet& files = files_.files();
          ODT_TRY(needs_label(files, entry, name, "images", "{label}_*.png"));
          std::string bytes;
          ODT_ASSIGN(bytes, files.read(entry));
          PngHeader h;
          ODT_ASSIGN(h, read_png_header(bytes, files.shown(entry)));
          headers_.push_back(h);
          if (headers_.size() == 1) first = files.shown(entry);
          const PngHeader& like = headers_[0];
          if (o_.resize.empty() && (h.height != like.height || h.width != like.width))
            return bad(absl::StrCat(files.shown(entry), ": ", h.width, " x ", h.height, " pixels; ",
                                    first, " has ", like.width, " x ", like.height,
                                    " (resize makes them alike)"));
          colour = colour || h.colour;
          return absl::OkStatus();
        });
    ODT_TRY(found);
    if (o_.channels != 0 && o_.channels != 1 && o_.channels != 3)
      return bad(absl::StrCat(o_.channels, " channels; expected 1 (gray) or 3 (RGB)"));
    const std::uint32_t channels = o_.channels != 0 ? o_.channels : colour ? 3 : 1;
    shape_ = shape_after(steps_, {channels, headers_[0].height, headers_[0].width});
    return absl::OkStatus();
  }

  const std::vector<std::uint32_t>& shape() const override { return shape_; }
  Status rewind() override {
    files_.rewind();
    return absl::OkStatus();
  }
  double progress() const override { return files_.progress(); }
  std::string describe() const override {
    return absl::StrCat("png ", files_.files().name(), ", ", files_.size(), " files", o_.steps);
  }
  SourceInfo info() const override {
    SourceInfo info;
    info.kind = "image";
    return info;
  }

  Result<bool> next(Row& row) override {
    if (files_.at_end()) return false;
    const std::size_t n = files_.at();
    const PngHeader& h = headers_[n];
    row.targets.clear();
    row.index = static_cast<std::uint32_t>(n);
    std::string bytes;
    ODT_ASSIGN(bytes, files_.read(n));
    std::vector<std::uint8_t> pixels;
    ODT_ASSIGN(pixels, read_png(bytes, shape_[0], files_.shown(n)));
    // The file may have changed since it was looked at.
    if (pixels.size() != std::size_t{h.height} * h.width * shape_[0])
      return bad(absl::StrCat(files_.shown(n), ": the file has changed during the import"));
    std::vector<std::uint8_t> image;
    append_image(steps_, {shape_[0], h.height, h.width}, pixels.data(), image);
    row.values.assign(image.begin(), image.end());
    files_.pass(row);
    return true;
  }

 private:
  NamedFiles files_;
  PngOptions o_;
  ImageSteps steps_;
  std::vector<std::uint32_t> shape_;
  std::vector<PngHeader> headers_;
};

}  // namespace

Result<std::unique_ptr<Source>> open_png(std::unique_ptr<FileSet> files,
                                         const PngOptions& options) {
  auto named = NamedFiles::create(std::move(files), options.names, {".png"});
  ODT_TRY(named.status());
  auto source = std::make_unique<PngSource>(*std::move(named), options);
  ODT_TRY(source->open());
  return std::unique_ptr<Source>(std::move(source));
}

}  // namespace odt::data
