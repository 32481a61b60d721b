# find_package(fompi): the target fompi::fompi, a shared library that goes in front of the MPI's.
#
#   find_package(fompi REQUIRED CONFIG)          with CMAKE_PREFIX_PATH or fompi_DIR set
#   target_link_libraries(app PRIVATE fompi::fompi MPI::MPI_C)
#
# fompi::fompi must be named before the MPI, so that its functions come first.

get_filename_component(_fompi_top "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)

find_library(fompi_LIBRARY NAMES fompi NO_DEFAULT_PATH
  HINTS "${_fompi_top}/target/release" "${_fompi_top}/lib" "${_fompi_top}/..")
find_path(fompi_INCLUDE_DIR NAMES fompi.h NO_DEFAULT_PATH HINTS "${_fompi_top}/include")

if(NOT fompi_LIBRARY OR NOT fompi_INCLUDE_DIR)
  set(fompi_FOUND FALSE)
  set(fompi_NOT_FOUND_MESSAGE "no libfompi.so below ${_fompi_top}: cargo build --release makes it")
  return()
endif()

if(NOT TARGET fompi::fompi)
  add_library(fompi::fompi SHARED IMPORTED)
  set_target_properties(fompi::fompi PROPERTIES
    IMPORTED_LOCATION "${fompi_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${fompi_INCLUDE_DIR}")
endif()
