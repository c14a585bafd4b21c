// SPDX-License-Identifier: Apache-2.0
#include "host/posix/door/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/check.h"

namespace gossamer::host {
namespace {

rlimit limit_now() {
  rlimit limit{};
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  return limit;
}

}  // namespace

void want_descriptors() {
  rlimit limit = limit_now();
  if (limit.rlim_cur >= kWantedDescriptors) return;
  limit.rlim_cur = std::min<rlim_t>(kWantedDescriptors, limit.rlim_max);
  // If the system refuses, the process keeps the limit that it has.
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

std::uint64_t descriptor_limit() { return limit_now().rlim_cur; }

}  // namespace gossamer::host
