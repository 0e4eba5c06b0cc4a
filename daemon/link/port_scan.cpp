#include "link/port_scan.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>

namespace odt::link {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxAttribute = 128;

// First line of a sysfs attribute, printable ASCII only; empty where there is none.
std::string attribute(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  line.resize(std::min(line.size(), kMaxAttribute));
  for (char& c : line) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return line;
}

std::uint32_t hex_attribute(const fs::path& file) {
  const std::string text = attribute(file);
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

// The usb_device above a tty's device, or an empty path.
fs::path usb_parent(const fs::path& device, const fs::path& top) {
  std::error_code ec;
  for (fs::path p = device; p.has_relative_path() && p != top && p != p.parent_path();
       p = p.parent_path()) {
    if (fs::exists(p / "idVendor", ec)) return p;
  }
  return {};
}

// Device name -> link, of one folder of /dev/serial.
std::map<std::string, std::string> links_by_name(const fs::path& folder) {
  std::map<std::string, std::string> found;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    std::error_code link_error;
    const fs::path target = fs::read_symlink(it->path(), link_error);
    if (!link_error) found[target.filename().string()] = it->path().string();
  }
  return found;
}

// 8250 drivers register ports that do not exist; their type is 0 (PORT_UNKNOWN).
bool phantom(const fs::path& tty, const std::string& driver) {
  return driver == "serial8250" && attribute(tty / "type") == "0";
}

}  // namespace

std::vector<PortInfo> scan_ports(const PortRoots& roots) {
  const auto by_id = links_by_name(roots.dev + "/serial/by-id");
  const auto by_path = links_by_name(roots.dev + "/serial/by-path");
  std::vector<PortInfo> ports;
  std::error_code ec;
  for (fs::directory_iterator it(roots.sys + "/class/tty", ec), end; !ec && it != end;
       it.increment(ec)) {
    std::error_code tty_error;
    const fs::path tty = it->path();
    const fs::path device = fs::canonical(tty / "device", tty_error);
    if (tty_error) continue;  // a virtual console or pty has no device behind it
    PortInfo port;
    const std::string name = tty.filename().string();
    port.path = roots.dev + "/" + name;
    const fs::path driver = fs::canonical(tty / "device" / "driver", tty_error);
    if (!tty_error) port.driver = driver.filename().string();
    if (phantom(tty, port.driver)) continue;
    const fs::path usb = usb_parent(device, roots.sys);
    if (!usb.empty()) {
      port.usb_vid = hex_attribute(usb / "idVendor");
      port.usb_pid = hex_attribute(usb / "idProduct");
      port.usb_serial = attribute(usb / "serial");
      port.description = attribute(usb / "product");
      const std::string maker = attribute(usb / "manufacturer");
      if (!maker.empty()) port.description += " (" + maker + ")";
    }
    if (const auto found = by_id.find(name); found != by_id.end()) port.by_id = found->second;
    if (const auto found = by_path.find(name); found != by_path.end()) {
      port.by_path = found->second;
    }
    ports.push_back(std::move(port));
  }
  std::sort(ports.begin(), ports.end(),
            [](const PortInfo& a, const PortInfo& b) { return a.path < b.path; });
  return ports;
}

}  // namespace odt::link
