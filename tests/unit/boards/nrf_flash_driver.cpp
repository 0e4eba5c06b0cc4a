#include "registers.h"
// The driver itself.
#include "nrf_flash.c"  // NOLINT
