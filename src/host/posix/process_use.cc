// SPDX-License-Identifier: Apache-2.0
#include "host/posix/process_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/check.h"

namespace gossamer::host {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

ProcessUse process_use() {
  rusage usage{};
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  ProcessUse use{.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime)};
  std::ifstream pages("/proc/self/statm");
  std::uint64_t whole = 0;
  std::uint64_t resident = 0;
  if (pages >> whole >> resident)
    use.resident_bytes = resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::error_code missing;
  for (std::filesystem::directory_iterator at("/proc/self/fd", missing), end; !missing && at != end;
       at.increment(missing))
    ++use.descriptors;
  if (use.descriptors > 0) --use.descriptors;  // the listing's own
  return use;
}

}  // namespace gossamer::host
