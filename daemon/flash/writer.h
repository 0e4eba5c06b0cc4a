#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "flash/spool.h"

namespace odt::flash {

// The work of odt-flash: takes requests up and runs the profile's program for each, several at
// once. What odtd says is not trusted further than to name a profile and an image: the image's
// bytes are copied and hashed before the program sees them, values are checked, the program gets an
// empty environment and no shell.
struct WriterOptions {
  std::string spool;
  std::vector<std::string> profiles;  // folders, later ones go before earlier ones
  bool own_profiles = false;          // also those of this process's user, not of root alone
  bool watch = false;                 // goes on after the last request, until `stop`
  int parallel = 4;
};
// Errors: FAILED_PRECONDITION (another odt-flash works on the spool; folders).
Status write_all(const WriterOptions& options, const volatile std::sig_atomic_t& stop);

}  // namespace odt::flash
