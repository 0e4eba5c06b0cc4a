#pragma once

#include <string>
#include <vector>

#include "model/board.h"

// Power of boards: which command switches it. From odtd's configuration alone.
namespace odt::lab {

struct PowerProfile {
  std::string name;
  std::vector<std::string> boards;  // places, names or uids in hex; empty: every board
  // Program (an absolute path) and its arguments; "{uid}", "{name}" and "{place}" inside of them
  // are those of the board. No shell.
  std::vector<std::string> argv;
  std::uint32_t timeout_s = 30;
  bool automatic = false;
  std::uint32_t away_s = 60;  // automatic: a wanted board is away for so long
};

// "LOCATION:PORT" of a hub port, as uhubctl shows them: its command. Errors: INVALID_ARGUMENT.
Result<std::vector<std::string>> uhubctl_command(const std::string& port);

// One line: what is wrong. Errors: INVALID_ARGUMENT.
Status check_profiles(const std::vector<PowerProfile>& profiles);

// The first that fits: of those that name the board by uid, place or name, else of those for every
// board; null: none. One that wants a place fits only where there is one.
const PowerProfile* profile_of(const std::vector<PowerProfile>& profiles,
                               const model::Board& board);
std::vector<std::string> command_of(const PowerProfile& profile, const model::Board& board);

}  // namespace odt::lab
