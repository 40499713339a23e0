# The compiler of the native presets: clang 19 (the one the wasm is built with), or a newer one.
if(NOT CMAKE_CXX_COMPILER)
  find_program(lookback_clang NAMES clang++-19 clang++-20 clang++-21 clang++-22 clang++ HINTS $ENV{LOOKBACK_CLANG} REQUIRED)
  set(CMAKE_CXX_COMPILER ${lookback_clang})
endif()
