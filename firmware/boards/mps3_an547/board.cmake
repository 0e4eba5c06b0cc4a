# Helium needs the FPU's registers: hard-float. Code lies in the ITCM, data in the SRAM.
set(BOARD_CPU -mcpu=cortex-m55 -mfloat-abi=hard)
set(BOARD_SOURCES ../boards/cortex_m/cmsdk_uart.c)
set(BOARD_FLASH_ORIGIN 0x00000000)
set(BOARD_FLASH_SIZE 512K)
set(BOARD_RAM_ORIGIN 0x31000000)
set(BOARD_RAM_SIZE 4M)
set(BOARD_STACK_SIZE 8K)
set(BOARD_EPOCH_RECORDS 16)
