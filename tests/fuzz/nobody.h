// SPDX-License-Identifier: Apache-2.0
//
// What a coordinator needs beside its members: a network on which there is nobody, and a workload of four
// things. Thread rule: one owner each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/control/workload.h"
#include "host/api/network.h"

namespace gossamer::fuzz {

inline constexpr std::uint64_t kThings = 4;

// There is nobody: what is said is heard by the witness.
class Nobody final : public host::Network {
 public:
  Result<host::Endpoint> listen(const host::Endpoint& at, host::Lane) override { return at; }
  host::ConnectionId connect(const host::Endpoint&, host::Lane) override { return ++last_; }
  void send(host::ConnectionId, Slices) override {}
  void consumed(host::ConnectionId, std::uint64_t) override {}
  void close(host::ConnectionId) override {}
  host::QuestionId ask(const host::Endpoint&, host::Question) override { return {}; }
  void answer(host::QuestionId, Result<std::string>) override {}

 private:
  host::ConnectionId last_;
};

class Things final : public cluster::Workload {
 public:
  [[nodiscard]] std::vector<placement::Thing> things() const override {
    std::vector<placement::Thing> things;
    for (std::uint64_t i = 0; i < kThings; ++i)
      things.push_back({.id = placement::ThingId(i), .bytes = 1 << 20, .work = 1 + static_cast<double>(i)});
    return things;
  }
  [[nodiscard]] bool readable(const std::string& report) const override { return report.size() < 8; }
  [[nodiscard]] cluster::Decision decide(const cluster::Rest& rest) override {
    return {.bytes = "go on", .committed = rest.committed};
  }
};

}  // namespace gossamer::fuzz
