#include "lab/power.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <set>

namespace odt::lab {
namespace {

bool has_part(const PowerProfile& profile, const char* part) {
  return std::any_of(profile.argv.begin(), profile.argv.end(), [part](const std::string& argument) {
    return argument.find(part) != std::string::npos;
  });
}

bool only(const std::string& text, const char* allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string::npos;
}

}  // namespace

Result<std::vector<std::string>> uhubctl_command(const std::string& port) {
  const auto colon = port.find(':');
  if (colon == std::string::npos || !only(port.substr(0, colon), "0123456789-.") ||
      !only(port.substr(colon + 1), "0123456789") || port.front() == '-')
    return absl::InvalidArgumentError(
        "'" + port + "' is not LOCATION:PORT, as \"1-1.4:2\" (uhubctl shows them)");
  return std::vector<std::string>{
      "/usr/sbin/uhubctl",   "-a", "cycle", "-l", port.substr(0, colon), "-p",
      port.substr(colon + 1)};
}

Status check_profiles(const std::vector<PowerProfile>& profiles) {
  std::set<std::string> names;
  for (const auto& p : profiles) {
    if (p.name.empty()) return absl::InvalidArgumentError("a [[power]] without name");
    const std::string which = "[[power]] '" + p.name + "'";
    if (!names.insert(p.name).second)
      return absl::InvalidArgumentError(which + " is there twice; names are unique");
    if (p.argv.empty())
      return absl::InvalidArgumentError(which + " has neither command nor uhubctl");
    if (p.argv.front().empty() || p.argv.front().front() != '/')
      return absl::InvalidArgumentError(which + ": the command's program is '" + p.argv.front() +
                                        "'; an absolute path is wanted");
    if (p.argv.front().find('{') != std::string::npos)
      return absl::InvalidArgumentError(which +
                                        ": the program itself must not depend on the board");
  }
  return absl::OkStatus();
}

const PowerProfile* profile_of(const std::vector<PowerProfile>& profiles,
                               const model::Board& board) {
  const PowerProfile* every = nullptr;
  const std::string uid = board.uid.hex();
  for (const auto& p : profiles) {
    if (board.place.empty() && has_part(p, "{place}")) continue;
    if (p.boards.empty() && every == nullptr) every = &p;
    for (const auto& which : p.boards)
      if (which == uid || which == board.name || (!which.empty() && which == board.place))
        return &p;
  }
  return every;
}

std::vector<std::string> command_of(const PowerProfile& profile, const model::Board& board) {
  std::vector<std::string> out;
  for (const auto& argument : profile.argv)
    out.push_back(absl::StrReplaceAll(
        argument, {{"{uid}", board.uid.hex()}, {"{name}", board.name}, {"{place}", board.place}}));
  return out;
}

}  // namespace odt::lab
