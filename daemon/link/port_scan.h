#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace odt::link {

// A serial port of this machine, as found without opening it.
struct PortInfo {
  std::string path;     // "/dev/ttyACM0": key
  std::string by_id;    // "/dev/serial/by-id/..." or empty
  std::string by_path;  // likewise
  std::uint32_t usb_vid = 0, usb_pid = 0;
  std::string usb_serial;
  std::string description;  // product and maker, sanitised
  std::string driver;
  bool operator==(const PortInfo&) const = default;
};

struct PortRoots {
  std::string sys = "/sys";
  std::string dev = "/dev";
};

// All serial ports, by path. Virtual consoles, ptys and phantom 8250 ports are left out. Reads only
// sysfs and links: opening a port can reset a board. A tree that cannot be read gives what was
// found.
std::vector<PortInfo> scan_ports(const PortRoots& roots = {});

}  // namespace odt::link
