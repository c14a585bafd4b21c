// SPDX-License-Identifier: Apache-2.0
//
// SimQuestions: the questions of one SimNetwork. Each travels on a simulated connection of its own, as a
// frame of its size each way. So all that happens to connections happens to questions too. Thread rule: the
// thread that moves the timeline.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "host/api/network.h"
#include "host/sim/internet.h"

namespace gossamer::host {

class SimQuestions {
 public:
  // Answered and Asked go to `sink`, which dies with the process.
  SimQuestions(SimNetwork& network, SimInternet& internet, std::weak_ptr<NetworkSink> sink)
      : network_(network), internet_(internet), sink_(std::move(sink)) {}

  [[nodiscard]] QuestionId ask(const Endpoint& to, Question question);
  void answer(QuestionId question, Result<std::string> answer);

  // What happens to the connections that carry questions.
  void on(NetworkEvent event);

 private:
  struct Outgoing {
    ConnectionId connection;
    std::string where;
  };
  struct Incoming {
    ConnectionId connection;
    PeerName peer;
    std::string from;
  };

  void on_event(const Opened& event);
  void on_event(Accepted event);
  void on_event(const Received& event);
  void on_event(const Closed& event);

  // Ends a question of ours with an error after a while, if it has not ended.
  void end_after(Duration time, QuestionId question, const Error& error);
  void end(QuestionId question, Result<std::string> answer);

  SimNetwork& network_;
  SimInternet& internet_;
  std::weak_ptr<NetworkSink> sink_;
  QuestionId last_;
  std::map<QuestionId, Outgoing> outgoing_;
  std::map<QuestionId, Incoming> incoming_;
  std::map<ConnectionId, QuestionId> by_connection_;
};

}  // namespace gossamer::host
