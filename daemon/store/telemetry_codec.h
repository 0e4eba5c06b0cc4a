#pragma once

#include <string>
#include <string_view>

#include "model/run.h"

namespace odt::store {

// What a frame holds beside its identity and time, as one BLOB, version 1: u8 version, then varints
// event_id, zigzag loss.sum, zigzag loss.exp2, loss.count, loss.kind, correct, gap, number of
// layers, then 3 bytes a layer (bits, shift, k).
std::string encode_frame(const model::TelemetryFrame& frame);
// Fills those fields. Errors: DATA_LOSS (truncated, unknown version).
Status decode_frame(std::string_view data, model::TelemetryFrame& frame);

// What to do with a frame whose (run, attempt, step) is stored. A record of a gap gives way to the
// step itself; steps must be equal in all but time, boot and event number.
enum class Merge { kIgnore, kReplace, kDiverged };
Merge merge_frame(const model::TelemetryFrame& stored, const model::TelemetryFrame& next);
// The rest of a gap whose first step has come after all; gap == 0: nothing is left.
model::TelemetryFrame rest_of_gap(const model::TelemetryFrame& gap);

Status diverged(const model::TelemetryFrame& frame);

}  // namespace odt::store
