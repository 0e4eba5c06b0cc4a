#include "base/output_path.h"

#include <filesystem>

namespace odt {

Result<std::string> output_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ec;
  const bool link = fs::is_symlink(path, ec);
  const fs::path target = link ? fs::canonical(path, ec) : fs::path(path);
  if (link && ec)
    return absl::InvalidArgumentError(path + ": a link to nowhere; give the file itself");
  if (fs::exists(target, ec) && !fs::is_regular_file(target, ec))
    return absl::InvalidArgumentError(path + ": not a regular file; give the name of one");
  return target.string();
}

}  // namespace odt
