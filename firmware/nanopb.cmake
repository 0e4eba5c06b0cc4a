# nanopb's runtime (fetched at build time from Debian's source package, never committed) and the
# generated coder of odt/device/v1. Included by the host build and by the cross build of firmware/arm.
get_filename_component(ODT_REPO_DIR "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(ODT_NANOPB_DIR "${ODT_REPO_DIR}/build/nanopb" CACHE PATH
  "nanopb C sources; fetched by deploy/fetch-nanopb.sh where they are missing")

if(NOT EXISTS "${ODT_NANOPB_DIR}/VERSION")
  message(STATUS "Fetching nanopb's sources into ${ODT_NANOPB_DIR}")
  execute_process(COMMAND "${ODT_REPO_DIR}/deploy/fetch-nanopb.sh" "${ODT_NANOPB_DIR}"
    RESULT_VARIABLE fetched)
  if(NOT fetched EQUAL 0)
    message(FATAL_ERROR "nanopb's sources are missing: run deploy/fetch-nanopb.sh ${ODT_NANOPB_DIR} "
      "(needs the network once), or set ODT_NANOPB_DIR to a folder that holds them")
  endif()
endif()

find_program(NANOPB_GENERATOR nanopb_generator nanopb_generator.py REQUIRED)
set(nanopb_out "${CMAKE_CURRENT_BINARY_DIR}/nanopb-gen")
set(nanopb_gen "${nanopb_out}/odt/device/v1/device.pb.c" "${nanopb_out}/odt/device/v1/device.pb.h")
add_custom_command(
  OUTPUT ${nanopb_gen}
  COMMAND ${CMAKE_COMMAND} -E make_directory "${nanopb_out}"
  COMMAND ${NANOPB_GENERATOR} -q -I "${ODT_REPO_DIR}/proto" -D "${nanopb_out}"
    odt/device/v1/device.proto
  DEPENDS "${ODT_REPO_DIR}/proto/odt/device/v1/device.proto"
    "${ODT_REPO_DIR}/proto/odt/device/v1/device.options"
  WORKING_DIRECTORY "${ODT_REPO_DIR}/proto"
  COMMENT "nanopb: odt/device/v1/device.proto"
  VERBATIM)

add_library(proto_device_nanopb STATIC ${nanopb_gen}
  "${ODT_NANOPB_DIR}/pb_common.c" "${ODT_NANOPB_DIR}/pb_encode.c" "${ODT_NANOPB_DIR}/pb_decode.c")
target_include_directories(proto_device_nanopb SYSTEM PUBLIC "${nanopb_out}" "${ODT_NANOPB_DIR}")
target_compile_definitions(proto_device_nanopb PUBLIC PB_NO_ERRMSG PB_BUFFER_ONLY)
