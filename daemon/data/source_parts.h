#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/image_ops.h"
#include "data/source.h"

// Sources made of sources.
namespace odt::data {

using SourcePtr = std::unique_ptr<Source>;

// Files below a folder whose names end in one of `endings` (or, without endings, all), relative and
// sorted; links and names that start with '.' are left out. Errors: NOT_FOUND, INVALID_ARGUMENT
// (none, more than 100,000).
Result<std::vector<std::string>> files_below(const std::string& folder,
                                             const std::vector<std::string>& endings);

// The rows of several files, one after the other; one is open at a time. All must have the first
// one's shape. `open` opens file n. Errors: those of the files.
using OpenNth = std::function<Result<SourcePtr>(std::size_t n)>;
Result<SourcePtr> chain_sources(std::string describe, std::size_t files, OpenNth open);

// `test` yields the own test set of `pool`. Errors: INVALID_ARGUMENT (another shape).
Result<SourcePtr> with_test(SourcePtr pool, SourcePtr test);

// What happens to each image: sensor shift, then resize.
struct ImageSteps {
  Transform transform;
  std::vector<std::uint32_t> resize;  // [h, w] or empty
  bool any() const { return transform.kind != Transform::Kind::kNone || !resize.empty(); }
};
// Errors: INVALID_ARGUMENT (transform, size).
Result<ImageSteps> parse_image_steps(const std::string& transform,
                                     const std::vector<std::uint32_t>& resize);
// [C,H,W] of what becomes of a [C,H,W].
std::vector<std::uint32_t> shape_after(const ImageSteps& steps, std::vector<std::uint32_t> shape);
// Appends the [C,H,W] image behind the steps.
void append_image(const ImageSteps& steps, const std::vector<std::uint32_t>& shape,
                  const std::uint8_t* sample, std::vector<std::uint8_t>& out);
// ", inversion, resize 14x14", for Dataset::source.
std::string steps_text(const std::string& transform, const std::vector<std::uint32_t>& resize);
// A source of u8 images behind the steps. Errors: INVALID_ARGUMENT (shape; values on next()).
Result<SourcePtr> with_steps(SourcePtr images, ImageSteps steps, std::string text);

}  // namespace odt::data
