#pragma once

#include <string>
#include <vector>

#include "fleet/fleet_options.h"

// Which ports may be opened, and names of endpoints.
namespace odt::fleet {

// A duplicate that dials in is shown this long after it last came.
inline constexpr std::chrono::seconds kShowTurned{30};

// The first rule that allows the port, or nullptr.
const SerialRule* match_rule(const std::vector<SerialRule>& rules, const model::Port& port);

// Levels of DTR and RTS after opening, by the kind of board: "default" (both on: CDC boards wait
// for DTR, and both together do not reset an ESP), "esp" (both off: adapters whose circuit resets
// at DTR alone), "no_rts" (DTR only: RTS is a reset line). Errors: INVALID_ARGUMENT.
struct Lines {
  bool dtr = true, rts = true;
};
Result<Lines> profile_lines(const std::string& profile);
Lines lines_of(const SerialRule& rule);

// "tcp:..." or "tls:...": not a serial port.
bool is_network(const std::string& endpoint);

// "host:port" or "[v6]:port". Errors: INVALID_ARGUMENT.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
Result<HostPort> parse_host_port(const std::string& text);

// Why an existing path cannot be a serial port ("'/etc/passwd' is a regular file, ..."); empty: it
// may be one, or is not there yet.
std::string not_a_port(const std::string& path);

// Keeps letters, digits and "._-"; anything else becomes '_'; at most `max` characters.
std::string sanitize_name(const std::string& text, std::size_t max = 32);

}  // namespace odt::fleet
