// SPDX-License-Identifier: Apache-2.0
#include "host/posix/process_use.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "host/system/descriptor.h"

namespace gossamer::host {
namespace {

// Claim: memory that is written to and a descriptor that is opened are seen, and time passes as the
// process works.
TEST(ProcessUse, SeesWhatIsTaken) {
  const ProcessUse before = process_use();
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  std::vector<unsigned char> memory(kBytes, 1);
  const Descriptor descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const ProcessUse after = process_use();
  EXPECT_GE(after.resident_bytes, before.resident_bytes + kBytes / 2);
  EXPECT_EQ(after.descriptors, before.descriptors + 1);
  while (process_use().cpu_seconds <= before.cpu_seconds) {
  }
}

}  // namespace
}  // namespace gossamer::host
