// SPDX-License-Identifier: Apache-2.0
//
// HttpTalk: all requests of one connection, one after another. It reads each head in the strict form
// (HeadReader), and gives the request to the HTTP library. It goes on with the next one only where the
// library has read the body to its end. Each refusal is one reply, and then the connection ends.
//
// Internal to host/posix/http. Thread rule: its connection's thread.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/function_ref.h"
#include "base/time.h"
#include "host/posix/http/connection_slots.h"
#include "host/posix/http/http_server.h"
#include "host/posix/http/request_head.h"
#include "host/posix/http/request_stream.h"

namespace gossamer::host {

class HttpTalk {
 public:
  // Lets the library serve one request. `last`: its reply says that the connection ends.
  using Serve = FunctionRef<bool(httplib::Stream& request, bool last)>;

  // `closed`: no further request is begun.
  HttpTalk(ConnectionSlots::Slot& slot, const HttpOptions& options, const std::atomic<bool>& closed,
           Serve serve)
      : slot_(slot), options_(options), closed_(closed), serve_(serve), socket_(slot.socket()) {}

  void run();

 private:
  // False: the connection is to end.
  [[nodiscard]] bool one(bool last);
  [[nodiscard]] bool read_head(HeadReader& reader);
  void end_with(int status, const Error& error);
  [[nodiscard]] Error late() const;

  ConnectionSlots::Slot& slot_;
  const HttpOptions& options_;
  const std::atomic<bool>& closed_;
  Serve serve_;
  TimedSocket socket_;
};

}  // namespace gossamer::host
