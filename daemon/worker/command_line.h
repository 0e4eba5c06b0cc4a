#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/result.h"

// What odt-worker's commands for people share.
namespace odt::worker {

// Progress on `log`: a bar on a terminal, gone at the end of its life; elsewhere a line for each
// message, or nothing.
class Bar {
 public:
  enum class Elsewhere : std::uint8_t { kLines, kNothing };
  Bar(std::ostream& log, bool terminal, Elsewhere elsewhere)
      : log_(log), terminal_(terminal), elsewhere_(elsewhere) {}
  ~Bar();
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;
  void show(std::uint32_t permille, const std::string& message);

 private:
  std::ostream& log_;
  const bool terminal_;
  const Elsewhere elsewhere_;
};

// Parses what stands behind the command's name (app.get_name()), then runs it. Exit code: 0 (also
// for --help, on `out`), 1 (failed), 2 (usage); faults are one line in `log`.
int run_command(CLI::App& app, const std::vector<std::string>& args, std::ostream& out,
                std::ostream& log, const std::function<Status()>& command);

}  // namespace odt::worker
