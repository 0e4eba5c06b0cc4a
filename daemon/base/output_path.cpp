#include "base/output_path.h"

#include <filesystem>

namespace odt {

Result<std::string> output_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ec;
  const fs::path target = fs::is_symlink(path, ec) ? fs::canonical(path, ec) : fs::path(path);
  if (ec && fs::is_symlink(path))
    return absl::InvalidArgumentError(path + ": a link to nowhere; give the file itself");
  if (fs::exists(target, ec) && !fs::is_regular_file(target, ec))
    return absl::InvalidArgumentError(path + ": not a regular file; give the name of one");
  return target.string();
}

}  // namespace odt
