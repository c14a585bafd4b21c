# SPDX-License-Identifier: Apache-2.0
# Compiler flags of all our code. Dependencies are system headers and stay free of them.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(GOSSAMER_CCACHE ccache)
if(GOSSAMER_CCACHE)
  # Precompiled headers need to be named to it. Clones in other folders share what one of them has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${GOSSAMER_CCACHE})
endif()

add_library(gossamer_flags INTERFACE)
# One binary runs on any x86-64-v2; faster instruction sets are chosen at run time (src/kernels).
target_compile_options(gossamer_flags INTERFACE
  -march=x86-64-v2 -pthread -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these falsely in inlined standard library code at -O3.
  target_compile_options(gossamer_flags INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds
    -Wno-maybe-uninitialized)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # std::stable_sort of libstdc++ 12 calls what it marks as deprecated. From a precompiled header Clang says so.
  target_compile_options(gossamer_flags INTERFACE -Wno-deprecated-declarations)
endif()
# What most tests themselves do is cheap; compiling them is not.
add_library(gossamer_test_flags INTERFACE)
target_link_libraries(gossamer_test_flags INTERFACE gossamer_flags)
target_compile_options(gossamer_test_flags INTERFACE -O0)
# The others try all small cases, long histories or long sums. Unoptimised they would cost more than is saved.
add_library(gossamer_computing_test_flags INTERFACE)
target_link_libraries(gossamer_computing_test_flags INTERFACE gossamer_flags)
target_compile_options(gossamer_computing_test_flags INTERFACE -O1)
if(GOSSAMER_SANITIZE)
  add_compile_options(-fsanitize=${GOSSAMER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(GOSSAMER_SANITIZE_EXCEPT)
    add_compile_options(-fno-sanitize=${GOSSAMER_SANITIZE_EXCEPT})
  endif()
  add_link_options(-fsanitize=${GOSSAMER_SANITIZE})
  if(GOSSAMER_SANITIZE STREQUAL thread)
    # Else the linker gives gRPC's library our instrumented copies of what both have of the standard library, such as
    # std::function's destructor. ThreadSanitizer would see those accesses, but not the library's locks around them.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>)
  endif()
endif()
if(GOSSAMER_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
