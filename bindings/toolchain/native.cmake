# The compiler of the native presets: clang 19 (the one the wasm is built with), or a newer one.
include(${CMAKE_CURRENT_LIST_DIR}/../../build/toolchain.cmake OPTIONAL)
if(NOT CMAKE_CXX_COMPILER)
  if(NOT LOOKBACK_CLANG)
    find_program(LOOKBACK_CLANG NAMES clang++-19 clang++-20 clang++-21 clang++-22 clang++ REQUIRED)
  endif()
  set(CMAKE_CXX_COMPILER ${LOOKBACK_CLANG})
endif()
