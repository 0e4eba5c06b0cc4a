#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/result.h"

// What odt-worker's commands for people share.
namespace odt::worker {

// Parses what stands behind the command's name (app.get_name()), then runs it. Exit code: 0 (also
// for --help, on `out`), 1 (failed), 2 (usage); faults are one line in `log`.
int run_command(CLI::App& app, const std::vector<std::string>& args, std::ostream& out,
                std::ostream& log, const std::function<Status()>& command);

}  // namespace odt::worker
