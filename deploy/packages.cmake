# Installation and the Debian packages odt-fleet, odt-fleet-dev, python3-odtfleet: `ninja debs` builds what they hold
# and writes build/*.deb. Included by the root CMakeLists.txt.
include(GNUInstallDirs)
set(deploy ${PROJECT_SOURCE_DIR}/deploy)
# cpack packs what is there; `ninja debs` sees to it that it is.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

# The component of every install() that names none.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME odt-fleet)

set(programs odtd odtctl odtc odt-worker odt-flash)
set(pages)
set(completions)
foreach(program IN LISTS programs)
  install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endforeach()
install(DIRECTORY web/dist/ DESTINATION ${CMAKE_INSTALL_DATADIR}/odt-fleet/web)
install(DIRECTORY ${CMAKE_BINARY_DIR}/python/ DESTINATION ${CMAKE_INSTALL_DATADIR}/odt-fleet/python OPTIONAL)
install(DIRECTORY ${CMAKE_BINARY_DIR}/bin/firmware/ DESTINATION ${CMAKE_INSTALL_DATADIR}/odt-fleet/firmware OPTIONAL
  FILES_MATCHING PATTERN *.elf PATTERN *.bin PATTERN *.hex)
install(FILES ${deploy}/odtd.toml DESTINATION /etc/odt-fleet)
install(FILES ${deploy}/odtd.service ${deploy}/odt-flash@.service ${deploy}/odt-flash@.path DESTINATION /lib/systemd/system)
install(FILES ${deploy}/60-odt-fleet.rules DESTINATION /lib/udev/rules.d)
install(FILES ${deploy}/odt-fleet.sysusers DESTINATION /usr/lib/sysusers.d RENAME odt-fleet.conf)
install(FILES ${deploy}/odt-fleet.tmpfiles DESTINATION /usr/lib/tmpfiles.d RENAME odt-fleet.conf)
install(FILES ${deploy}/odt-fleet.logrotate DESTINATION /etc/logrotate.d RENAME odt-fleet)
install(DIRECTORY ${deploy}/boards/ DESTINATION ${CMAKE_INSTALL_DATADIR}/odt-fleet/boards)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES proto/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME wire-protocol.md)
install(FILES firmware/PORTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME porting.md)
install(DIRECTORY ${deploy}/decisions ${deploy}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Manual pages out of the programs' own help, completions out of odtctl.
foreach(page odtd.8 odt-flash.8 odtc.1 odt-worker.1)
  string(REGEX REPLACE "[.].*" "" program ${page})
  set(out ${CMAKE_BINARY_DIR}/man/${page})
  add_custom_command(OUTPUT ${out}
    COMMAND /usr/bin/python3 ${deploy}/man_page.py $<TARGET_FILE:${program}> ${out}
    DEPENDS ${program} ${deploy}/man_page.py COMMENT "Writing ${page}" VERBATIM)
  list(APPEND pages ${out})
endforeach()
install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL
  FILES_MATCHING PATTERN *.1)
install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 OPTIONAL
  FILES_MATCHING PATTERN *.8)
# The API's reference out of proto/: made anew whenever a definition changes.
file(GLOB api_protos CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/proto/odt/api/v1/*.proto)
set(out ${CMAKE_BINARY_DIR}/docs/api.md)
add_custom_command(OUTPUT ${out}
  COMMAND /usr/bin/python3 ${deploy}/api_reference.py ${out}
  DEPENDS ${api_protos} ${deploy}/api_reference.py COMMENT "Writing the API's reference" VERBATIM)
list(APPEND pages ${out})
install(FILES ${out} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs OPTIONAL)
foreach(shell bash zsh fish)
  set(out ${CMAKE_BINARY_DIR}/completions/${shell})
  add_custom_command(OUTPUT ${out}
    COMMAND sh -c "$<TARGET_FILE:odtctl> completion ${shell} >${out}.new && mv ${out}.new ${out}"
    DEPENDS odtctl COMMENT "Writing the completion for ${shell}" VERBATIM)
  list(APPEND completions ${out})
endforeach()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/completions ${CMAKE_BINARY_DIR}/man ${CMAKE_BINARY_DIR}/docs)
install(FILES ${CMAKE_BINARY_DIR}/completions/bash RENAME odtctl OPTIONAL
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${CMAKE_BINARY_DIR}/completions/zsh RENAME _odtctl OPTIONAL
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${CMAKE_BINARY_DIR}/completions/fish RENAME odtctl.fish OPTIONAL
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
# With sanitizers a hundred starts of slow programs would make the same files.
if(ODT_SANITIZE OR ODT_FUZZ)
  add_custom_target(package_texts DEPENDS ${pages} ${completions})
else()
  add_custom_target(package_texts ALL DEPENDS ${pages} ${completions})
endif()
add_dependencies(package_texts man_page)

install(DIRECTORY proto/odt proto/google COMPONENT odt-fleet-dev
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/odt-fleet/proto FILES_MATCHING PATTERN *.proto PATTERN *.options)
install(FILES proto/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/odt-fleet-dev COMPONENT odt-fleet-dev)

# The wheel's files, as Debian's Python looks for them.
install(CODE "
  file(GLOB wheel ${CMAKE_BINARY_DIR}/python/odtfleet-${PROJECT_VERSION}-*.whl)
  if(wheel)
    file(ARCHIVE_EXTRACT INPUT \${wheel} DESTINATION \$ENV{DESTDIR}/usr/lib/python3/dist-packages)
  endif()" COMPONENT python3-odtfleet)
install(FILES daemon/python/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/python3-odtfleet COMPONENT python3-odtfleet)
install(DIRECTORY daemon/python/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/python3-odtfleet
  COMPONENT python3-odtfleet)

set(debs odt-fleet odt-fleet-dev python3-odtfleet)
set(contents package_texts)
foreach(target ${programs} python_wheel)
  if(TARGET ${target})
    list(APPEND contents ${target})
  endif()
endforeach()
add_custom_target(debs COMMAND ${CMAKE_CPACK_COMMAND} -G DEB WORKING_DIRECTORY ${CMAKE_BINARY_DIR} VERBATIM)
add_dependencies(debs ${contents})
find_program(ARM_GCC arm-none-eabi-gcc)
if(ARM_GCC)
  add_dependencies(debs firmware_images)
endif()

# Between releases: 0.1.0+git417 is newer than 0.1.0 and older than 0.1.1. 417 commits behind the tag.
set(ODT_PACKAGE_VERSION "" CACHE STRING "version of the packages; empty: PROJECT_VERSION and the commits since its tag")
set(package_version "${ODT_PACKAGE_VERSION}")
if("${package_version}" STREQUAL "")
  execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} describe --tags --long --match v* OUTPUT_VARIABLE described
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(package_version ${PROJECT_VERSION})
  if(described MATCHES "-([0-9]+)-g[0-9a-f]+$" AND NOT CMAKE_MATCH_1 EQUAL 0)
    set(package_version ${PROJECT_VERSION}+git${CMAKE_MATCH_1})
  endif()
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME odt-fleet)
set(CPACK_PACKAGE_VERSION ${package_version})
set(CPACK_PACKAGE_CONTACT "odt-fleet maintainers <odt-fleet@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "On-device integer training for fleets of microcontrollers")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${debs})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)

set(CPACK_COMPONENT_ODT-FLEET_DESCRIPTION "Daemon odtd, command line odtctl, compiler odtc, trainer odt-worker, dashboard, firmware images")
set(CPACK_DEBIAN_ODT-FLEET_PACKAGE_NAME odt-fleet)
set(CPACK_DEBIAN_ODT-FLEET_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_ODT-FLEET_PACKAGE_DEPENDS "passwd, init-system-helpers (>= 1.54)")
set(CPACK_DEBIAN_ODT-FLEET_PACKAGE_RECOMMENDS "udev, ca-certificates, openocd, dfu-util, logrotate")
set(CPACK_DEBIAN_ODT-FLEET_PACKAGE_SUGGESTS "python3-odtfleet, nats-server, uhubctl")
set(CPACK_DEBIAN_ODT-FLEET_PACKAGE_CONTROL_EXTRA ${deploy}/debian/odt-fleet/postinst ${deploy}/debian/odt-fleet/prerm
  ${deploy}/debian/odt-fleet/postrm ${deploy}/debian/odt-fleet/conffiles)

set(CPACK_COMPONENT_ODT-FLEET-DEV_DESCRIPTION "Protocol definitions of odt-fleet: the API for programs, and the boards' wire protocol")
set(CPACK_DEBIAN_ODT-FLEET-DEV_PACKAGE_NAME odt-fleet-dev)
set(CPACK_DEBIAN_ODT-FLEET-DEV_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_ODT-FLEET-DEV_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_ODT-FLEET-DEV_PACKAGE_SUGGESTS "protobuf-compiler, protobuf-compiler-grpc")

set(CPACK_COMPONENT_PYTHON3-ODTFLEET_DESCRIPTION "Python package odtfleet: a client of odtd")
set(CPACK_DEBIAN_PYTHON3-ODTFLEET_PACKAGE_NAME python3-odtfleet)
set(CPACK_DEBIAN_PYTHON3-ODTFLEET_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON3-ODTFLEET_PACKAGE_RECOMMENDS python3-numpy)
set(CPACK_DEBIAN_PYTHON3-ODTFLEET_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON3-ODTFLEET_PACKAGE_DEPENDS "python3 (>= 3.9), python3-grpcio, python3-protobuf")
set(CPACK_DEBIAN_PYTHON3-ODTFLEET_PACKAGE_CONTROL_EXTRA ${deploy}/debian/python3-odtfleet/postinst
  ${deploy}/debian/python3-odtfleet/prerm)
include(CPack)
