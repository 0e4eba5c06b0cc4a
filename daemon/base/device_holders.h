#pragma once

#include <map>
#include <string>

namespace odt {

// Serial device ("/dev/ttyACM0", "/dev/pts/3") -> "program (pid 123)" of a process that has it
// open, from the links in /proc/PID/fd: of processes that this user may look into. Reads every
// process: some milliseconds.
std::map<std::string, std::string> device_holders(const std::string& proc = "/proc");

}  // namespace odt
