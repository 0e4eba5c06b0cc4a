#include "link/serial_open.h"

// termios2 (any speed) lives in the kernel's header, which cannot be mixed with <termios.h>.
#include <asm/termbits.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/device_holders.h"
#include "base/fd.h"

namespace odt::link {
namespace {

// The descriptor of this attempt is closed by now: whoever is found is another, or another of ours.
Status locked(const std::string& path) {
  std::error_code ec;
  const std::string device = std::filesystem::canonical(path, ec).string();
  const auto holders = device_holders();
  if (const auto holder = holders.find(ec ? path : device); holder != holders.end()) {
    const bool own = holder->second.ends_with(fmt::format("(pid {})", ::getpid()));
    return absl::AlreadyExistsError(
        path + ": held by " + holder->second +
        (own ? ", this one, under another name or until it has closed it"
             : "; end that program, or leave the port to it"));
  }
  return absl::AlreadyExistsError(path +
                                  ": held by a program of another user; find it with `sudo fuser "
                                  "-v " +
                                  path + "`");
}

Status open_error(const std::string& path, int error) {
  const std::string what = path + ": " + std::strerror(error);
  switch (error) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return absl::NotFoundError(what);
    case EBUSY:
      return locked(path);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(what +
                                         "; add the user of odtd to the port's group (dialout)");
    default:
      return absl::UnavailableError(what);
  }
}

Status set_raw(int fd, const std::string& path, const SerialConfig& config, SerialSystem& system) {
  struct termios2 t {};
  if (system.ioctl(fd, TCGETS2, &t) != 0) {
    return absl::InvalidArgumentError(path + ": not a serial port (" + std::strerror(errno) + ")");
  }
  t.c_iflag = IGNPAR;
  t.c_oflag = 0;
  t.c_lflag = 0;
  t.c_cflag &= ~static_cast<tcflag_t>(CBAUD | CSIZE | PARENB | PARODD | CSTOPB | HUPCL | CRTSCTS |
                                      (CBAUD << IBSHIFT));
  t.c_cflag |= CS8 | CREAD | CLOCAL | BOTHER;
  if (config.rts_cts) t.c_cflag |= CRTSCTS;
  t.c_ispeed = config.baud;
  t.c_ospeed = config.baud;
  t.c_cc[VMIN] = 1;
  t.c_cc[VTIME] = 0;
  if (system.ioctl(fd, TCSETS2, &t) != 0) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} baud refused: {}", path, config.baud, std::strerror(errno)));
  }
  return absl::OkStatus();
}

// Both lines in one call: the reset circuit of some boards (ESP) pulls reset or boot where one line
// moves before the other. Ports without modem lines (pty, some CDC) refuse this; that is no reason
// to refuse the port.
void set_lines(int fd, const SerialConfig& config, SerialSystem& system) {
  int bits = 0;
  if (system.ioctl(fd, TIOCMGET, &bits) != 0) return;
  const auto line = [&bits](int bit, bool on) { bits = on ? bits | bit : bits & ~bit; };
  line(TIOCM_DTR, config.dtr);
  if (!config.rts_cts) line(TIOCM_RTS, config.rts);  // else the driver moves it
  (void)system.ioctl(fd, TIOCMSET, &bits);
}

}  // namespace

int SerialSystem::ioctl(int fd, unsigned long request, void* argument) {
  return ::ioctl(fd, request, argument);
}

SerialSystem& real_serial_system() {
  static SerialSystem system;  // stateless
  return system;
}

Result<int> open_serial(const std::string& path, const SerialConfig& config, SerialSystem& system) {
  Fd fd(::open(path.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) return open_error(path, errno);
  if (::isatty(fd.get()) == 0) {
    return absl::InvalidArgumentError(path + ": not a serial port");
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    fd = Fd();
    return error == EWOULDBLOCK ? locked(path) : open_error(path, error);
  }
  if (system.ioctl(fd.get(), TIOCEXCL, nullptr) != 0) return open_error(path, errno);
  ODT_TRY(set_raw(fd.get(), path, config, system));
  set_lines(fd.get(), config, system);
  // What the tty echoed or received before raw mode is nobody's.
  (void)system.ioctl(fd.get(), TCFLSH, reinterpret_cast<void*>(TCIOFLUSH));
  return fd.release();
}

Status set_serial_baud(int fd, const std::string& path, std::uint32_t baud, SerialSystem& system) {
  struct termios2 t {};
  if (system.ioctl(fd, TCGETS2, &t) != 0) {
    return absl::InvalidArgumentError(path + ": " + std::strerror(errno));
  }
  t.c_cflag &= ~static_cast<tcflag_t>(CBAUD | (CBAUD << IBSHIFT));
  t.c_cflag |= BOTHER;
  t.c_ispeed = baud;
  t.c_ospeed = baud;
  if (system.ioctl(fd, TCSETS2, &t) != 0) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} baud refused: {}", path, baud, std::strerror(errno)));
  }
  (void)system.ioctl(fd, TCFLSH, reinterpret_cast<void*>(TCIFLUSH));
  return absl::OkStatus();
}

bool serial_hung_up(int fd) {
  pollfd p{fd, 0, 0};
  return ::poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

}  // namespace odt::link
