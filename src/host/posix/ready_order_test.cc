// SPDX-License-Identifier: Apache-2.0
#include "host/posix/ready_order.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace gossamer::host {
namespace {

// Claim: all orders that keep each source's own come up, and no other.
TEST(ReadyOrder, DrawsEveryInterleaving) {
  Rng rng(1, Purpose::kTest);
  std::set<std::string> seen;
  for (int i = 0; i < 500; ++i) {
    std::string order;
    const std::vector<std::string> batch{"a1", "a2", "b1", "b2"};
    for (const std::string& one :
         in_drawn_order(batch, rng, [](const std::string& item) { return EventSource{0, item[0]}; })) {
      order += one;
    }
    seen.insert(order);
  }
  EXPECT_EQ(seen,
            (std::set<std::string>{"a1a2b1b2", "a1b1a2b2", "a1b1b2a2", "b1a1a2b2", "b1a1b2a2", "b1b2a1a2"}));
}

// Claim: events of one connection have one source; connections and questions of equal numbers have not.
TEST(ReadyOrder, SourcesOfEvents) {
  const EventSource connection = source_of(Received{.connection = ConnectionId(3), .frame = {}});
  EXPECT_EQ(connection, source_of(Closed{.connection = ConnectionId(3), .reason = {}}));
  EXPECT_NE(connection, source_of(Received{.connection = ConnectionId(4), .frame = {}}));
  EXPECT_NE(connection, source_of(Answered{.question = QuestionId(3), .answer = std::string()}));
}

}  // namespace
}  // namespace gossamer::host
