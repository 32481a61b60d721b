# find_package(fompi): the target fompi::fompi, a shared library that goes in front of the MPI's.
#
#   find_package(fompi REQUIRED CONFIG)          with CMAKE_PREFIX_PATH or fompi_DIR set
#   target_link_libraries(app PRIVATE fompi::fompi MPI::MPI_C)
#
# The functions of libfompi are used only if it comes before the MPI, so the target puts it among
# the options, which come before all libraries: the order in target_link_libraries does not matter.
# Works from a prefix of scripts/install and from the source tree, where cargo has built it.

if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/../Cargo.toml")
  get_filename_component(_fompi_top "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
  set(_fompi_library "${_fompi_top}/target/release/libfompi.so")
  if(DEFINED ENV{CARGO_TARGET_DIR})
    set(_fompi_library "$ENV{CARGO_TARGET_DIR}/release/libfompi.so")
  endif()
else()
  # Without links: /lib may be one to /usr/lib, and has no include next to it.
  get_filename_component(_fompi_here "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
  get_filename_component(_fompi_top "${_fompi_here}/../../@UP@" ABSOLUTE)
  set(_fompi_library "${_fompi_top}/@LIBDIR@/libfompi.so")
  unset(_fompi_here)
endif()

if(NOT EXISTS "${_fompi_library}")
  set(fompi_FOUND FALSE)
  set(fompi_NOT_FOUND_MESSAGE
    "there is no ${_fompi_library}: `cargo build --release` or scripts/install makes it")
  return()
endif()

if(NOT TARGET fompi::fompi)
  add_library(fompi::fompi SHARED IMPORTED)
  # Some linkers leave out a library that comes before what uses it, unless told not to.
  set_target_properties(fompi::fompi PROPERTIES
    IMPORTED_LOCATION "${_fompi_library}"
    IMPORTED_SONAME libfompi.so
    INTERFACE_INCLUDE_DIRECTORIES "${_fompi_top}/include"
    INTERFACE_LINK_OPTIONS
      "LINKER:--push-state,--no-as-needed;${_fompi_library};LINKER:--pop-state")
endif()
unset(_fompi_library)
unset(_fompi_top)
