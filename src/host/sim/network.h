// SPDX-License-Identifier: Apache-2.0
//
// SimNetwork: the Network of one simulated process; SimInternet makes it and does the work. Events arrive on
// the thread that moves the timeline, never inside a call. Thread rule: that thread alone.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "host/api/network.h"
#include "host/sim/internet.h"
#include "host/sim/questions.h"

namespace gossamer::host {

// One end of a connection.
struct SimSide {
  SimMachine* machine = nullptr;
  ConnectionId id;
  std::weak_ptr<NetworkSink> sink;  // expired once its process has ended
  bool open = false;                // Accepted or Opened; before, what is sent waits
  bool ended = false;               // Closed is on its way, or needless
  std::deque<Slices> queue;
  std::uint64_t front_left = 0;   // bytes of the first frame that have not left
  std::uint64_t outstanding = 0;  // cost of what left and the other side has not consumed
  bool in_turn = false;           // waits for its machine's uplink, or uses it
  bool stalled = false;           // the path is cut and `held` waits
  bool watched = false;           // a check for giving up is on its way
  std::optional<SimSegment> held;
  Instant last_arrival{-1};  // when a segment that this side sent arrived last
  Instant last_event{-1};    // when this side's process is handed an event last
  Instant last_soon{-1};     // likewise, of the events that do not wait for a slow downlink
};

struct SimConnection {
  Lane lane = Lane::kControl;
  PeerName opener;
  // Set where the connection carries a question. The frames then have the right sizes only; these are the
  // words.
  std::optional<Question> question;
  std::optional<Result<std::string>> answer;
  std::array<SimSide, 2> sides;  // 0 opened it
};

class SimNetwork final : public Network {
 public:
  SimNetwork(SimInternet& internet, SimMachine& machine, PeerName name, NetworkSink sink);
  ~SimNetwork() override;

  [[nodiscard]] Result<Endpoint> listen(const Endpoint& at, Lane lane) override;
  [[nodiscard]] ConnectionId connect(const Endpoint& to, Lane lane) override;
  void send(ConnectionId connection, Slices frame) override;
  void consumed(ConnectionId connection, std::uint64_t cost) override;
  void close(ConnectionId connection) override;
  [[nodiscard]] QuestionId ask(const Endpoint& to, Question question) override;
  void answer(QuestionId question, Result<std::string> answer) override;

 private:
  friend class SimInternet;
  friend class SimQuestions;
  [[nodiscard]] ConnectionId open(const Endpoint& to, const std::shared_ptr<SimConnection>& connection);
  [[nodiscard]] ConnectionId take(const std::shared_ptr<SimConnection>& connection, int side);

  SimInternet& internet_;
  SimMachine& machine_;
  PeerName name_;
  std::shared_ptr<NetworkSink> sink_;
  SimQuestions questions_;
  std::shared_ptr<NetworkSink> question_sink_;  // of connections that carry questions
  ConnectionId last_;
  std::map<ConnectionId, SimEnd> connections_;
};

}  // namespace gossamer::host
