// SPDX-License-Identifier: Apache-2.0
#include "commands/engine/loss_watch.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gossamer::commands {
namespace {

// Decides what it is told to. Of its two things, the second marks track 9, and node 5 contradicts.
class Told final : public cluster::Workload {
 public:
  [[nodiscard]] std::vector<placement::Thing> things() const override {
    return {{.id = placement::ThingId(3)}, {.id = placement::ThingId(4)}};
  }
  [[nodiscard]] std::optional<placement::ThingId> thing_of(cluster::TrackId track) const override {
    return track == cluster::TrackId(9) ? std::optional(placement::ThingId(4)) : std::nullopt;
  }
  [[nodiscard]] bool readable(const std::string& report) const override { return report == "good"; }
  [[nodiscard]] std::set<NodeId> contradicting(
      const std::map<NodeId, membership::Frozen>& reports) const override {
    return reports.contains(NodeId(5)) ? std::set{NodeId(5)} : std::set<NodeId>();
  }
  [[nodiscard]] cluster::Decision decide(const cluster::Rest&) override { return decision; }
  cluster::Decision decision;
};

// Claim: a part is lost once a decision that says so is installed. A trial loses nothing: the coordinator
// asks also whether it could go on without a member. A failure without a decision is none of a part. The loss
// is noted at that moment, once.
TEST(LossWatch, NotesWhatIsInstalled) {
  Told told;
  int notes = 0;
  LossWatch watch(told, [&notes] { ++notes; });
  const cluster::View view;
  const std::map<NodeId, membership::Frozen> reports;
  const cluster::HoldingMap holdings;
  const cluster::Rest rest{.view = view, .reports = reports, .before = holdings, .after = holdings};
  told.decision = {.bytes = "who held what", .failure = Error{.what = "it is lost"}};
  EXPECT_TRUE(watch.decide(rest).failure.has_value());
  EXPECT_FALSE(watch.lost().has_value());
  watch.installed({.failure = Error{.what = "too many parts"}});
  EXPECT_FALSE(watch.lost().has_value());
  watch.installed({.bytes = "the holders"});
  EXPECT_FALSE(watch.lost().has_value());
  EXPECT_EQ(notes, 0);
  watch.installed(watch.decide(rest));
  EXPECT_EQ(notes, 1);
  ASSERT_TRUE(watch.lost().has_value());
  EXPECT_EQ(watch.lost()->what, "it is lost");
}

// Claim: all that the coordinator asks beside decisions is answered by the workload that is watched.
TEST(LossWatch, PassesQuestionsOn) {
  Told told;
  const LossWatch watch(told, [] {});
  const auto things = watch.things();
  ASSERT_EQ(things.size(), 2U);
  EXPECT_EQ(things[1].id, placement::ThingId(4));
  EXPECT_EQ(watch.thing_of(cluster::TrackId(9)), placement::ThingId(4));
  EXPECT_EQ(watch.thing_of(cluster::TrackId(8)), std::nullopt);
  EXPECT_TRUE(watch.readable("good"));
  EXPECT_FALSE(watch.readable("bad"));
  std::map<NodeId, membership::Frozen> reports;
  EXPECT_TRUE(watch.contradicting(reports).empty());
  reports[NodeId(5)] = {};
  EXPECT_EQ(watch.contradicting(reports), std::set{NodeId(5)});
}

}  // namespace
}  // namespace gossamer::commands
