#pragma once

#include <string>

#include "base/result.h"

namespace odt::cli {

class Context;

// Models and datasets keep their hash or id, and a name stands for the newest that has it. The
// older ones stay; these say so, and take them away on request.

// Behind a model or dataset that was just made: older ones of its name are deleted (replace), or a
// note names them. One that a run uses stays, with a note. A name that is empty is nobody's.
Status settle_model_name(Context& context, const std::string& name, const std::string& hash,
                         bool replace);
Status settle_dataset_name(Context& context, const std::string& name, const std::string& id,
                           bool replace);

}  // namespace odt::cli
