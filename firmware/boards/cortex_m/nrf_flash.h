/* Flash of an nRF52840 as non-volatile memory: its last 256 KB. The core stands still while a page
 * is erased, 85 ms, and the UART's 6 bytes run over: the host is told to wait (BUSY). */
#ifndef ODT_NRF_FLASH_H
#define ODT_NRF_FLASH_H

#include "hal/hal.h"

#define NRF_NVM_BASE 0x000C0000u
#define NRF_NVM_SIZE 0x40000u

const hal_nvm_t* nrf_flash(void);

#endif
