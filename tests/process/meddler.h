// SPDX-License-Identifier: Apache-2.0
//
// For tests: the real network in front of a hostile member, which can keep back what is sent, and be deaf.
// Thread rule: one owner, but its events come from any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "host/api/network.h"

namespace gossamer::host {

class Meddler final : public Network {
 public:
  void attach(std::unique_ptr<Network> real) { real_ = std::move(real); }
  [[nodiscard]] Network& real() { return *real_; }

  // From now on each connection of the lane carries so many bytes more, and nothing after that.
  void keep_back_after(Lane lane, std::uint64_t bytes) {
    for (const auto& [id, its] : lanes_) {
      if (its == lane) room_[id] = bytes;
    }
  }
  // From now on nothing is read on connections of which this is true.
  void be_deaf(std::function<bool(ConnectionId, Lane)> deaf) { deaf_ = std::move(deaf); }
  // Whether each connection of the lane carries no more, and all that it carried has left.
  [[nodiscard]] bool has_kept_back(Lane lane) const {
    return !room_.empty() && std::ranges::all_of(room_, [&](const auto& one) {
      const auto sent = unwritten_.find(one.first);
      return lanes_.at(one.first) != lane || sent == unwritten_.end() ||
             (one.second == 0 && sent->second == 0);
    });
  }
  void note(const NetworkEvent& event) {
    if (const auto* const written = std::get_if<Written>(&event))
      unwritten_[written->connection] -= written->bytes;
    if (const auto* const closed = std::get_if<Closed>(&event)) unwritten_.erase(closed->connection);
  }
  // Whether the event is for the process.
  [[nodiscard]] bool hears(const NetworkEvent& event) const {
    const auto* const received = std::get_if<Received>(&event);
    if (received == nullptr || !deaf_) return true;
    const auto lane = lanes_.find(received->connection);
    return lane == lanes_.end() || !deaf_(received->connection, lane->second);
  }
  // The connections to the coordinator, which are dialed first.
  [[nodiscard]] bool is_first(ConnectionId id) const { return first_.contains(id); }
  // All ports that were dialed.
  [[nodiscard]] const std::set<std::pair<Endpoint, Lane>>& dialed() const { return dialed_; }

  Result<Endpoint> listen(const Endpoint& at, Lane lane) override { return real_->listen(at, lane); }
  ConnectionId connect(const Endpoint& to, Lane lane) override {
    const ConnectionId id = real_->connect(to, lane);
    lanes_[id] = lane;
    dialed_.emplace(to, lane);
    if (first_.size() < kLanes) first_.insert(id);
    return id;
  }
  void send(ConnectionId connection, Slices frame) override {
    const auto room = room_.find(connection);
    if (room != room_.end()) {
      const std::uint64_t bytes = total_bytes(frame);
      if (bytes > room->second) room->second = 0;
      if (room->second == 0) return;
      room->second -= bytes;
    }
    unwritten_[connection] += total_bytes(frame);
    real_->send(connection, std::move(frame));
  }
  void consumed(ConnectionId connection, std::uint64_t cost) override { real_->consumed(connection, cost); }
  void close(ConnectionId connection) override { real_->close(connection); }
  QuestionId ask(const Endpoint& to, Question question) override {
    return real_->ask(to, std::move(question));
  }
  void answer(QuestionId question, Result<std::string> answer) override {
    real_->answer(question, std::move(answer));
  }

 private:
  std::unique_ptr<Network> real_;
  std::map<ConnectionId, Lane> lanes_;
  std::map<ConnectionId, std::uint64_t> room_;
  std::map<ConnectionId, std::uint64_t> unwritten_;
  std::set<ConnectionId> first_;
  std::set<std::pair<Endpoint, Lane>> dialed_;
  std::function<bool(ConnectionId, Lane)> deaf_;
};

}  // namespace gossamer::host
