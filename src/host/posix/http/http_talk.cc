// SPDX-License-Identifier: Apache-2.0
#include "host/posix/http/http_talk.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <chrono>

namespace gossamer::host {
namespace {

// The most requests on one connection.
constexpr int kMostRequests = 1000;

// How long a reply may take that is sent before the request has been read, and what still comes is dropped.
constexpr std::chrono::seconds kFarewell(1);

SocketClock::time_point in(Duration time) { return SocketClock::now() + std::chrono::nanoseconds(time.ns); }

const char* reason(int status) {
  switch (status) {
    case 408: return "Request Timeout";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Bad Request";
  }
}

}  // namespace

void HttpTalk::run() {
  for (int i = 1; i <= kMostRequests; ++i) {
    if (!one(i == kMostRequests) || closed_) return;
  }
}

bool HttpTalk::one(bool last) {
  HeadReader reader;
  if (!read_head(reader)) return false;
  const RequestHead& head = reader.head();
  if (!head.is_page && !slot_.work()) {
    end_with(503, {.where = options_.endpoint,
                   .what = "too many requests are being served",
                   .got = fmt::format("{} requests", options_.max_connections),
                   .fix = "try again in a second"});
    return false;
  }
  RequestStream request(socket_, head, {2 * options_.timeout.ns});
  const bool ends = last || head.is_last || closed_;
  const bool served = serve_(request, ends);
  if (request.broken()) {
    end_with(400, {.where = "the body of the request",
                   .what = "two readers could understand this request differently",
                   .got = "a chunk in another form",
                   .expected = "each chunk as SIZE CR LF BYTES CR LF, without extensions and trailers"});
    return false;
  }
  slot_.rest();
  if (served && !ends && request.drop_body(options_.max_body_bytes) && request.in_step()) return true;
  socket_.end_politely(SocketClock::now() + kFarewell);
  return false;
}

bool HttpTalk::read_head(HeadReader& reader) {
  if (socket_.ahead().empty() &&
      socket_.wait_for_more(in(options_.idle_timeout)) != TimedSocket::Got::kBytes) {
    return false;
  }
  const SocketClock::time_point until = in(options_.head_timeout);
  for (;;) {
    std::size_t used = 0;
    const HeadReader::State state = reader.take(socket_.ahead(), used);
    socket_.use(used);
    if (state == HeadReader::State::kWhole) return true;
    if (state == HeadReader::State::kRefused) {
      end_with(reader.refusal().status, reader.refusal().error);
      return false;
    }
    const TimedSocket::Got got = socket_.wait_for_more(until);
    if (got == TimedSocket::Got::kLate) end_with(408, late());
    if (got != TimedSocket::Got::kBytes) return false;
  }
}

Error HttpTalk::late() const {
  return {.where = "the head of the request",
          .what = "the head of the request did not arrive",
          .got = fmt::format("a part of it in {} s", options_.head_timeout.ns / 1'000'000'000),
          .expected = "the whole head",
          .fix = "send it without pauses"};
}

void HttpTalk::end_with(int status, const Error& error) {
  slot_.rest();
  const std::string body = http_error(status, error).body;
  const std::string reply = fmt::format(
      "HTTP/1.1 {} {}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: "
      "{}\r\n{}\r\n{}",
      status, reason(status), body.size(), status == 503 ? "Retry-After: 1\r\n" : "", body);
  const SocketClock::time_point until = SocketClock::now() + kFarewell;
  if (socket_.send(reply, until)) socket_.end_politely(until);
}

}  // namespace gossamer::host
