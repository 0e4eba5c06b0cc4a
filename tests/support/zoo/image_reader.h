// Model images (ODTM v1) back into plain descriptions, by proto/README.md's layout; for images that
// the library has accepted.
#pragma once

#include <string>

#include "image_builder.h"

namespace odt::testing {

NetSpec read_image(const std::string& image);

}  // namespace odt::testing
