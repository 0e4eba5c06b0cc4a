#pragma once

#include "app/config.h"

namespace odt::app {

// stderr, and the file where one is named; gRPC's own lines go there too. INVALID_ARGUMENT: the
// file cannot be opened.
Status start_logging(const Config& config);

// One line of a room below, with spdlog's level number.
void log_line(int level, const std::string& text);

}  // namespace odt::app
