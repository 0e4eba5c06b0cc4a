# What every image for a board shares: the product's, the tests', the bench's.
#   include(.../boards/board_image.cmake)
#   odt_board_load(NAME)       BOARD_... of boards/NAME/board.cmake, in the caller's scope
#   odt_board_options()        the compiler's options, for this folder and those below
#   odt_board_image(TARGET SOURCE...)  start-up, identity, faults, the board's own sources, linker script
set(ODT_BOARDS_DIR "${CMAKE_CURRENT_LIST_DIR}")

macro(odt_board_load name)
  if(NOT EXISTS "${ODT_BOARDS_DIR}/${name}/board.cmake")
    message(FATAL_ERROR "board \"${name}\": no firmware/boards/${name}/board.cmake")
  endif()
  set(BOARD "${name}")
  set(BOARD_DRIVERS)
  set(BOARD_DEFINITIONS)
  set(BOARD_NVM OFF)
  set(BOARD_CAPTURE OFF)
  set(BOARD_CLOCK cortex_m/clock.c)
  set(BOARD_LIMITS)
  set(BOARD_WITHOUT)
  set(BOARD_ARENA_MIN 16K)
  include("${ODT_BOARDS_DIR}/${name}/board.cmake")
endmacro()

macro(odt_board_options)
  set(CMAKE_C_STANDARD 11)
  set(CMAKE_C_STANDARD_REQUIRED ON)
  set(CMAKE_C_EXTENSIONS OFF)
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM)
    set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  endif()
  # Boards without non-volatile memory do not pay for its use.
  if(NOT BOARD_NVM)
    add_compile_definitions(APP_NVM=0)
  endif()
  if(NOT BOARD_CAPTURE)
    add_compile_definitions(APP_CAPTURE=0)
  endif()
  # Limits of odt/odt.h and app/types.h that are lower here, and parts of odt/ left out:
  # CONV, GRAPHS, APT, DFP16 (odt/README.md).
  add_compile_definitions(${BOARD_LIMITS})
  foreach(part IN LISTS BOARD_WITHOUT)
    add_compile_definitions(ODT_WITH_${part}=0)
  endforeach()
  # For size; odt/CMakeLists.txt names what is built for speed.
  # GCC 12.2 moves volatile stores out of loops and doubles them: -fno-move-loop-stores.
  add_compile_options(${BOARD_CPU} -mthumb -Os -g -fno-move-loop-stores -ffunction-sections
    -fdata-sections)
  add_link_options(${BOARD_CPU} -mthumb -nostartfiles --specs=nano.specs -Wl,--gc-sections
    -Wl,--fatal-warnings -Wl,--no-warn-rwx-segments)
endmacro()

function(odt_board_image target)
  set(shared "${ODT_BOARDS_DIR}/cortex_m")
  set(drivers ${BOARD_DRIVERS})
  list(TRANSFORM drivers PREPEND "${shared}/")
  list(TRANSFORM drivers APPEND ".c")
  configure_file("${shared}/link.ld.in" link.ld @ONLY)
  add_executable(${target} ${ARGN} "${ODT_BOARDS_DIR}/${BOARD}/board.c" "${shared}/startup.c"
    "${shared}/runtime.c"
    "${shared}/reset.c" "${shared}/identity.c" "${shared}/defaults.c" ${drivers})
  target_include_directories(${target} PRIVATE "${shared}" "${ODT_BOARDS_DIR}/../hal/include")
  target_compile_definitions(${target} PRIVATE ${BOARD_DEFINITIONS})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow -Werror)
  target_link_options(${target} PRIVATE -T "${CMAKE_CURRENT_BINARY_DIR}/link.ld"
    -Wl,--build-id=sha1 "-Wl,-Map=${target}.map")
  set_target_properties(${target} PROPERTIES SUFFIX .elf
    LINK_DEPENDS "${CMAKE_CURRENT_BINARY_DIR}/link.ld")
endfunction()
