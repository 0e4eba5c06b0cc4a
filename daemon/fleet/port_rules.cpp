#include "fleet/port_rules.h"

#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cctype>
#include <charconv>
#include <cstdio>
#include <filesystem>

namespace odt::fleet {
const SerialRule* match_rule(const std::vector<SerialRule>& rules, const model::Port& port) {
  char id[16];
  std::snprintf(id, sizeof id, "%04x:%04x", port.usb_vid, port.usb_pid);
  const auto base = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  const auto glob = [](const std::string& pattern, const std::string& text) {
    return !text.empty() && fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
  };
  for (const auto& rule : rules) {
    if (rule.vid_pid.empty() && rule.serial.empty() && rule.by_path.empty()) continue;
    if (!rule.vid_pid.empty()) {
      std::string wanted = rule.vid_pid;
      for (char& c : wanted) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (wanted != id) continue;
    }
    if (!rule.serial.empty() && rule.serial != port.usb_serial) continue;
    if (!rule.by_path.empty() && !glob(rule.by_path, port.path) &&
        !glob(rule.by_path, port.by_path) && !glob(rule.by_path, base(port.by_path)) &&
        !glob(rule.by_path, port.by_id) && !glob(rule.by_path, base(port.by_id)))
      continue;
    return &rule;
  }
  return nullptr;
}

Result<Lines> profile_lines(const std::string& profile) {
  if (profile.empty() || profile == "default") return Lines{};
  if (profile == "esp") return Lines{false, false};
  if (profile == "no_rts") return Lines{true, false};
  return absl::InvalidArgumentError("profile '" + sanitize_name(profile) +
                                    "' is not one of default, esp, no_rts");
}

Lines lines_of(const SerialRule& rule) {
  Lines lines = profile_lines(rule.profile).value_or(Lines{});
  return {rule.dtr.value_or(lines.dtr), rule.rts.value_or(lines.rts)};
}

bool is_network(const std::string& endpoint) {
  return endpoint.starts_with("tcp:") || endpoint.starts_with("tls:");
}

Result<HostPort> parse_host_port(const std::string& text) {
  const auto colon = text.rfind(':');
  HostPort out;
  int port = -1;
  if (colon != std::string::npos && colon > 0) {
    out.host = text.substr(0, colon);
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
    if (parsed.ec != std::errc() || parsed.ptr != end) port = -1;
    if (out.host.size() > 2 && out.host.front() == '[' && out.host.back() == ']')
      out.host = out.host.substr(1, out.host.size() - 2);
    else if (out.host.find(':') != std::string::npos)
      port = -1;
  }
  if (port < 0 || port > 65535)
    return absl::InvalidArgumentError("'" + text + "' is not host:port (port 0 to 65535)");
  out.port = static_cast<std::uint16_t>(port);
  return out;
}

std::string not_a_port(const std::string& path) {
  struct stat st {};
  if (path.empty() || path.front() != '/' || ::stat(path.c_str(), &st) != 0) return {};
  std::string is = "'" + path.substr(0, 64) + "' is ";
  for (char& c : is)
    if (c < ' ' || c > '~') c = '_';
  if (S_ISREG(st.st_mode)) return is + "a regular file, not a serial port";
  if (S_ISDIR(st.st_mode)) return is + "a folder, not a serial port";
  if (!S_ISCHR(st.st_mode)) return is + "not a serial port";
  // Pseudo terminals have no entry there; nor has anything where /sys is not mounted.
  const std::string entry = "/sys/dev/char/" + std::to_string(major(st.st_rdev)) + ":" +
                            std::to_string(minor(st.st_rdev)) + "/subsystem";
  std::error_code none;
  const auto subsystem = std::filesystem::read_symlink(entry, none);
  if (none || subsystem.filename() == "tty") return {};
  return is + "a device of the kind '" + sanitize_name(subsystem.filename().string()) +
         "', not a serial port";
}

std::string sanitize_name(const std::string& text, std::size_t max) {
  std::string out = text.substr(0, max);
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') c = '_';
  return out;
}

}  // namespace odt::fleet
