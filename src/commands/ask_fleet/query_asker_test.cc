// SPDX-License-Identifier: Apache-2.0
#include "commands/ask_fleet/query_asker.h"

#include <gossamer/sparse_serving.pb.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/fleet/step/layout_message.h"
#include "net/link/test_simulated_nodes.h"

namespace gossamer::commands {
namespace {

// A lead, and node 2, which has the whole network and never answers. The thread that asks is told to stop,
// and looks once a second.
class QueryAskerTest : public net::LinksTest {
 protected:
  QueryAskerTest() {
    lead_.consumes = false;
    lead_.on_event = [this](const net::LinkEvent& event) {
      if (const auto* const arrived = std::get_if<net::Arrived>(&event)) asker_.on(*arrived, timeline_.now());
    };
    asker_.connect(lead_.links.get());
    desk_.leads({.at = {}, .token = {}, .wake = [](const auto&) {}});
    EXPECT_TRUE(desk_.wait_until_led(timeline_.clock(), {.time = Duration()}).ok());
  }
  net::Node& join_lead(std::uint64_t incarnation, std::uint64_t number = 2) {
    net::Node& node = start(number, incarnation);
    join(node, lead_);
    return node;
  }
  // The node tells that it has these shards of two. Node 3 has the others, and does not tell.
  void ready(net::Node& node, Epoch epoch = Epoch(1), const std::set<std::size_t>& shards = {0, 1}) {
    sparse_serving::Body body;
    body.mutable_ready()->set_epoch(epoch.value);
    sparse::NetworkPart part = with_shards(sparse_engine::no_part(shape_), shape_, shards);
    part.columns = {0, 16};
    sparse_engine::write_part(part, *body.mutable_ready()->mutable_part());
    sparse_engine::Layout layout;
    sparse_engine::LayoutMember& holder = layout.members.emplace_back();
    holder.node = node.id.node;
    holder.after = part;
    if (!shards.contains(1)) {
      sparse_engine::LayoutMember& other = layout.members.emplace_back();
      other.node = NodeId(3);
      other.after = with_shards(sparse_engine::no_part(shape_), shape_, {1});
    }
    asker_.placed(epoch, sparse_engine::write_layout(layout));
    EXPECT_TRUE(node.send(
        lead_.id, host::Lane::kControl,
        {.channel = sparse_engine::kQueryChannel, .body = body.SerializeAsString(), .payload = {}}));
    run_for(1);
  }
  // After how many seconds a question ends for the word to stop; 20: it had all of its time.
  double asked_for(const std::function<void(int second)>& happens) {
    const Instant begin = timeline_.now();
    int second = 0;
    const auto stop = [&] {
      happens(++second);
      for (int i = 0; i < 10; ++i) {
        asker_.tick(timeline_.now());
        lead_.used();
        run_for(0.1);
      }
      return true;
    };
    desk_.gives({.number = asked_, .found = QueryDesk::Found()});  // late: the desk asks again
    const auto found =
        desk_.ask({.number = ++asked_, .begin = {0, 1}, .index = {1}, .value = {1}, .labels = 1},
                  timeline_.clock(), {.time = from_seconds(20), .stop = stop, .after_stop = from_seconds(5)});
    EXPECT_FALSE(found.ok());
    return (timeline_.now() - begin).seconds();
  }

  std::uint64_t asked_ = 0;
  const sparse_engine::FleetShape shape_{.network = {.features = 4, .labels = 10, .hidden = 16},
                                         .shard_shift = 3};
  QueryDesk desk_;
  QueryAsker asker_{{.shape = shape_}, desk_, [this](const std::function<void()>& work, const auto& then) {
                      work();
                      then(timeline_.now());
                    }};
  net::Node& lead_ = start(1);
};

// Claim: a node that is there has all of the time for its answer, also after the word to stop. One that was
// asked before, and is gone, does not count.
TEST_F(QueryAskerTest, WaitsForNodesThatAreThere) {
  net::Node& first = join_lead(1);
  ready(first);
  EXPECT_NEAR(asked_for([](int) {}), 20, 0.1);
  ready(join_lead(1, 3), Epoch(2));
  kill(first);
  EXPECT_NEAR(asked_for([](int) {}), 20, 0.1);
}

// Claim: nobody waits long where no node is asked: none was ever there, another lead begins, or a part is
// away.
TEST_F(QueryAskerTest, EndsWhereNobodyIsAsked) {
  EXPECT_LE(asked_for([](int) {}), 7);
  net::Node& node = join_lead(1);
  ready(node);
  const double led_anew = asked_for([&](int second) {
    if (second == 3) asker_.connect(lead_.links.get());
  });
  EXPECT_GE(led_anew, 7);
  EXPECT_LE(led_anew, 10);
  ready(node, Epoch(2));
  const double parted = asked_for([&](int second) {
    if (second == 3) ready(node, Epoch(3), {0});
  });
  EXPECT_GE(parted, 7);
  EXPECT_LE(parted, 10);
}

// Claim: nobody waits long for a node that is killed, also if it begins again: it does not know the question.
TEST_F(QueryAskerTest, EndsAfterANodeIsKilled) {
  net::Node& node = join_lead(1);
  ready(node);
  const double seconds = asked_for([&](int second) {
    if (second == 3) kill(node);
    if (second == 5) join_lead(2);
  });
  EXPECT_GE(seconds, 7);
  EXPECT_LE(seconds, 10);
}

// Claim: a node that says nothing any more is not there. One that is heard again is.
TEST_F(QueryAskerTest, EndsAfterANodeIsSilent) {
  net::Node& node = join_lead(1);
  ready(node);
  EXPECT_NEAR(asked_for([&](int second) {
                if (second == 2) internet_.pause(node.machine);
                if (second == 9) internet_.resume(node.machine);
              }),
              20, 0.1);
  const double seconds = asked_for([&](int second) {
    if (second == 2) internet_.pause(node.machine);
  });
  EXPECT_GE(seconds, 10);
  EXPECT_LE(seconds, 13);
}

}  // namespace
}  // namespace gossamer::commands
