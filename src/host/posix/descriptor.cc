// SPDX-License-Identifier: Apache-2.0
#include "host/posix/descriptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace gossamer::host {
namespace {

std::string_view advice(int error_number) {
  switch (error_number) {
    case ENOENT: return "check the path";
    case EACCES:
    case EPERM: return "check the permissions of the path and of its directories";
    case EROFS: return "choose a directory that can be written";
    case ENOSPC:
    case EDQUOT: return "free some space or choose another disk";
    case EMFILE:
    case ENFILE: return "raise the limit of open files (ulimit -n)";
    default: return "";
  }
}

}  // namespace

Error system_error(const std::string& path, std::string_view what, int error_number) {
  return Error{.kind = ErrorKind::kFailed,
               .where = path,
               .what = fmt::format("{}: {}", what, std::generic_category().message(error_number)),
               .fix = std::string(advice(error_number))};
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

int Descriptor::close() {
  CHECK(fd_ >= 0, fd_);
  const int fd = fd_;
  fd_ = -1;
  // After EINTR the descriptor is closed all the same; closing again could hit another thread's file.
  return ::close(fd) == 0 || errno == EINTR ? 0 : errno;
}

Result<Descriptor> open_descriptor(const std::string& path, std::string_view what, int flags) {
  for (;;) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    if (fd >= 0) return Descriptor(fd);
    if (errno != EINTR) return system_error(path, what, errno);
  }
}

}  // namespace gossamer::host
