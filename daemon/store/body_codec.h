#pragma once

#include <string>
#include <string_view>

#include "model/access.h"
#include "model/event.h"

// Bodies of resources in control.db: compact JSON, one layout version for all. A field that is
// missing has its default, so that fields can be added; an unknown one is ignored. Live-only fields
// (Board::link, Port::state) are left out.
namespace odt::store {

inline constexpr int kBodyVersion = 1;

// T: Board, Port, Model, Dataset, DerivedSamples, Snapshot, Evaluation, Job, Upload, Run, RunEvent,
// EpochResult, Warning, BoardCommand, Campaign, CampaignEvent, CampaignUnit, CampaignRound,
// Alert, AlertSettings, Setting, LabEvent, Credential, AuditEntry of odt::model; TrashRecord.
template <typename T>
std::string to_body(const T& value);
// Errors: DATA_LOSS (not JSON, wrong type or range of a field).
template <typename T>
Result<T> from_body(std::string_view body);

}  // namespace odt::store
