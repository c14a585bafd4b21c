// SPDX-License-Identifier: Apache-2.0
#include "host/posix/environment.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "host/posix/cgroup.h"
#include "host/posix/disk.h"

namespace gossamer::host {

void hold_standard_streams() {
  // open() takes the lowest free number. Opened the wrong way round, input and output keep failing.
  for (const auto& [fd, mode] : {std::pair(STDIN_FILENO, O_WRONLY), std::pair(STDOUT_FILENO, O_RDONLY),
                                 std::pair(STDERR_FILENO, O_WRONLY)}) {
    if (::fcntl(fd, F_GETFD) == -1 && errno == EBADF) static_cast<void>(::open("/dev/null", mode));
  }
}

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

void set_environment_default(const std::string& name, const std::string& value) {
  constexpr int kKeep = 0;
  CHECK(::setenv(name.c_str(), value.c_str(), kKeep) == 0, name);
}

std::string machine_name() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "?";
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // The call fails on machines with more than CPU_SETSIZE (1024) cores.
  int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
                                                           : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  PosixDisk disk;
  if (const auto quota = cpu_quota_cores(disk, ""); quota && *quota < cores) cores = static_cast<int>(*quota);
  return std::max(cores, 1);
}

Terminal stderr_terminal() {
  Terminal terminal;
  terminal.is_terminal = ::isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (terminal.is_terminal && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.columns = size.ws_col;
  }
  return terminal;
}

bool stderr_takes_more() {
  pollfd stream{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&stream, 1, 0) > 0;
}

}  // namespace gossamer::host
