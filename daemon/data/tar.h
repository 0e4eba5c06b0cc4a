#pragma once

#include <string>

#include "base/result.h"

namespace odt::data {

// Unpacks a tar archive (ustar; long names of GNU and pax) into an empty folder: plain files and
// folders alone, names that stay inside. Everything else is refused, not skipped: absolute names,
// "..", links, devices, names that come twice. Errors: INVALID_ARGUMENT (those, damaged, more than
// 100,000 entries or max_bytes of content), RESOURCE_EXHAUSTED (disk).
Status unpack_tar(const std::string& path, const std::string& folder, std::uint64_t max_bytes,
                  const std::string& name);

// Whether the file begins like a tar archive.
bool looks_like_tar(const std::string& path);

}  // namespace odt::data
