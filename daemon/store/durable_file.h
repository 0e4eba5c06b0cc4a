#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace odt::store {

// Writes `path` whole or not at all: temporary file beside it, fsync, rename, fsync of the folder.
// Errors: RESOURCE_EXHAUSTED (disk full), FAILED_PRECONDITION otherwise.
Status write_durably(const std::string& path, std::string_view content);
// Moves a file durably within a file system; copies across.
Status move_durably(const std::string& from, const std::string& to);
// Makes all files and folders below `folder`, and itself, durable. Errors: as above.
Status sync_tree(const std::string& folder);
// NOT_FOUND, DATA_LOSS.
Result<std::string> read_file(const std::string& path);

}  // namespace odt::store
