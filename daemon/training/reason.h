#pragma once

#include "base/result.h"
#include "model/common.h"

namespace odt::training {

// UPPER_SNAKE code, text and remedy of a status, for runs, jobs, campaigns and answers.
model::Reason reason_from(const Status& status);

}  // namespace odt::training
