#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

// What a control store is kept in: rows by (kind, key), events, remembered requests. No rules here;
// they are in control_engine.h. Inside of the room.
namespace odt::store {

// Numbers are on disk: never reuse one.
enum class Kind : std::uint8_t {
  kBoard = 1,
  kPort = 2,
  kModel = 3,
  kDataset = 4,
  kSnapshot = 5,
  kRun = 6,
  kRunEvent = 7,  // key: run id, seq as big-endian u32
  kEpoch = 8,     // key: run id, attempt, epoch as big-endian u32
  kJob = 9,
  kEvaluation = 10,
  kWarning = 11,  // key: event_seq as big-endian u64
  kCommand = 12,
  kDerived = 13,  // key: content hash, model hash
  kUpload = 14,
  kSetting = 15,
  kCampaign = 17,
  kCampaignEvent = 18,  // key: campaign id, seq as big-endian u32
  kCampaignUnit = 19,   // key: campaign id, index as big-endian u32
  kCampaignRound = 20,  // key: campaign id, round as big-endian u32
  kAlias = 16,          // key: alias; body: hash of the snapshot that has it
  kAlert = 21,
  kAlertSettings = 22,  // key: "alerts"
  kScopedSetting = 23,  // key: setting_key()
  kLabEvent = 24,       // key: lab_event_prefix(), seq as big-endian u32
  kCredential = 26,
  kTrash = 27,  // key: number of the kind as one byte, key there; body: TrashRecord
  kAudit = 28,  // key: seq as big-endian u64
};

struct Row {
  std::string key;
  std::string sort;     // order of lists
  bool active = false;  // runs not final, commands open
  std::int64_t etag = 0;
  std::string body;
};

struct EventRow {
  std::int64_t seq = 0;
  std::int64_t time_us = 0;
  std::string actor;
  Uuid command_id;
  Kind kind = Kind::kBoard;
  std::string key;
  bool deleted = false;
};

class Rows {
 public:
  virtual ~Rows() = default;

  virtual Status begin() = 0;
  virtual Status commit() = 0;
  virtual void rollback() = 0;

  virtual Result<std::optional<Row>> get(Kind kind, const std::string& key) = 0;
  virtual Status put(Kind kind, const Row& row) = 0;
  virtual Status erase(Kind kind, const std::string& key) = 0;
  // By (sort, key), strictly after `after` (empty optional: from the start).
  struct Position {
    std::string sort, key;
  };
  virtual Result<std::vector<Row>> list(Kind kind, const std::optional<Position>& after,
                                        bool descending, std::uint32_t limit) = 0;
  // Keys that begin with `prefix`, ascending by key; `last`: only the last one.
  virtual Result<std::vector<Row>> with_prefix(Kind kind, const std::string& prefix, bool last) = 0;
  virtual Result<std::vector<Row>> active(Kind kind) = 0;  // ascending by key
  // Every row of every kind, in no order; `seen` does not change rows.
  virtual Status each(const std::function<void(Kind, const Row&)>& seen) = 0;

  virtual Status append_event(const EventRow& event) = 0;
  virtual Result<std::vector<EventRow>> events(std::int64_t first, std::uint32_t limit) = 0;
  struct SeqRange {
    std::int64_t first = 1, next = 1;  // kept events: [first, next)
  };
  virtual Result<SeqRange> event_range() = 0;

  virtual Result<std::optional<std::string>> request(const std::string& actor,
                                                     const std::string& request_id,
                                                     std::int64_t not_before_us) = 0;
  virtual Status put_request(const std::string& actor, const std::string& request_id,
                             std::int64_t time_us, const std::string& response) = 0;
  virtual Status forget_requests(std::int64_t before_us) = 0;
};

}  // namespace odt::store
