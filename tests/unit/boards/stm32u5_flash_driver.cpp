#include "registers.h"
// The driver itself.
#include "stm32u5_flash.c"  // NOLINT
