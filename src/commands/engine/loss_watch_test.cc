// SPDX-License-Identifier: Apache-2.0
#include "commands/engine/loss_watch.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace gossamer::commands {
namespace {

// Decides what it is told to.
class Told final : public cluster::Workload {
 public:
  [[nodiscard]] std::vector<placement::Thing> things() const override { return {}; }
  [[nodiscard]] bool readable(const std::string&) const override { return true; }
  [[nodiscard]] cluster::Decision decide(const cluster::Rest&) override { return decision; }
  cluster::Decision decision;
};

// Claim: a part is lost once a decision that says so is installed. A trial loses nothing: the coordinator
// asks also whether it could go on without a member. A failure without a decision is none of a part.
TEST(LossWatch, NotesWhatIsInstalled) {
  Told told;
  LossWatch watch(told);
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
  watch.installed(watch.decide(rest));
  ASSERT_TRUE(watch.lost().has_value());
  EXPECT_EQ(watch.lost()->what, "it is lost");
}

}  // namespace
}  // namespace gossamer::commands
