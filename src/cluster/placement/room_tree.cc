// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/room_tree.h"

#include <algorithm>
#include <bit>

namespace gossamer::placement {

RoomTree::RoomTree(std::size_t members)
    : width_(std::bit_ceil(std::max<std::size_t>(members, 1))), nodes_(2 * width_) {}

void RoomTree::preset(Index member, double room, std::uint64_t free_bytes) {
  nodes_[width_ + member] = {room, free_bytes};
}

void RoomTree::join(std::size_t node) {
  const Node& left = nodes_[2 * node];
  const Node& right = nodes_[2 * node + 1];
  nodes_[node] = {std::max(left.room, right.room), std::max(left.free_bytes, right.free_bytes)};
}

void RoomTree::build() {
  for (std::size_t node = width_; node-- > 1;) join(node);
}

void RoomTree::set(Index member, double room, std::uint64_t free_bytes) {
  preset(member, room, free_bytes);
  for (std::size_t node = (width_ + member) / 2; node > 0; node /= 2) join(node);
}

void RoomTree::search(std::size_t node, std::uint64_t bytes, Best& best) {
  ++probes_;
  const Node& here = nodes_[node];
  if (here.free_bytes < bytes || here.room < best.room) return;
  if (best.leaf != 0 && (here.room == best.room || probes_ > patient_until_)) return;
  if (node >= width_) {
    best = {here.room, node};
    return;
  }
  // The better half goes first, because its result usually rules out the other.
  const std::size_t left = 2 * node;
  const std::size_t better = nodes_[left].room >= nodes_[left + 1].room ? left : left + 1;
  search(better, bytes, best);
  search(better ^ 1, bytes, best);
}

Index RoomTree::most_room(double work, std::uint64_t bytes) {
  patient_until_ = probes_ + kPatience;
  Best best{.room = work, .leaf = 0};
  search(1, bytes, best);
  return best.leaf == 0 ? kNowhere : static_cast<Index>(best.leaf - width_);
}

}  // namespace gossamer::placement
