#include <unistd.h>

#include <iostream>

#include "cli/app.h"

int main(int argc, char** argv) {
  odt::cli::Context context(
      {std::cout, std::cerr, ::isatty(STDOUT_FILENO) == 1, ::isatty(STDERR_FILENO) == 1});
  context.interrupt.start();
  const int code = odt::cli::run_app(context, std::vector<std::string>(argv + 1, argv + argc));
  return odt::cli::finish_output(context, code);
}
