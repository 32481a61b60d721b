# The version of libfompi, as include/fompi.h has it. Newer ones do all that older ones do, so any
# that is not older than what is asked for will do.

get_filename_component(_fompi_top "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
set(_fompi_top "${_fompi_top}/../../@UP@")
if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/../Cargo.toml")
  set(_fompi_top "${CMAKE_CURRENT_LIST_DIR}/..")
endif()
file(STRINGS "${_fompi_top}/include/fompi.h" _fompi_line REGEX "define FOMPI_VERSION ")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" PACKAGE_VERSION "${_fompi_line}")

if(NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(PACKAGE_VERSION "${PACKAGE_VERSION} (64 bits)")
  set(PACKAGE_VERSION_UNSUITABLE TRUE)
endif()
unset(_fompi_line)
unset(_fompi_top)
