// SPDX-License-Identifier: Apache-2.0
#include "net/link/channel_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

namespace gossamer::net {
namespace {

constexpr std::uint64_t kMostForServing = 40ULL << 20;
constexpr std::uint64_t kMostForJoining = 16ULL << 20;
constexpr std::uint64_t kMostBulkForJoining = 49'960'000;  // 32 chunks and the manifest of 500 GiB

Error forbidden(std::string got, std::string expected) {
  return {.kind = ErrorKind::kBadData,
          .what = "the peer broke the rules of a channel",
          .got = std::move(got),
          .expected = std::move(expected),
          .fix = "look whether both nodes run the same version"};
}

bool includes(Lanes lanes, host::Lane lane) {
  return lanes == Lanes::kBoth || (lanes == Lanes::kBulk) == (lane == host::Lane::kBulk);
}

}  // namespace

std::string_view name(Sender sender) {
  switch (sender) {
    case Sender::kCoordinator: return "coordinator";
    case Sender::kServing: return "serving member";
    case Sender::kJoining: return "joining member";
  }
  return "";
}

std::string_view name(Receiver receiver) {
  switch (receiver) {
    case Receiver::kCoordinator: return "coordinator";
    case Receiver::kMember: return "member";
    case Receiver::kAny: return "any";
  }
  return "";
}

std::string_view name(Lanes lanes) {
  switch (lanes) {
    case Lanes::kControl: return "control";
    case Lanes::kBulk: return "bulk";
    case Lanes::kBoth: return "both";
  }
  return "";
}

Sender ChannelRules::sender(PeerId peer) const {
  if (peer.node == coordinator_) return Sender::kCoordinator;
  return !serving_ || serving_->contains(peer) ? Sender::kServing : Sender::kJoining;
}

// Members that serve may give each other whole parts of a network, over the bulk lane.
std::uint64_t ChannelRules::most_queued(PeerId peer, host::Lane lane) const {
  const Sender who = sender(peer);
  const bool bulk = lane == host::Lane::kBulk;
  if (table_.empty() || who == Sender::kCoordinator || (bulk && who == Sender::kServing))
    return std::numeric_limits<std::uint64_t>::max();
  if (who == Sender::kServing) return kMostForServing;
  return bulk ? kMostBulkForJoining : kMostForJoining;
}

// Answers to earlier questions may still be under way, so the most that was asked for counts. What an earlier
// life was asked for does not.
void ChannelRules::expect(PeerId from, std::uint32_t channel, std::uint64_t most_bytes) {
  auto& [life, most] = expected_[{from.node, channel}];
  most = life == from.incarnation ? std::max(most, most_bytes) : most_bytes;
  life = from.incarnation;
}

std::uint64_t ChannelRules::most_bytes(PeerId from, const ChannelRule& row) const {
  const auto asked = expected_.find({from.node, row.channel});
  if (asked == expected_.end() || asked->second.first != from.incarnation) return row.most_bytes;
  return std::max(row.most_bytes, asked->second.second);
}

std::optional<Error> ChannelRules::objection(PeerId from, host::Lane lane,
                                             const wire::Data::Start& start) const {
  if (table_.empty()) return std::nullopt;
  const Sender who = sender(from);
  const auto row = std::ranges::find_if(table_, [&](const ChannelRule& one) {
    return one.channel == start.channel() && one.sender == who &&
           (one.receiver == Receiver::kAny || one.receiver == own_);
  });
  if (row == table_.end()) {
    return forbidden(
        fmt::format("a message of a {} to a {} on channel {}", name(who), name(own_), start.channel()),
        "a channel that it may send on");
  }
  if (!includes(row->lanes, lane)) {
    return forbidden(fmt::format("a message of channel {} on the {} lane", start.channel(), host::name(lane)),
                     fmt::format("lane {}", name(row->lanes)));
  }
  const std::uint64_t body = start.body().size();
  const std::uint64_t most = most_bytes(from, *row);
  if (start.payload_bytes() > most || body > most - start.payload_bytes()) {
    return forbidden(fmt::format("{} + {} bytes of a {} on channel {}", body, start.payload_bytes(),
                                 name(who), start.channel()),
                     fmt::format("at most {}", most));
  }
  return std::nullopt;
}

}  // namespace gossamer::net
