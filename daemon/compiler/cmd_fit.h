#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "compiler/boards.h"
#include "compiler/fit.h"

// `odtc fit`: command line of fit.h.
namespace odt::compiler {

struct FitCommand {
  CLI::App* command = nullptr;
  std::string file, board, cpu;
  std::uint64_t ram = 0;
  double mhz = 0;
  CompileOptions compile;
  FitRequest request;
  std::string frozen = "auto";
  bool no_guard = false, streamed = false, best_on_host = false, as_json = false;

  // Exit code: 0 fits, 1 error, 3 does not fit.
  int run() const;
};
std::unique_ptr<FitCommand> add_fit(CLI::App& app);

}  // namespace odt::compiler
