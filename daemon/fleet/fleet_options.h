#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/asio.h"
#include "model/board.h"
#include "session/link_runner.h"

namespace odt::fleet {

// One [[serial.allow]]: every field that is not empty must match. A rule without any field matches
// nothing.
struct SerialRule {
  std::string vid_pid;     // "0483:374b", hex, any case
  std::string serial;      // USB serial number, exact
  std::string by_path;     // glob over /dev/serial/by-path/<name>, by-id name or the device path
  std::uint32_t baud = 0;  // 0: LinkOptions::baud_list
  BoardUid expect_uid;     // empty: any board
  bool dtr = true, rts = true, rts_cts = false;
};
struct DialTarget {
  std::string address;  // "host:port"
  BoardUid expect_uid;  // empty: any board
};

struct FleetOptions {
  std::vector<std::string> tcp_listen;  // "address:port"; port 0: any free one (tests)
  std::vector<DialTarget> tcp_dial;
  std::vector<SerialRule> serial_allow;
  std::size_t max_boards = 4096;  // rows; a stranger beyond is turned away, who is known comes in
  session::LinkOptions link;      // host_id is set from the store's gateway id
  std::chrono::milliseconds view_interval{200};
  std::chrono::milliseconds rescan_interval{2000};
  std::chrono::milliseconds probe_time{1000};  // for the old board of a duplicate uid

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
