// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/line_input.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gossamer::cli {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16;
constexpr std::size_t kLongestLine = std::size_t{64} << 20;

std::string without_carriage_return(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

}  // namespace

Result<std::vector<std::string>> LineInput::next() {
  std::vector<std::string> lines;
  std::string piece(kPiece, '\0');
  while (lines.empty() && !ended_) {
    const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || rest_.size() > kLongestLine) {
      return Error{.kind = ErrorKind::kFailed,
                   .where = "stdin",
                   .what = "cannot read a line",
                   .got = got < 0 ? std::strerror(errno) : "more than 64 MiB without a line end",
                   .expected = "one query a line",
                   .fix = "see to what is piped in"};
    }
    ended_ = got == 0;
    std::size_t begin = 0;
    const std::string_view fresh(piece.data(), static_cast<std::size_t>(got));
    for (std::size_t end = fresh.find('\n'); end != std::string_view::npos; end = fresh.find('\n', begin)) {
      rest_ += fresh.substr(begin, end - begin);
      lines.push_back(without_carriage_return(std::exchange(rest_, {})));
      begin = end + 1;
    }
    rest_ += fresh.substr(begin);
  }
  if (ended_ && !rest_.empty()) lines.push_back(without_carriage_return(std::exchange(rest_, {})));
  return lines;
}

}  // namespace gossamer::cli
