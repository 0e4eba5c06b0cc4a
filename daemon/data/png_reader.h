#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/image_ops.h"
#include "data/sample_names.h"
#include "data/source.h"

namespace odt::data {

constexpr std::uint32_t kMaxPngSide = 8192;
constexpr std::uint64_t kMaxPngPixels = std::uint64_t{1} << 24;

struct PngHeader {
  std::uint32_t height = 0, width = 0;
  bool colour = false;  // RGB or palette
};
// From the first 33 bytes alone. Errors: INVALID_ARGUMENT (no PNG, limits).
Result<PngHeader> read_png_header(std::string_view bytes, const std::string& name);

// u8 [channels][height][width]; channels 1 or 3. 16-bit values become round(v / 257); what is
// transparent lies on black: (v * alpha + 127) / 255; gray of colours: (19595 r + 38470 g + 7471 b
// + 32768) >> 16. Gamma and colour profiles are not looked at. Errors: INVALID_ARGUMENT (damaged).
Result<std::vector<std::uint8_t>> read_png(std::string_view bytes, std::uint32_t channels,
                                           const std::string& name);

struct PngOptions {
  NameOptions names;                  // class: by default the folder that holds the file
  std::uint32_t channels = 0;         // 1 gray, 3 RGB; 0: RGB where any file has colours
  Transform transform;                // of each channel, before the size
  std::vector<std::uint32_t> resize;  // [h, w]; empty: as they are, all alike
  std::string steps;                  // the two for the dataset's source line: steps_text()
};
// Rows of shape [channels, h, w], one a file (.png). Errors: INVALID_ARGUMENT (sizes that differ
// without resize, no class, names).
Result<std::unique_ptr<Source>> open_png(std::unique_ptr<FileSet> files, const PngOptions& options);

}  // namespace odt::data
