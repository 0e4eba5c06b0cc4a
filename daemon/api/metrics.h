#pragma once

#include <string>

#include "api/services.h"

namespace odt::api {

// Prometheus text of /metrics: calls per method, Watch streams, boards by status. Any thread.
std::string metrics_text(const Deps& deps, std::size_t http_connections);

}  // namespace odt::api
