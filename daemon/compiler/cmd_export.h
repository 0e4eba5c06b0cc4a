#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "compiler/export.h"

// `odtc export`: command line of export.h.
namespace odt::compiler {

struct ExportCommand {
  CLI::App* command = nullptr;
  std::string file, weights, out, image;
  ExportOptions options;

  // Exit code.
  int run() const;
};
std::unique_ptr<ExportCommand> add_export(CLI::App& app);

}  // namespace odt::compiler
