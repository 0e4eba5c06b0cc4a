#include "base/device_holders.h"

#include <filesystem>
#include <fstream>

namespace odt {
namespace {

namespace fs = std::filesystem;

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

std::string program_of(const fs::path& process) {
  std::ifstream in(process / "comm");
  std::string name;
  std::getline(in, name);
  for (char& c : name)
    if (c < 0x20 || c > 0x7e) c = '?';
  return name.empty() ? "?" : name;
}

}  // namespace

std::map<std::string, std::string> device_holders(const std::string& proc) {
  std::map<std::string, std::string> out;
  std::error_code ec;
  for (fs::directory_iterator it(proc, ec), end; !ec && it != end; it.increment(ec)) {
    const fs::path process = it->path();
    if (!is_number(process.filename().string())) continue;
    std::error_code fd_error;
    for (fs::directory_iterator fd(process / "fd", fd_error), last; !fd_error && fd != last;
         fd.increment(fd_error)) {
      std::error_code link_error;
      const std::string target = fs::read_symlink(fd->path(), link_error).string();
      if (!link_error && (target.starts_with("/dev/tty") || target.starts_with("/dev/pts/")))
        out[target] = program_of(process) + " (pid " + process.filename().string() + ")";
    }
  }
  return out;
}

}  // namespace odt
