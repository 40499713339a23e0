# Target lookback_xsimd: xsimd's headers and nothing beside them.
#
# Debian's find_package(xsimd) wants xtl, and its include folder may be /usr/include, on which em++ dies. So: find the folder,
# read its version, and put a link to it alone on the include path.
set(xsimd_minimum 13.2)

find_path(LOOKBACK_XSIMD_INCLUDE xsimd/xsimd.hpp
  HINTS ${LOOKBACK_XSIMD_HINT} $ENV{LOOKBACK_XSIMD}
  PATHS /usr/include /usr/local/include /opt/homebrew/include
  NO_CMAKE_FIND_ROOT_PATH)
if(NOT LOOKBACK_XSIMD_INCLUDE)
  message(FATAL_ERROR "xsimd >= ${xsimd_minimum} was not found. `npm run build` sets it up on Debian; elsewhere install it "
    "and set LOOKBACK_XSIMD to the folder that contains xsimd/xsimd.hpp.")
endif()

file(STRINGS ${LOOKBACK_XSIMD_INCLUDE}/xsimd/config/xsimd_config.hpp version_lines REGEX "#define XSIMD_VERSION_(MAJOR|MINOR|PATCH)")
string(REGEX REPLACE "[^0-9;]" "" version_numbers "${version_lines}")
string(REPLACE ";" "." xsimd_version "${version_numbers}")
if(xsimd_version VERSION_LESS xsimd_minimum)
  message(FATAL_ERROR "xsimd ${xsimd_version} in ${LOOKBACK_XSIMD_INCLUDE} is too old: ${xsimd_minimum} or newer is needed (older ones "
    "have no complete wasm support). Set LOOKBACK_XSIMD to the folder that contains a newer xsimd/xsimd.hpp.")
endif()
message(STATUS "xsimd ${xsimd_version} in ${LOOKBACK_XSIMD_INCLUDE}")

file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include)
file(CREATE_LINK ${LOOKBACK_XSIMD_INCLUDE}/xsimd ${CMAKE_BINARY_DIR}/include/xsimd SYMBOLIC)
add_library(lookback_xsimd INTERFACE)
target_include_directories(lookback_xsimd SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/include)
