#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace odt::flash {

// How a kind of board is flashed: a file NAME.toml of the gateway's administrator. Keys:
// deploy/boards/README.md.
struct Profile {
  std::string name, file;
  std::vector<std::string> board_types;  // as boards and images call themselves
  std::string core;
  std::uint64_t flash_address = 0, flash_bytes = 0, ram_address = 0, ram_bytes = 0;
  std::string uart;
  std::uint32_t baud = 0;
  std::string power;                 // how its power is switched, for people
  std::string method;                // "openocd", ...
  std::vector<std::string> formats;  // of images that the method takes, best first
  std::vector<std::string> argv;     // the program, absolute, and its words with {placeholders}
  std::uint32_t timeout_s = 120;
  std::string error;  // not empty: not usable, and why
};

// Placeholders of argv and what may stand for them.
using Values = std::map<std::string, std::string>;
inline constexpr const char* kPlaceholders[] = {"image", "uid", "serial", "port", "address"};

// Profiles of the folders by name; a later folder's goes before an earlier one's. A file that is
// not valid, or that others than root (and, with `own`, this process's user) may write, is there
// with its error.
std::vector<Profile> load_profiles(const std::vector<std::string>& folders, bool own);
// The one named, or of a board type. Errors: NOT_FOUND PROFILE_UNKNOWN, FAILED_PRECONDITION
// PROFILE_INVALID.
Result<Profile> find_profile(const std::vector<Profile>& profiles, const std::string& name,
                             const std::string& board_type);
// argv with the values in place. Errors: INVALID_ARGUMENT (a value that is missing, or has bytes
// beyond letters, digits and ._:/+@-, or begins with '-').
Result<std::vector<std::string>> filled_argv(const Profile& profile, const Values& values);

}  // namespace odt::flash
