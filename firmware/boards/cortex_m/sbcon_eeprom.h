/* AT24C512 EEPROMs (64 KB each) at addresses 0x50 and up on a bus of Arm's SBCon, which is two pins
 * that are set and read by the program. The MPS boards' shield connectors have one each. */
#ifndef ODT_SBCON_EEPROM_H
#define ODT_SBCON_EEPROM_H

#include "hal/hal.h"

/* Looks for memories at 0x50, 0x51, ... up to 0x57; those that answer without a gap are one memory,
 * in this order. base: of the SBCon's registers. NULL: none answers. */
const hal_nvm_t* sbcon_eeprom(uint32_t base);

#endif
