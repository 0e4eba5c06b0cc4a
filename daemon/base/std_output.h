#pragma once

#include <iostream>

namespace odt {

// The end of a program that wrote to standard output: its exit code, 1 with one line on standard
// error where what it wrote could not be written whole.
inline int finish_output(const char* program, int code, std::ostream& out = std::cout,
                         std::ostream& err = std::cerr) {
  if (out.flush() || code != 0) return code;
  err << program << ": the output could not be written whole (disk full or closed?)\n";
  return 1;
}

}  // namespace odt
