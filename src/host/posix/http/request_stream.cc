// SPDX-License-Identifier: Apache-2.0
#include "host/posix/http/request_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace gossamer::host {
namespace {

constexpr std::size_t kReadBytes = std::size_t{16} << 10;
constexpr std::size_t kMostDropped = std::size_t{1} << 20;

}  // namespace

bool TimedSocket::ready(short what, SocketClock::time_point until) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SocketClock::now()).count();
    pollfd wanted{.fd = socket_, .events = what, .revents = 0};
    const int found = ::poll(&wanted, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000)));
    if (found > 0) return true;
    if (found == 0 && left <= 1'000'000) return false;
    if (found < 0 && errno != EINTR) return false;
  }
}

TimedSocket::Got TimedSocket::wait_for_more(SocketClock::time_point until) {
  ahead_.erase(0, used_);
  used_ = 0;
  const std::size_t before = ahead_.size();
  for (;;) {
    // A client that never pauses has bytes ready at any time.
    if (SocketClock::now() >= until || !ready(POLLIN, until)) return Got::kLate;
    ahead_.resize(before + kReadBytes);
    const ssize_t got = ::recv(socket_, ahead_.data() + before, kReadBytes, MSG_DONTWAIT);
    const int error = errno;
    ahead_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got > 0) return Got::kBytes;
    if (got == 0 || (error != EINTR && error != EAGAIN)) return Got::kEnd;
  }
}

bool TimedSocket::send(std::string_view bytes, SocketClock::time_point until) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
      if (!bytes.empty() && SocketClock::now() > until) return false;
    } else if (errno == EAGAIN) {
      if (!ready(POLLOUT, until)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void TimedSocket::end_politely(SocketClock::time_point until) {
  if (::shutdown(socket_, SHUT_WR) != 0) return;
  for (std::size_t dropped = 0; dropped < kMostDropped;) {
    dropped += ahead().size();
    use(ahead().size());
    if (wait_for_more(until) != Got::kBytes) return;
  }
}

RequestStream::RequestStream(TimedSocket& socket, const RequestHead& head, Duration patience)
    : socket_(socket),
      head_(head.text),
      chunked_(head.chunked),
      left_(head.body_bytes),
      patience_(std::chrono::nanoseconds(patience.ns)),
      body_until_(SocketClock::now() + patience_) {}

ssize_t RequestStream::read(char* out, size_t size) {
  if (!head_.empty()) {
    const std::size_t some = std::min(size, head_.size());
    std::memcpy(out, head_.data(), some);
    head_.remove_prefix(some);
    return static_cast<ssize_t>(some);
  }
  if (broken_ || body_ended()) return broken_ ? -1 : 0;
  reply_until_ = {};  // what was written before the body is `100 Continue`
  if (socket_.ahead().empty() && socket_.wait_for_more(body_until_) != TimedSocket::Got::kBytes) return -1;
  std::string_view some = socket_.ahead().substr(0, size);
  if (chunked_) {
    some = some.substr(0, chunks_.pass(some));
    broken_ = chunks_.refused();
    if (broken_) return -1;
  } else {
    some = some.substr(0, std::min<std::uint64_t>(left_, some.size()));
    left_ -= some.size();
  }
  std::memcpy(out, some.data(), some.size());
  socket_.use(some.size());
  return static_cast<ssize_t>(some.size());
}

bool RequestStream::drop_body(std::uint64_t most) {
  std::array<char, kReadBytes> some;
  for (std::uint64_t dropped = 0; !body_ended();) {
    if (left_ > most || dropped > most) return false;
    const ssize_t got = read(some.data(), some.size());
    if (got <= 0) return false;
    dropped += static_cast<std::uint64_t>(got);
  }
  return true;
}

ssize_t RequestStream::write(const char* bytes, size_t size) {
  if (broken_) return static_cast<ssize_t>(size);
  if (reply_until_ == SocketClock::time_point()) reply_until_ = SocketClock::now() + patience_;
  failed_ = failed_ || !socket_.send({bytes, size}, reply_until_);
  return failed_ ? -1 : static_cast<ssize_t>(size);
}

}  // namespace gossamer::host
