#pragma once

#include "app/config.h"

namespace odt::app {

// Beyond this machine only with TLS and credentials: sets config.auth_required where a port listens
// wider than loopback. FAILED_PRECONDITION NOT_PROTECTED: such a port without TLS, or with
// auth.required = false.
Status check_exposure(Config& config);

}  // namespace odt::app
