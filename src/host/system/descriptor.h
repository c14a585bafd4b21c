// SPDX-License-Identifier: Apache-2.0
//
// Descriptor: an open file descriptor that closes itself, and the error of a failed system call. Owner: one;
// a Descriptor moves, never copies. Thread rule: one thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gossamer::host {

// kFailed at `path`: "<what>: <the system's text for error_number>", with what was expected and what to do.
[[nodiscard]] Error system_error(const std::string& path, std::string_view what, int error_number);

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) = delete;
  ~Descriptor();

  [[nodiscard]] int get() const { return fd_; }
  // Closes the descriptor; gives 0 or errno. Requires an open descriptor. It is gone afterwards in any case.
  [[nodiscard]] int close();

 private:
  int fd_;
};

// open(2) with O_CLOEXEC; new files get mode 0666 less the umask.
[[nodiscard]] Result<Descriptor> open_descriptor(const std::string& path, std::string_view what, int flags,
                                                 unsigned mode = 0666);

}  // namespace gossamer::host
