#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// What a command writes: checked before its work begins, written together.
namespace odt::data {

// A file to write, and the option that names it. An empty path is none.
struct OutputFile {
  std::string option, path;
  std::string_view content = {};
};

// Every output can be created: its folder is there, it is no device, folder or pipe, no input, and
// no other output, whatever links lead to it. Errors: INVALID_ARGUMENT, NOT_FOUND (the folder),
// naming option and path.
Status check_outputs(const std::vector<std::string>& inputs,
                     const std::vector<OutputFile>& outputs);

// As write_file, all or none where the disk is full: what was there before is replaced only when
// all new content is on the disk.
Status write_files(const std::vector<OutputFile>& outputs);

}  // namespace odt::data
