# Copy to boards/NAME/board.cmake. Origins and sizes are the linker's; the arena is the RAM that is left.
set(BOARD_CPU -mcpu=cortex-m33 -mfloat-abi=soft)
set(BOARD_SOURCES)
set(BOARD_FLASH_ORIGIN 0x08000000)
set(BOARD_FLASH_SIZE 512K)
set(BOARD_RAM_ORIGIN 0x20000000)
set(BOARD_RAM_SIZE 128K)
set(BOARD_STACK_SIZE 6K)
set(BOARD_EPOCH_RECORDS 4)
