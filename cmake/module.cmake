# SPDX-License-Identifier: Apache-2.0
# gossamer_module(NAME [HEADERS ...] [SOURCES ...] [DEPS ...] [LIBS ...] [PUBLIC_LIBS ...]
#                 [TESTS ...] [TEST_DEPS ...] [TEST_LABELS ...])
#
# One folder of src/ as one target `gossamer::NAME`. DEPS are our modules, LIBS are libraries of others
# (PRIVATE: they do not leak to users of the module). Every header is compiled alone by the target
# `all_verify_interface_header_sets`. TESTS become one program NAME_test, each case one ctest.
function(gossamer_module name)
  cmake_parse_arguments(M "" "" "HEADERS;SOURCES;DEPS;LIBS;PUBLIC_LIBS;TESTS;TEST_DEPS;TEST_LABELS" ${ARGN})
  set(target gossamer_${name})
  if(M_SOURCES)
    add_library(${target} STATIC ${M_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE gossamer_flags ${M_LIBS})
    target_precompile_headers(${target} REUSE_FROM gossamer_source_headers)
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
    gossamer_test(${name}_test SOURCES ${M_TESTS} DEPS ${name} ${M_TEST_DEPS} LABELS ${M_TEST_LABELS})
  endif()
endfunction()

# gossamer_test(NAME SOURCES ... [DEPS ...] [LIBS ...] [LABELS ...]): a GoogleTest program, each case one ctest.
# Labels: `threads` runs under ThreadSanitizer in `make test`; `slow` is left out under the sanitizers.
add_custom_target(threads_tests COMMENT "Test programs labelled threads")
function(gossamer_test name)
  cmake_parse_arguments(T "" "" "SOURCES;DEPS;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE gossamer_test_flags ${T_LIBS} GTest::gmock GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM gossamer_test_headers)
  foreach(dep IN LISTS T_DEPS)
    target_link_libraries(${name} PRIVATE gossamer::${dep})
  endforeach()
  if("threads" IN_LIST T_LABELS)
    add_dependencies(threads_tests ${name})
  endif()
  # gtest_discover_tests takes no list as a value; ctest matches labels as patterns, so one joined label does.
  list(JOIN T_LABELS "-" label)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 600 LABELS "${label}")
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
