/* Flash of an STM32U5 with 2 MB in two banks (reset value of DUALBANK), as non-volatile memory: its
 * last 256 KB. They lie in bank 2, so that the program in bank 1 runs on while they are written. */
#ifndef ODT_STM32U5_FLASH_H
#define ODT_STM32U5_FLASH_H

#include "hal/hal.h"

#define STM32U5_NVM_BASE 0x081C0000u
#define STM32U5_NVM_SIZE 0x40000u

const hal_nvm_t* stm32u5_flash(void);

/* From the NMI: true where it tells of a quad-word of the non-volatile memory that a power cut left
 * half written, so that its bits and their check bits disagree. The read that met it fails, then;
 * the next erase of its page mends it. False: some other NMI. */
bool stm32u5_flash_torn(void);

#endif
