// SPDX-License-Identifier: Apache-2.0
#include "host/grpc/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/check.h"

namespace gossamer::host {
namespace {

rlimit descriptor_limit() {
  rlimit limit{};
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  return limit;
}

}  // namespace

void want_descriptors() {
  rlimit limit = descriptor_limit();
  if (limit.rlim_cur >= kWantedDescriptors) return;
  limit.rlim_cur = std::min<rlim_t>(kWantedDescriptors, limit.rlim_max);
  // If the system refuses, the process keeps the limit that it has.
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

bool is_among_last(int descriptor) {
  const std::uint64_t all = std::min<std::uint64_t>(descriptor_limit().rlim_cur, kWantedDescriptors);
  return static_cast<std::uint64_t>(descriptor) >= all - all / 4;
}

}  // namespace gossamer::host
