#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

// Opening and setting up a tty by hand: Asio's own open() neither sets O_CLOEXEC nor locks, and
// knows only the speeds of termios constants.
namespace odt::link {

struct SerialConfig {
  std::uint32_t baud = 921600;
  bool dtr = true, rts = true;  // level after opening
  bool rts_cts = false;         // hardware flow control
};

// The system calls that tests look at.
class SerialSystem {
 public:
  virtual ~SerialSystem() = default;
  virtual int ioctl(int fd, unsigned long request, void* argument);
};
SerialSystem& real_serial_system();

// Opens, locks (flock and TIOCEXCL), sets raw mode, speed and lines, discards what was received.
// Errors: NOT_FOUND (no such port), ALREADY_EXISTS (locked by another program: says which, where
// /proc tells), PERMISSION_DENIED, INVALID_ARGUMENT (not a tty, speed refused), UNAVAILABLE. Each
// names the port.
Result<int> open_serial(const std::string& path, const SerialConfig& config, SerialSystem& system);

// Changes the speed of an open port, any number the driver takes. Errors: INVALID_ARGUMENT.
Status set_serial_baud(int fd, const std::string& path, std::uint32_t baud, SerialSystem& system);

// True where the far end of the tty is gone (unplugged, pty master closed).
bool serial_hung_up(int fd);

}  // namespace odt::link
