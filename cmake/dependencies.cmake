# SPDX-License-Identifier: Apache-2.0
# Every library of others, found once, by package. tools/dev/setup installs them; docs/adr says why each.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(OpenSSL REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(absl CONFIG REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
# A module's, which language models need (`make torch`).
pkg_check_modules(SENTENCEPIECE IMPORTED_TARGET sentencepiece)

# LIBXSMM ships a static library and no CMake package; its own code needs dl, m and threads.
find_library(LIBXSMM_LIBRARY NAMES xsmm REQUIRED)
find_library(LIBXSMM_NOBLAS_LIBRARY NAMES xsmmnoblas REQUIRED)
find_path(LIBXSMM_INCLUDE_DIR NAMES libxsmm.h REQUIRED)
add_library(xsmm INTERFACE)
target_include_directories(xsmm SYSTEM INTERFACE ${LIBXSMM_INCLUDE_DIR})
target_link_libraries(xsmm INTERFACE ${LIBXSMM_LIBRARY} ${LIBXSMM_NOBLAS_LIBRARY} ${CMAKE_DL_LIBS} m Threads::Threads)

if(GOSSAMER_TESTS)
  find_package(GTest REQUIRED)
endif()
