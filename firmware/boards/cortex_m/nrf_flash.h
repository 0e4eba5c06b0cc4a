/* The end of an nRF's flash as non-volatile memory; BOARD_DEFINITIONS say where, else an nRF52840's
 * last 256 KB. The core stands still while a page is erased, 85 ms (nRF51: 22), and the UART's 6
 * bytes run over: the host is told to wait (BUSY). */
#ifndef ODT_NRF_FLASH_H
#define ODT_NRF_FLASH_H

#include "hal/hal.h"

#ifndef NRF_NVM_BASE
#define NRF_NVM_BASE 0x000C0000u
#define NRF_NVM_SIZE 0x40000u
#define NRF_NVM_UNIT 4096u
#endif

const hal_nvm_t* nrf_flash(void);

#endif
