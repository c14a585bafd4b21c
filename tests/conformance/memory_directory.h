// SPDX-License-Identifier: Apache-2.0
//
// Where tests that sync often, and do not test syncing, put their files: a file system in memory where there
// is one. Ends in '/'. Thread rule: any.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace gossamer::host {

[[nodiscard]] inline std::string memory_directory() {
  return ::access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm/" : ::testing::TempDir();
}

}  // namespace gossamer::host
