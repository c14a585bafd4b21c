// SPDX-License-Identifier: Apache-2.0
#include "host/sim/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace gossamer::host {

SimNetwork::SimNetwork(SimInternet& internet, SimMachine& machine, PeerName name, NetworkSink sink)
    : internet_(internet),
      machine_(machine),
      name_(std::move(name)),
      sink_(std::make_shared<NetworkSink>([this, user = std::move(sink)](NetworkEvent event) {
        if (const auto* closed = std::get_if<Closed>(&event)) connections_.erase(closed->connection);
        user(std::move(event));
      })),
      questions_(*this, internet, sink_),
      question_sink_(std::make_shared<NetworkSink>([this](NetworkEvent event) {
        if (const auto* closed = std::get_if<Closed>(&event)) connections_.erase(closed->connection);
        questions_.on(std::move(event));
      })) {}

SimNetwork::~SimNetwork() {
  sink_.reset();
  question_sink_.reset();
  auto& listeners = machine_.listeners;
  std::erase_if(listeners, [this](const auto& entry) { return entry.second.network == this; });
  for (const auto& [id, end] : connections_) {
    internet_.end_side(end, "the process at the other end has ended", SimInternet::Tell::kNobody);
  }
}

Result<Endpoint> SimNetwork::listen(const Endpoint& at, Lane lane) {
  auto& listeners = machine_.listeners;
  Endpoint bound = at;
  const auto refuse = [&](const char* what) {
    return Error{.where = to_string(at), .what = what, .fix = "use another address"};
  };
  if (at.host != machine_.name) return refuse("cannot listen: this machine does not have the address");
  if (bound.port == 0) {
    bound.port = 49152;
    while (listeners.contains(bound.port)) ++bound.port;
  }
  if (listeners.contains(bound.port)) return refuse("cannot listen: the port is taken");
  listeners[bound.port] = {this, lane};
  return bound;
}

ConnectionId SimNetwork::take(const std::shared_ptr<SimConnection>& connection, int side) {
  const ConnectionId id = ++last_;
  SimSide& here = connection->sides[static_cast<std::size_t>(side)];
  here.machine = &machine_;
  here.id = id;
  here.sink = connection->question.has_value() ? question_sink_ : sink_;
  connections_[id] = {connection, side};
  return id;
}

ConnectionId SimNetwork::connect(const Endpoint& to, Lane lane) {
  auto connection = std::make_shared<SimConnection>();
  connection->lane = lane;
  return open(to, connection);
}

ConnectionId SimNetwork::open(const Endpoint& to, const std::shared_ptr<SimConnection>& connection) {
  connection->opener = name_;
  const ConnectionId id = take(connection, 0);
  internet_.open(connection, to);
  return id;
}

QuestionId SimNetwork::ask(const Endpoint& to, Question question) {
  return questions_.ask(to, std::move(question));
}
void SimNetwork::answer(QuestionId question, Result<std::string> answer) {
  questions_.answer(question, std::move(answer));
}

void SimNetwork::send(ConnectionId connection, Slices frame) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  const std::uint64_t bytes = total_bytes(frame);
  // The answer to a question goes the same way.
  CHECK(bytes <= (found->second.connection->question ? kMaxAnswerBytes : kMaxFrameBytes), bytes);
  SimSide& here = found->second.connection->sides[static_cast<std::size_t>(found->second.side)];
  if (here.ended) return;
  for (const Slice& slice : frame) internet_.frames_.add(slice.bytes());
  if (here.queue.empty()) here.front_left = bytes;
  here.queue.push_back(std::move(frame));
  if (here.open) internet_.want_to_send(found->second);
}

void SimNetwork::consumed(ConnectionId connection, std::uint64_t cost) {
  const auto found = connections_.find(connection);
  if (found != connections_.end()) internet_.consumed(found->second, cost);
}

void SimNetwork::close(ConnectionId connection) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  const SimEnd end = found->second;
  if (end.connection->sides[static_cast<std::size_t>(end.side)].ended) return;
  internet_.end_side(end, "closed by the other side", SimInternet::Tell::kNobody);
  internet_.emit(end, internet_.timeline_.now(),
                 Closed{connection, Error{.where = fmt::format("connection {}", connection.value),
                                          .what = "closed on this side"}});
}

}  // namespace gossamer::host
