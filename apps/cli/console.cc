// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/console.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "host/posix/environment.h"

namespace gossamer::cli {
namespace {

// Writes the whole text. Returns 0 or the errno of the failure.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;

}  // namespace

// When standard error itself fails, there is nowhere to tell it.
void StderrConsole::write(std::string_view text) { static_cast<void>(write_all(STDERR_FILENO, text)); }

bool StderrConsole::ready() const { return host::stderr_takes_more(); }

bool StderrConsole::terminal() const { return host::stderr_terminal().is_terminal; }

int StderrConsole::columns() const { return host::stderr_terminal().columns; }

void Output::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) drain();
}

void Output::line(std::string_view text) {
  buffer_ += text;
  write("\n");
}

void Output::drain() {
  if (error_ == 0) error_ = write_all(STDOUT_FILENO, buffer_);
  buffer_.clear();
}

bool Output::terminal() { return ::isatty(STDOUT_FILENO) == 1; }

bool Output::reader_left() const { return error_ == EPIPE; }

Result<void> Output::flush() {
  drain();
  if (error_ == 0) return {};
  return Error{.kind = ErrorKind::kFailed,
               .where = "standard output",
               .what = "cannot write the result",
               .got = std::strerror(error_),
               .expected = "a terminal, a file or a program that reads it",
               .fix = "see to where the output goes, then run the command again"};
}

}  // namespace gossamer::cli
