#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/asio.h"
#include "model/board.h"
#include "model/console.h"
#include "session/link_runner.h"

namespace odt::fleet {

// One [[serial.allow]]: every field that is not empty must match. A rule without any field matches
// nothing.
struct SerialRule {
  std::string vid_pid;  // "0483:374b", hex, any case
  std::string serial;   // USB serial number, exact
  std::string by_path;  // glob over /dev/serial/by-path/<name>, by-id name or the device path
  std::vector<std::uint32_t> bauds;  // tried in turn; empty: LinkOptions::baud_list
  BoardUid expect_uid;               // empty: any board
  std::string profile;           // of the board's modem lines, see profile_lines(); empty: default
  std::optional<bool> dtr, rts;  // other than the profile's
  bool rts_cts = false;
};
struct DialTarget {
  std::string address;     // "host:port"
  BoardUid expect_uid;     // empty: any board
  std::string tls_name{};  // in the peer's certificate; empty: host
  bool tls = false;
  bool serial_line = false;  // a raw serial server (ser2net, QEMU): its line may damage bytes
};

struct FleetOptions {
  // "address:port" or "tls:address:port"; port 0: any free one (tests)
  std::vector<std::string> tcp_listen;
  std::vector<DialTarget> tcp_dial;
  std::vector<SerialRule> serial_allow;
  std::size_t max_boards = 4096;  // rows; a stranger beyond is turned away, who is known comes in
  session::LinkOptions link;      // host_id is set from the store's gateway id
  std::string version;            // of odtd; boards of another are warned of; empty: not judged
  link::TlsFiles tls;             // for "tls:" of all kinds
  // Adds to each board of a view what others know of it; empty: nothing.
  std::function<void(model::Board&)> complete;
  std::chrono::milliseconds view_interval{200};
  std::chrono::milliseconds rescan_interval{2000};
  std::chrono::milliseconds probe_time{1000};  // for the old board of a duplicate uid

  // Takes what boards print, and odtd's marks between (online, offline); must not block.
  std::function<void(const BoardUid&, model::ConsoleSource, int level, const std::string& text)>
      console;

  // Seams for tests; empty: the real ones.
  std::function<std::vector<model::Port>()>
      scan_ports;  // serial ports seen now; real: link/port_watch.h
  std::function<std::unique_ptr<session::LinkRunner>(std::string endpoint, session::LinkOptions,
                                                     session::LinkHost&)>
      make_runner;
  std::function<Result<std::unique_ptr<session::LinkRunner>>(
      std::string address, std::uint16_t port, session::LinkOptions, session::LinkHost&)>
      make_listener;
};

}  // namespace odt::fleet
