#pragma once

#include "model/common.h"

// Boards in a lab: whose they are for now, out of service, their power.
namespace odt::model {

// A lease of people; runs have Lease. Over when expire_us has passed.
struct Reservation {
  std::string owner;  // empty: none
  std::string note;
  std::string actor;
  std::int64_t since_us = 0, expire_us = 0;
  bool operator==(const Reservation&) const = default;
  bool active(std::int64_t now_us) const { return !owner.empty() && now_us < expire_us; }
};

struct Maintenance {
  std::string note;
  std::string actor;
  std::int64_t since_us = 0;  // 0: in service
  bool operator==(const Maintenance&) const = default;
  bool on() const { return since_us != 0; }
};

struct BoardPower {
  std::string profile;                      // live; empty: none fits
  bool automatic = false, running = false;  // live
  std::int64_t last_us = 0;
};

struct PowerResult {
  std::string profile;
  bool automatic = false, ok = false;
  std::int32_t exit_code = -1;
  std::string output;
  std::uint32_t took_ms = 0;
  Reason reason;
};

enum class LabKind : std::uint8_t {
  kUnspecified = 0,
  kReserved = 1,
  kExtended = 2,
  kReleased = 3,
  kExpired = 4,
  kTakenOver = 5,
  kMaintenanceOn = 6,
  kMaintenanceOff = 7,
  kPlaced = 8,
  kReplaced = 9,
  kReplaces = 10,
  kPowerCycled = 11,
};

struct LabEvent {
  BoardUid board;
  std::uint32_t seq = 0;  // per board, from 1; set by the store
  std::int64_t time_us = 0;
  LabKind kind = LabKind::kUnspecified;
  std::string actor;
  Uuid command_id;
  std::string owner, note;
  std::int64_t expire_us = 0;
  std::string previous;
  BoardUid other;
  std::string place;
  PowerResult power;  // of kPowerCycled
};

}  // namespace odt::model
