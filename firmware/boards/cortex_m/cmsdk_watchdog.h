/* Watchdog of Arm's CMSDK; the LM3S has the same. When nobody has fed it for WATCHDOG_S it
 * interrupts (NMI on the MPS boards), after as long again it resets. */
#ifndef ODT_CMSDK_WATCHDOG_H
#define ODT_CMSDK_WATCHDOG_H

#include <stdint.h>

void cmsdk_watchdog_start(uint32_t base, uint32_t clock_hz);
void cmsdk_watchdog_feed(uint32_t base);

#endif
