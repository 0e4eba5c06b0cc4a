#pragma once

#include <string>

#include "base/result.h"

namespace odt::cli {

class Context;

// Sends a file in chunks and gives back its blob (raw SHA-256). What odtd has already is not sent
// again. Errors, each naming the file: NOT_FOUND (the file), those of odtd; 130 where interrupted.
Result<std::string> upload_file(Context& context, const std::string& path);

// An error in the user's words: what odtd calls a file becomes the path as it was given.
Status rename_file(const Status& status, const std::string& called, const std::string& path);
// The same; where the path is not in it after that, it is put in front.
Status name_file(const Status& status, const std::string& path, const std::string& called = {});
// How import errors call an uploaded file; role: data, labels, test_data or test_labels.
std::string imported_name(const std::string& role, const std::string& blob);

}  // namespace odt::cli
