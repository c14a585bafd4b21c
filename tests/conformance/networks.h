// SPDX-License-Identifier: Apache-2.0
//
// Processes that speak over one of the Networks, as test parameters: gRPC on loopback without and with TLS,
// and the simulated internet in virtual time. Thread rule: the test's thread; events are recorded on it.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/time.h"
#include "host/api/network.h"

namespace gossamer::host {

enum class NetworkKind { kPlain, kTls, kSim };

[[nodiscard]] std::string name(NetworkKind kind);
void PrintTo(NetworkKind kind, std::ostream* out);

// Makes Networks of one kind and moves their events to the test's thread.
class NetworkWorld {
 public:
  static constexpr int kStranger = -1;

  virtual ~NetworkWorld() = default;
  // `sink` is called on the test's thread, from run_until(). `authority` picks the authority of the process's
  // certificate; kStranger has none.
  [[nodiscard]] virtual std::unique_ptr<Network> start(const std::string& process, int authority,
                                                       NetworkSink sink) = 0;
  // Where the process may listen, with port 0.
  [[nodiscard]] virtual Endpoint address(const std::string& process) const = 0;
  [[nodiscard]] virtual Instant now() const = 0;
  // Hands events over until `done`; false if it does not happen within an ample time.
  [[nodiscard]] virtual bool run_until(const std::function<bool()>& done) = 0;
};
[[nodiscard]] std::unique_ptr<NetworkWorld> make_world(NetworkKind kind);

// A process that records its events, and consumes received bytes unless told not to.
struct Recorder {
  std::string name;
  std::unique_ptr<Network> network;
  std::vector<NetworkEvent> events;
  bool consumes = true;

  // The events of one kind, in order.
  template <class Event>
  [[nodiscard]] std::vector<Event> all() const {
    std::vector<Event> found;
    for (const NetworkEvent& event : events) {
      if (const auto* const one = std::get_if<Event>(&event)) found.push_back(*one);
    }
    return found;
  }
};

struct ConnectionPair {
  ConnectionId opener;
  ConnectionId acceptor;
};

class NetworkTest : public ::testing::TestWithParam<NetworkKind> {
 protected:
  void SetUp() override { world_ = make_world(GetParam()); }
  void TearDown() override;

  Recorder& start(const std::string& name, int authority = 0);
  // Listens, or fails the test.
  [[nodiscard]] Endpoint listen(Recorder& process, Lane lane = Lane::kControl);
  // Both ends of a new connection, or fails the test.
  [[nodiscard]] ConnectionPair join(Recorder& from, Recorder& to, const Endpoint& at,
                                    Lane lane = Lane::kControl);

  std::unique_ptr<NetworkWorld> world_;
  std::deque<Recorder> processes_;  // references stay good
};

}  // namespace gossamer::host
