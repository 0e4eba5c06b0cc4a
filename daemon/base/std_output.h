#pragma once

#include <poll.h>
#include <unistd.h>

#include <iostream>

namespace odt {

// The program that reads standard output has ended or closed it (`| head`).
inline bool reader_gone(const std::ostream& out = std::cout) {
  if (&out != &std::cout) return false;
  struct pollfd fd = {STDOUT_FILENO, 0, 0};
  return ::poll(&fd, 1, 0) == 1 && (fd.revents & POLLERR) != 0;
}

// The end of a program that wrote to standard output: its exit code, 1 with one line on standard
// error where what it wrote could not be written whole. A reader that has had enough is no error.
inline int finish_output(const char* program, int code, std::ostream& out = std::cout,
                         std::ostream& err = std::cerr) {
  if (out.flush() || code != 0 || reader_gone(out)) return code;
  err << program << ": the output could not be written whole (disk full or closed?)\n";
  return 1;
}

}  // namespace odt
