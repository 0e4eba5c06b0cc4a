#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace odt::cli {

// A tar archive (ustar) of plain files, {path, name inside}, in that order; no times or owners, so
// that the same files give the same bytes. Errors: INVALID_ARGUMENT (a name above 255 bytes, a file
// of 8 GiB), those of reading and writing, naming the file.
Status write_tar(const std::vector<std::pair<std::string, std::string>>& files,
                 const std::string& out);

}  // namespace odt::cli
