#include "api/infer_file.h"

#include <absl/strings/str_cat.h>

#include "api/errors.h"
#include "data/image_ops.h"
#include "data/png_reader.h"
#include "data/wav_reader.h"

namespace odt::api {
namespace {

struct Picture {
  std::uint32_t channels = 1, height = 0, width = 0;
};

Result<Picture> picture_of(const std::vector<std::uint32_t>& shape, const data::PngHeader& png) {
  if (shape.size() == 3 && (shape[0] == 1 || shape[0] == 3))
    return Picture{shape[0], shape[1], shape[2]};
  if (shape.size() == 2) return Picture{1, shape[0], shape[1]};
  const std::uint32_t n = shape.size() == 1 ? shape[0] : 0;
  if (n != 0 && std::uint64_t{png.height} * png.width == n)
    return Picture{1, png.height, png.width};
  std::uint32_t side = 0;
  while (std::uint64_t{side + 1} * (side + 1) <= n) ++side;
  if (n != 0 && side * side == n) return Picture{1, side, side};
  return bad_field("file", absl::StrCat("a picture of ", png.height, "x", png.width,
                                        " is no input of a model that takes ", n, " values"));
}

Result<std::vector<float>> from_png(const std::string& file,
                                    const std::vector<std::uint32_t>& shape) {
  ODT_ASSIGN(const data::PngHeader png, data::read_png_header(file, "file"));
  if (std::uint64_t{png.height} * png.width > kMaxInferPixels)
    return bad_field("file", absl::StrCat("a picture of ", png.height, "x", png.width, "; limit ",
                                          kMaxInferPixels, " pixels"));
  ODT_ASSIGN(const Picture want, picture_of(shape, png));
  ODT_ASSIGN(const auto pixels, data::read_png(file, want.channels, "file"));
  const std::size_t plane = std::size_t{png.height} * png.width;
  std::vector<float> out;
  for (std::uint32_t c = 0; c < want.channels; ++c) {
    const auto sized = data::resize_area(pixels.data() + c * plane, png.height, png.width,
                                         want.height, want.width);
    out.insert(out.end(), sized.begin(), sized.end());
  }
  return out;
}

Result<std::vector<float>> from_wav(const std::string& file,
                                    const std::vector<std::uint32_t>& shape) {
  ODT_ASSIGN(data::WavClip clip, data::read_wav(file, "file", 0));
  std::size_t n = 1;
  for (const auto side : shape) n *= side;
  if (clip.samples.size() < n)
    return bad_field("file",
                     absl::StrCat(clip.samples.size(), " samples of sound; the model takes ", n));
  clip.samples.resize(n);
  return std::move(clip.samples);
}

}  // namespace

Result<std::vector<float>> values_of_file(const std::string& file,
                                          const std::vector<std::uint32_t>& shape) {
  if (file.size() > kMaxInferFile)
    return bad_field("file", absl::StrCat(file.size(), " bytes; limit ", kMaxInferFile));
  if (file.starts_with("\x89PNG")) return from_png(file, shape);
  if (file.starts_with("RIFF") || file.starts_with("RF64")) return from_wav(file, shape);
  return bad_field("file", "is neither a PNG nor a WAV file");
}

}  // namespace odt::api
