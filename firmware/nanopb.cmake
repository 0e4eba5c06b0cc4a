# nanopb's header pb.h (fetched at build time from Debian's source package, never committed) and what its generator
# makes of odt/device/v1. Included by the host build and by the cross build of firmware/arm.
get_filename_component(ODT_REPO_DIR "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(ODT_NANOPB_DIR "${ODT_REPO_DIR}/build/nanopb" CACHE PATH
  "Folder of nanopb's pb.h; fetched by deploy/fetch-nanopb.sh where it is missing")

if(NOT EXISTS "${ODT_NANOPB_DIR}/VERSION")
  message(STATUS "Fetching nanopb's pb.h into ${ODT_NANOPB_DIR}")
  execute_process(COMMAND "${ODT_REPO_DIR}/deploy/fetch-nanopb.sh" "${ODT_NANOPB_DIR}"
    RESULT_VARIABLE fetched)
  if(NOT fetched EQUAL 0)
    message(FATAL_ERROR "nanopb's pb.h is missing: run deploy/fetch-nanopb.sh ${ODT_NANOPB_DIR} "
      "(needs the network once), or set ODT_NANOPB_DIR to a folder that holds it")
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

# Structures and lists of fields alone: the coder is the application's own (app/src/coder.h).
add_custom_target(proto_device_nanopb_header DEPENDS ${nanopb_gen})
add_library(proto_device_nanopb INTERFACE)
add_dependencies(proto_device_nanopb proto_device_nanopb_header)
target_include_directories(proto_device_nanopb SYSTEM INTERFACE "${nanopb_out}" "${ODT_NANOPB_DIR}")
