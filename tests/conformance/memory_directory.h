// SPDX-License-Identifier: Apache-2.0
//
// A directory for tests that sync often and do not test syncing: a file system in memory if there is one.
// Ends in '/'. Thread rule: any.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace gossamer::host {

[[nodiscard]] inline std::string memory_directory() {
  return ::access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm/" : ::testing::TempDir();
}

}  // namespace gossamer::host
