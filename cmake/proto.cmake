# SPDX-License-Identifier: Apache-2.0
# gossamer_proto(NAME FILES ...): the C++ of protobuf files below proto/, as target gossamer::NAME. Included as
# "gossamer/FILE.pb.h". Generated code is not held to our warnings. Target generated_sources writes all of it.
add_custom_target(generated_sources)
function(gossamer_proto name)
  cmake_parse_arguments(P "" "" "FILES" ${ARGN})
  set(out ${CMAKE_BINARY_DIR}/proto)
  file(MAKE_DIRECTORY ${out})
  set(sources)
  foreach(file IN LISTS P_FILES)
    string(REGEX REPLACE "\\.proto$" "" stem ${file})
    add_custom_command(
      OUTPUT ${out}/${stem}.pb.cc ${out}/${stem}.pb.h
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}/proto --cpp_out=${out} ${PROJECT_SOURCE_DIR}/proto/${file}
      DEPENDS ${PROJECT_SOURCE_DIR}/proto/${file}
      COMMENT "protoc ${file}"
      VERBATIM)
    list(APPEND sources ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
  endforeach()
  add_custom_target(gossamer_${name}_sources DEPENDS ${sources})
  add_dependencies(generated_sources gossamer_${name}_sources)
  add_library(gossamer_${name} STATIC ${sources})
  add_library(gossamer::${name} ALIAS gossamer_${name})
  target_include_directories(gossamer_${name} SYSTEM PUBLIC ${out})
  target_link_libraries(gossamer_${name} PUBLIC protobuf::libprotobuf)
endfunction()
