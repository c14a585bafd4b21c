// SPDX-License-Identifier: Apache-2.0
//
// RoomTree: which member has the most room for work, among those with enough free memory. A tournament tree
// whose nodes know the largest room and the largest free memory below them.
//
// Cost: an update walks log2(members) nodes. A question walks about as many, and up to all of them if the
// members with room have no memory. 16 bytes a node. Thread rule: one owner.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "cluster/placement/problem.h"

namespace gossamer::placement {

class RoomTree {
 public:
  // A tree for `members` leaves, all without room.
  explicit RoomTree(std::size_t members);

  // Sets a leaf without looking further; call build() before the next question.
  void preset(Index member, double room, std::uint64_t free_bytes);
  void build();

  void set(Index member, double room, std::uint64_t free_bytes);

  // The member with the most room among those with room >= work and free memory >= bytes; kNowhere if there
  // is none. After kPatience nodes any of these members may be the answer. It depends on the tree's content
  // only.
  [[nodiscard]] Index most_room(double work, std::uint64_t bytes);

  // Nodes looked at so far.
  [[nodiscard]] std::uint64_t probes() const { return probes_; }

  static constexpr std::uint64_t kPatience = 64;

 private:
  struct Node {
    double room = -std::numeric_limits<double>::infinity();
    std::uint64_t free_bytes = 0;
  };
  struct Best {
    double room;
    std::size_t leaf;
  };
  void search(std::size_t node, std::uint64_t bytes, Best& best);
  void join(std::size_t node);

  std::size_t width_;
  std::vector<Node> nodes_;  // children of n: 2n and 2n + 1; leaves from width_ on
  std::uint64_t probes_ = 0;
  std::uint64_t patient_until_ = 0;
};

}  // namespace gossamer::placement
