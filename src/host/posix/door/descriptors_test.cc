// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/descriptors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

namespace gossamer::host {
namespace {

class Descriptors : public ::testing::Test {
 protected:
  Descriptors() { EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0); }
  ~Descriptors() override { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  void limit(rlim_t soft) {
    const rlimit limit{.rlim_cur = soft, .rlim_max = before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  [[nodiscard]] static rlim_t now() {
    rlimit limit{};
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    return limit.rlim_cur;
  }
  rlimit before_{};
};

// What a login gives is raised as far as the system allows, and never lowered.
TEST_F(Descriptors, Wanted) {
  limit(256);
  want_descriptors();
  const rlim_t raised = now();
  EXPECT_EQ(raised, std::min<rlim_t>(kWantedDescriptors, before_.rlim_max));
  want_descriptors();
  EXPECT_EQ(now(), raised);
  EXPECT_EQ(descriptor_limit(), raised);
}

}  // namespace
}  // namespace gossamer::host
