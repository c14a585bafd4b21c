// SPDX-License-Identifier: Apache-2.0
#include "host/system/descriptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace gossamer::host {
namespace {

struct Advice {
  std::string_view expected;
  std::string_view fix;
};

Advice advice(int error_number) {
  switch (error_number) {
    case ENOENT: return {"a path that is there", "check the path"};
    case EISDIR: return {"a file, not a directory", "give the path of a file"};
    case ENOTDIR: return {"a directory", "check the path: a part of it is a file"};
    case EACCES:
    case EPERM: return {"permission to do so", "check the permissions of the path and of its directories"};
    case EROFS: return {"a disk that can be written", "choose a directory that can be written"};
    case ENOSPC:
    case EDQUOT: return {"room on the disk", "free some space or choose another disk"};
    case ENAMETOOLONG: return {"a shorter path", "choose a shorter name"};
    case ELOOP: return {"a path without circles", "check the symbolic links of the path"};
    case EMFILE:
    case ENFILE: return {"a free file descriptor", "raise the limit of open files (ulimit -n)"};
    default: return {"", "see to the disk or the path, then run the command again"};
  }
}

}  // namespace

Error system_error(const std::string& path, std::string_view what, int error_number) {
  const Advice advised = advice(error_number);
  return Error{.kind = ErrorKind::kFailed,
               .where = path,
               .what = fmt::format("{}: {}", what, std::generic_category().message(error_number)),
               .expected = std::string(advised.expected),
               .fix = std::string(advised.fix)};
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

Result<Descriptor> open_descriptor(const std::string& path, std::string_view what, int flags, unsigned mode) {
  for (;;) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    if (fd >= 0) return Descriptor(fd);
    if (errno != EINTR) return system_error(path, what, errno);
  }
}

}  // namespace gossamer::host
