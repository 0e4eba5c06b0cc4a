#pragma once

#include "model/common.h"
#include "model/lab.h"

namespace odt::model {

enum class BoardStatus : std::uint8_t {
  kUnspecified = 0,
  kOnline = 1,
  kSuspect = 2,
  kOffline = 3,
  kQuarantined = 4,
  kBusy = 5,
};

// Live only: never in the store.
struct LinkStats {
  std::string endpoint;
  std::uint64_t rx_frames = 0, tx_frames = 0, rx_bytes = 0, tx_bytes = 0;
  std::uint64_t crc_errors = 0, retries = 0, telemetry_gaps = 0;
  std::uint32_t rtt_us = 0;
  std::uint32_t session_count = 0;
};

// Who has a board to itself. Live only.
struct Lease {
  Uuid holder;       // run or job; zero: an operation without one
  std::string what;  // "run", "evaluate", ...; empty: nobody
  std::string actor;
  std::int64_t since_us = 0, expire_us = 0;
  bool operator==(const Lease&) const = default;
};

struct Board {
  BoardUid uid;
  std::string name;
  std::string place;
  std::map<std::string, std::string> labels;
  std::string board_type, core, fw_version;
  std::uint32_t rules_version = 0;
  std::uint64_t boot_id = 0;
  std::uint32_t caps = 0, ram_bytes = 0, max_layers = 0, max_batch = 0, mtu = 0;
  BoardStatus status =
      BoardStatus::kOffline;  // stored: kOnline / kOffline / kQuarantined transitions
  std::int64_t last_seen_time_us = 0;
  std::int64_t online_since_time_us = 0;
  Hash model_hash;  // first 16 bytes known from HELLO_ACK; rest zero until GET_STATE
  Hash state_hash;
  Uuid run_id;
  std::uint32_t last_step = 0;
  // Newest commit to its non-volatile memory (sequence 0: none, or unknown), and whether what it
  // holds came from there.
  std::uint32_t nvm_sequence = 0, nvm_step = 0;
  bool restored = false;
  std::string reset_reason;
  std::uint32_t boots_seen = 0;
  LinkStats link;  // live only
  Lease lease;     // live only
  Reservation reservation;
  Maintenance maintenance;
  Hash target_snapshot;
  BoardPower power;
  Meta meta;
};

enum class PortState : std::uint8_t {
  kUnspecified = 0,
  kUnclaimed = 1,
  kOpening = 2,
  kOnline = 3,
  kLocked = 4,
  kSilent = 5,
  kBaudMismatchSuspected = 6,
  kGone = 7,
  kError = 8,
};

struct Port {
  std::string path;  // key
  std::string by_id, by_path;
  std::uint32_t usb_vid = 0, usb_pid = 0;
  std::string usb_serial, description;
  PortState state = PortState::kUnclaimed;  // live; stored: adopted, baud, expect_uid
  bool adopted = false, allowed = false;
  BoardUid board_uid;
  BoardUid expect_uid;
  std::uint32_t baud = 0;
  Reason reason;
  Meta meta;
};

}  // namespace odt::model
