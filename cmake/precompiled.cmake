# SPDX-License-Identifier: Apache-2.0
# Headers of the standard library, fmt, protobuf, nlohmann/json and GoogleTest, parsed once for all: a fifth to a half of the
# time that a file takes. They hide a missing #include <vector> from sources: `make check` compiles every header alone,
# without these. Modules that list nlohmann/json among their LIBS reuse the set that has it.
set(standard_headers <algorithm> <array> <cmath> <cstdint> <functional> <limits> <map> <memory> <optional> <set> <span>
  <string> <string_view> <utility> <variant> <vector>
  <fmt/format.h>
  # What each generated *.pb.h includes.
  <google/protobuf/arena.h> <google/protobuf/arenastring.h> <google/protobuf/extension_set.h>
  <google/protobuf/generated_enum_util.h> <google/protobuf/generated_message_util.h>
  <google/protobuf/io/coded_stream.h> <google/protobuf/map.h> <google/protobuf/message_lite.h>
  <google/protobuf/metadata_lite.h> <google/protobuf/repeated_field.h>)

# gossamer_precompile(NAME HEADERS ... LIBS ...): a target whose precompiled headers others reuse.
function(gossamer_precompile name)
  cmake_parse_arguments(P "" "" "HEADERS;LIBS" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cc CONTENT "// Only carries precompiled headers.\n")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PRIVATE ${P_LIBS})
  target_precompile_headers(${name} PRIVATE ${P_HEADERS})
endfunction()

gossamer_precompile(gossamer_source_headers HEADERS ${standard_headers} LIBS gossamer_flags fmt::fmt)
gossamer_precompile(gossamer_json_source_headers HEADERS ${standard_headers} <nlohmann/json.hpp>
  LIBS gossamer_flags fmt::fmt nlohmann_json::nlohmann_json)
if(GOSSAMER_TESTS)
  set(test_headers <gmock/gmock.h> <gtest/gtest.h> ${standard_headers})
  gossamer_precompile(gossamer_test_headers HEADERS ${test_headers} LIBS gossamer_test_flags GTest::gmock fmt::fmt)
  gossamer_precompile(gossamer_json_test_headers HEADERS ${test_headers} <nlohmann/json.hpp>
    LIBS gossamer_test_flags GTest::gmock fmt::fmt nlohmann_json::nlohmann_json)
  # One program among these reads JSON, which costs less than to precompile it.
  gossamer_precompile(gossamer_computing_test_headers HEADERS ${test_headers}
    LIBS gossamer_computing_test_flags GTest::gmock fmt::fmt)
  # Programs are compiled as position-independent executables, and what they reuse has to be.
  foreach(headers IN ITEMS gossamer_test_headers gossamer_json_test_headers gossamer_computing_test_headers)
    set_target_properties(${headers} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${headers} PRIVATE -fPIE)
  endforeach()
endif()

# gossamer_reuse(TARGET KIND LIBS ...): the target reuses the precompiled headers of KIND (source, test or computing_test), with
# nlohmann/json if it is among its libraries and precompiled for the kind.
function(gossamer_reuse target kind)
  if("nlohmann_json::nlohmann_json" IN_LIST ARGN AND TARGET gossamer_json_${kind}_headers)
    target_precompile_headers(${target} REUSE_FROM gossamer_json_${kind}_headers)
  else()
    target_precompile_headers(${target} REUSE_FROM gossamer_${kind}_headers)
  endif()
endfunction()
