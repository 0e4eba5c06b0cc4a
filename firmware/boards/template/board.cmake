# Copy to boards/NAME/board.cmake. Origins and sizes are the linker's; the arena is the RAM that is left. The clock is the
# core's: odtc estimates times with it. FIRMWARE_*: budgets of what the firmware itself may take (RAM without arena and
# stack), held by tests/gates/check_firmware.sh; odtc fit reckons with them.
set(BOARD_CPU -mcpu=cortex-m33 -mfloat-abi=soft)
set(BOARD_DRIVERS) # files of boards/cortex_m: stm32_usart, ...
set(BOARD_FLASH_ORIGIN 0x08000000)
set(BOARD_FLASH_SIZE 512K)
set(BOARD_RAM_ORIGIN 0x20000000)
set(BOARD_RAM_SIZE 128K)
# Windows of a sensor (hal_sensor_t, or one that the host feeds).
#set(BOARD_CAPTURE ON)
set(BOARD_STACK_SIZE 6K)
set(BOARD_EPOCH_BYTES 1536)
set(BOARD_RX_WINDOW 2048)
set(BOARD_CLOCK_HZ 80000000)
set(BOARD_FIRMWARE_RAM 19456)
set(BOARD_FIRMWARE_FLASH 118784)
