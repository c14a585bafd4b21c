// SPDX-License-Identifier: Apache-2.0
//
// TimedSocket: the bytes of a connection, read and written up to a moment that is set for the whole, not for
// each byte. RequestStream: one request of it as the HTTP library reads it. The library gets the checked
// head, and then the body up to its end and not a byte more. So what follows is the next request for it and
// for a proxy alike.
//
// Internal to host/posix/http. Thread rule: one thread.
#pragma once

#include <httplib.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/time.h"
#include "host/posix/http/chunk_check.h"
#include "host/posix/http/request_head.h"

namespace gossamer::host {

using SocketClock = std::chrono::steady_clock;

class TimedSocket {
 public:
  enum class Got { kBytes, kEnd, kLate };

  explicit TimedSocket(int socket) : socket_(socket) {}

  // Bytes that have come and are not used.
  [[nodiscard]] std::string_view ahead() const { return std::string_view(ahead_).substr(used_); }
  void use(std::size_t bytes) { used_ += bytes; }
  // Waits for more of them. kEnd: the other side has ended, or the connection is gone.
  [[nodiscard]] Got wait_for_more(SocketClock::time_point until);
  // False when they have not all been taken by then, or the connection is gone.
  [[nodiscard]] bool send(std::string_view bytes, SocketClock::time_point until);
  // Ends our side, and drops what still comes, or the reply would be lost with the connection.
  void end_politely(SocketClock::time_point until);

 private:
  [[nodiscard]] bool ready(short what, SocketClock::time_point until) const;

  int socket_;
  std::string ahead_;
  std::size_t used_ = 0;
};

class RequestStream final : public httplib::Stream {
 public:
  // `head` outlives this. `patience` is for the whole body, and again for the whole reply from its first byte
  // on. `100 Continue` is no part of the reply.
  RequestStream(TimedSocket& socket, const RequestHead& head, Duration patience);

  // After the library is done: drops what it has not read of the body. False if that is more than about
  // `most` bytes, or does not come in the body's time.
  [[nodiscard]] bool drop_body(std::uint64_t most);
  // After the library is done. `in_step`: the body was read to its end, and the reply was written.
  [[nodiscard]] bool in_step() const { return body_ended() && !broken_ && !failed_; }
  // The body is not in the one form that everybody reads alike. The library's reply was not sent.
  [[nodiscard]] bool broken() const { return broken_; }

  [[nodiscard]] bool is_readable() const override { return true; }
  [[nodiscard]] bool is_writable() const override { return !failed_; }
  ssize_t read(char* out, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  // The library only compares it with a limit of select(), which nobody here calls.
  [[nodiscard]] socket_t socket() const override { return 0; }

 private:
  [[nodiscard]] bool body_ended() const { return chunked_ ? chunks_.ended() : left_ == 0; }

  TimedSocket& socket_;
  std::string_view head_;  // what the library has not read of it
  const bool chunked_;
  std::uint64_t left_;  // bytes of a body of known length
  ChunkCheck chunks_;
  const SocketClock::duration patience_;
  const SocketClock::time_point body_until_;
  SocketClock::time_point reply_until_ = {};  // the epoch: no byte was written
  bool broken_ = false;
  bool failed_ = false;
};

}  // namespace gossamer::host
