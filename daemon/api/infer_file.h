#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace odt::api {

constexpr std::size_t kMaxInferFile = 1u << 20, kMaxInferPixels = 1u << 20;

// Source values of one sample out of a PNG or WAV file, as an import of it would make them, for a
// model of this input shape ([N] or [C,H,W]). A picture takes the model's size (of [N]: N pixels, a
// square where it has others); sound is taken as it is, its first N samples: windows and spectra
// are those of data sets. Errors: INVALID_ARGUMENT (neither file, damaged, a shape it cannot have).
Result<std::vector<float>> values_of_file(const std::string& file,
                                          const std::vector<std::uint32_t>& shape);

}  // namespace odt::api
