// SPDX-License-Identifier: Apache-2.0
//
// Tests only: the part of a coordinator that changes the view, alone. Thread rule: the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cluster/control/changes.h"
#include "cluster/control/test_leadership.h"

namespace gossamer::cluster {

class ChangesTest : public ::testing::Test {
 protected:
  ChangesTest() { changes_.take_up({}, {}); }

  // A node that has begun and come.
  LedMember& come(std::uint64_t node) {
    LedMember& member = around_.add(node, membership::JOINING);
    around_.hear(NodeId(node), {});
    changes_.here(member, {}, {});
    return member;
  }
  bool rest(const LedMember& member, std::uint64_t installed = 0) {
    membership::Frozen said;
    said.set_epoch(around_.run.view.epoch().value);
    said.set_installed(installed);
    if (!changes_.awaits(peer_of(member.record), said)) return false;
    changes_.rests(member, said, {});
    return true;
  }

  // Nodes 10, 11 ... are in the view that is installed.
  void serve(std::uint64_t nodes) {
    for (std::uint64_t node = 10; node < 10 + nodes; ++node) {
      changes_.ready(come(node), {});
      rest_all({});
    }
  }
  void rest_all(Instant now) {
    for (const auto& [node, record] : std::map(around_.run.view.members())) {
      membership::Frozen said;
      said.set_epoch(around_.run.view.epoch().value);
      said.set_installed(around_.run.installed.epoch());
      const LedMember& member = around_.run.members.at(node);
      ASSERT_TRUE(changes_.awaits(peer_of(member.record), said));
      changes_.rests(member, said, now);
    }
    around_.store(now);
  }
  // Returns the keys that were written.
  std::vector<std::string> fence(std::uint64_t node, Changes::Fenced how, Instant now = {}) {
    const net::PeerId peer = peer_of(around_.run.members.at(NodeId(node)).record);
    changes_.about_to_fence(how, now);
    around_.run.members.erase(peer.node);
    changes_.gone(peer);
    changes_.fenced(how, now);
    return around_.store(now);
  }

  [[nodiscard]] static bool all_heard() { return true; }

  // Nodes 10 and 11 are in the view, and 10 alone rests.
  void one_of_two_rests() {
    LedMember& first = come(10);
    LedMember& second = come(11);
    changes_.ready(first, {});
    changes_.ready(second, {});
    EXPECT_TRUE(rest(first));
    around_.store();
    EXPECT_TRUE(rest(first));
  }

  TestLeadership around_;
  Books books_{around_.shared(), Records{}, {}};
  Changes changes_{around_.shared(), books_};
};

}  // namespace gossamer::cluster
