# SPDX-License-Identifier: Apache-2.0
# gossamer_module(NAME [EACH_ALONE] [HEADERS ...] [SOURCES ...] [DEPS ...] [LIBS ...] [PUBLIC_LIBS ...]
#                 [TESTS ...] [TESTS_COMPUTE] [TEST_SHARDS N] [TEST_DEPS ...] [TEST_LIBS ...] [TEST_LABELS ...])
#
# One folder of src/ as one target `gossamer::NAME`. DEPS are our modules, LIBS are libraries of others
# (PRIVATE: they do not leak to users of the module). Headers are compiled alone by the target
# `all_verify_interface_header_sets`. TESTS become one program NAME_test, which is one ctest.
function(gossamer_module name)
  cmake_parse_arguments(M "EACH_ALONE;OWN_OPTIONS;TESTS_COMPUTE" "TEST_SHARDS" "HEADERS;SOURCES;DEPS;LIBS;PUBLIC_LIBS;TESTS;TEST_DEPS;TEST_LIBS;TEST_LABELS" ${ARGN})
  set(target gossamer_${name})
  if(M_SOURCES)
    add_library(${target} STATIC ${M_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE gossamer_flags ${M_LIBS})
    # OWN_OPTIONS is for targets with compiler options of their own, which the common precompiled headers lack.
    if(NOT M_OWN_OPTIONS)
      gossamer_reuse(${target} source ${M_LIBS})
    endif()
    # EACH_ALONE is for sources that are compiled for several processors.
    if(NOT M_EACH_ALONE)
      gossamer_unity(${target})
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(gossamer::${name} ALIAS ${target})
  target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${M_HEADERS})
  target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR}/src)
  foreach(dep IN LISTS M_DEPS)
    target_link_libraries(${target} ${scope} gossamer::${dep})
  endforeach()
  target_link_libraries(${target} ${scope} ${M_PUBLIC_LIBS})

  if(GOSSAMER_TESTS AND M_TESTS)
    set(compute)
    if(M_TESTS_COMPUTE)
      set(compute COMPUTES)
    endif()
    gossamer_test(${name}_test ${compute} SOURCES ${M_TESTS} DEPS ${name} ${M_TEST_DEPS} LIBS ${M_TEST_LIBS}
      LABELS ${M_TEST_LABELS} SHARDS ${M_TEST_SHARDS})
  endif()
endfunction()

# The sources of a folder are compiled a few at a time, because half of the time goes into the headers that all of them
# read. A change of one source costs as many, so the build that people change has fewer.
function(gossamer_unity target)
  if(NOT GOSSAMER_UNITY)
    return()
  endif()
  set(batch 8)
  if(GOSSAMER_SANITIZE)
    set(batch 16)
  endif()
  if(GOSSAMER_UNITY_BATCH)
    set(batch ${GOSSAMER_UNITY_BATCH})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  # A source that another one includes looks like a header to this warning.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# A program of tests that takes longer counts as hung. Whole fleets take thirty times as long under ThreadSanitizer.
set(GOSSAMER_TEST_SECONDS 600)
if(GOSSAMER_SANITIZE)
  set(GOSSAMER_TEST_SECONDS 1800)
endif()

# gossamer_test(NAME [COMPUTES] SOURCES ... [DEPS ...] [LIBS ...] [LABELS ...] [SHARDS N]): a GoogleTest program. It is
# one ctest, as most cases take less time than to start a program. tools/dev/run-tests counts and names cases.
# COMPUTES is for tests that compute much themselves: they are optimised a little.
# SHARDS is for a program that takes long: its cases become N ctests, which begin before the others.
# Labels say where it runs beside the release build: `threads` under ThreadSanitizer in `make test`; `whole`, which tests
# what others test below it, and `values`, which tests rules and plans over standard containers, only in `make asan` and
# `make tsan`; all others are labelled `memory` and run under AddressSanitizer in `make test`.
add_custom_target(threads_tests COMMENT "Test programs labelled threads")
add_custom_target(memory_tests COMMENT "Test programs labelled memory")
function(gossamer_test name)
  cmake_parse_arguments(T "COMPUTES" "SHARDS" "SOURCES;DEPS;LIBS;LABELS" ${ARGN})
  set(kind test)
  # Sanitized tests are optimised alike, and share what is precompiled.
  if(T_COMPUTES AND NOT GOSSAMER_SANITIZE)
    set(kind computing_test)
  endif()
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE gossamer_${kind}_flags ${T_LIBS} GTest::gmock GTest::gtest_main)
  gossamer_reuse(${name} ${kind} ${T_LIBS})
  # Most of the time that a test takes to compile goes into the headers that all of them read.
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${GOSSAMER_UNITY} UNITY_BUILD_BATCH_SIZE 16)
  foreach(dep IN LISTS T_DEPS)
    target_link_libraries(${name} PRIVATE gossamer::${dep})
  endforeach()
  set(label ${T_LABELS})
  if(NOT label)
    set(label memory)
  endif()
  if(label STREQUAL "memory" OR label STREQUAL "threads")
    add_dependencies(${label}_tests ${name})
  endif()
  if(NOT T_SHARDS)
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES TIMEOUT ${GOSSAMER_TEST_SECONDS} LABELS "${label}")
    return()
  endif()
  foreach(shard RANGE 1 ${T_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}.${shard} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name}.${shard} PROPERTIES TIMEOUT ${GOSSAMER_TEST_SECONDS} LABELS "${label}" COST 100
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${T_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# gossamer_fuzz(NAME SOURCES ... [DEPS ...] [LIBS ...]): a libFuzzer program (preset `fuzz`); `make fuzz` runs
# it, starting from tests/fuzz/corpus/NAME.
add_custom_target(fuzz_targets COMMENT "libFuzzer programs")
function(gossamer_fuzz name)
  cmake_parse_arguments(F "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  add_executable(${name} ${F_SOURCES})
  target_link_libraries(${name} PRIVATE gossamer_flags ${F_LIBS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz_targets ${name})
  foreach(dep IN LISTS F_DEPS)
    target_link_libraries(${name} PRIVATE gossamer::${dep})
  endforeach()
endfunction()
