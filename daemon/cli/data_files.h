#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace odt::cli {

class Context;

// What a user gives an import: files or one folder.
struct DataFiles {
  std::string file;    // the one file; empty: an archive of what follows
  std::string folder;  // as given; empty: several files
  std::vector<std::pair<std::string, std::string>> members;  // path, name inside
};

// Ordinary files, not hidden, of a folder and those below it, sorted; or the files as given.
// Errors: NOT_FOUND, INVALID_ARGUMENT (an empty folder, two files of one name, files and folders
// mixed).
Result<DataFiles> gather_files(const std::vector<std::string>& paths);

// By the names: "csv", "npy", "npz", "wav", "edge-impulse", "png", else "idx". Errors:
// INVALID_ARGUMENT (a .zip file: its name does not tell).
Result<std::string> format_by_name(const DataFiles& files);

// Sends the file, or the archive; gives the blob.
Result<std::string> upload_data(Context& context, const DataFiles& files);

}  // namespace odt::cli
