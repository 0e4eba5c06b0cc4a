#pragma once

#include <variant>

#include "model/alert.h"
#include "model/board.h"
#include "model/campaign.h"
#include "model/library.h"
#include "model/run.h"
#include "model/setting.h"

namespace odt::model {

struct Deleted {
  std::string kind;
  std::string key;  // raw bytes
};
struct Warning {
  Reason reason;
  BoardUid board_uid;
  Uuid run_id;
};

using EventBody = std::variant<Board, Port, Model, Dataset, Snapshot, Run, RunEvent, EpochResult,
                               Job, Evaluation, Deleted, Warning, Campaign, CampaignEvent, Alert,
                               Setting, AlertSettings, LabEvent>;

// A durable change, numbered by the commit that made it durable.
struct Event {
  std::int64_t seq = 0;
  std::int64_t time_us = 0;
  std::string actor;
  Uuid command_id;
  EventBody body;
};

}  // namespace odt::model
