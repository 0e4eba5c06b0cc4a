#pragma once

#include "api/service_helpers.h"

// WeightsService is too large for one file. Inside of the room.
namespace odt::api {

// Provenance, differences, files, deletion and retention.
void add_snapshot_methods(ApiService& service, Deps& deps);
// Restores to one board and to a cohort; the wrong samples of an evaluation.
void add_restore_methods(ApiService& service, Deps& deps);

}  // namespace odt::api
