// SPDX-License-Identifier: Apache-2.0
//
// For tests: a network that takes everything and never answers. Thread rule: the test's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/api/network.h"
#include "net/link/frame.h"

namespace gossamer::net {

class CountingNetwork final : public host::Network {
 public:
  Result<host::Endpoint> listen(const host::Endpoint& at, host::Lane) override { return at; }
  host::ConnectionId connect(const host::Endpoint&, host::Lane) override {
    return host::ConnectionId{++dialed};
  }
  void send(host::ConnectionId, Slices frame) override {
    queued += total_bytes(frame);
    if (keeps) sent.push_back(decode_frame(std::move(frame))->header);
  }
  void consumed(host::ConnectionId, std::uint64_t) override {}
  void close(host::ConnectionId) override { ++closed; }
  host::QuestionId ask(const host::Endpoint&, host::Question) override { return {}; }
  void answer(host::QuestionId, Result<std::string>) override {}

  // The kinds of the frames in `sent`.
  [[nodiscard]] std::vector<wire::FrameHeader::KindCase> kinds() const {
    std::vector<wire::FrameHeader::KindCase> kinds;
    for (const wire::FrameHeader& header : sent) kinds.push_back(header.kind_case());
    return kinds;
  }

  std::uint64_t dialed = 0;
  std::uint64_t closed = 0;
  std::uint64_t queued = 0;
  bool keeps = false;  // whether `sent` is written
  std::vector<wire::FrameHeader> sent;
};

}  // namespace gossamer::net
