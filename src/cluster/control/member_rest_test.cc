// SPDX-License-Identifier: Apache-2.0
//
// A member that is told to come to rest, alone.
#include <gtest/gtest.h>

#include <string>

#include "cluster/control/control_message.h"
#include "cluster/control/member_process.h"
#include "cluster/control/test_nobody.h"

namespace gossamer::cluster {
namespace {

class MemberRest : public ::testing::Test {
 protected:
  MemberRest() : process_(options(), network_, {}) {
    process_.tick({});
    membership::BeginAnswer begun;
    begun.set_node(2);
    begun.set_incarnation(3);
    begun.mutable_lead()->set_incarnation(1);
    begun.set_beat_ms(100);
    process_.on(host::Answered{network_.asked(), begun.SerializeAsString()}, {});
  }
  static MemberProcess::Options options() {
    MemberProcess::Options options;
    options.run = "run";
    options.coordinators = {{.host = "there", .port = 1}};
    return options;
  }
  void hear(const membership::ToMember& said) {
    Member& own = *process_.member();
    own.on(net::Arrived{.from = own.coordinator(), .message = pack(said), .receipt = {}}, {});
  }
  void change(std::uint64_t epoch, bool freeze) {
    membership::ToMember said;
    said.mutable_change()->set_from(epoch - 1);
    said.mutable_change()->set_epoch(epoch);
    said.mutable_change()->set_freeze(freeze);
    hear(said);
  }
  void install(std::uint64_t epoch) {
    membership::ToMember said;
    said.mutable_install()->set_epoch(epoch);
    hear(said);
  }
  [[nodiscard]] bool at_rest() { return process_.member()->at_rest(); }

  Nobody network_;
  MemberProcess process_;
};

// Claim: a member rests from the view with which it is told to until the placement of that view, whether its
// engine has come to rest or not. A view that asks for no rest, in a run that asks for none, is none.
TEST_F(MemberRest, LastsUntilTheInstall) {
  change(1, false);
  EXPECT_FALSE(at_rest());
  change(2, true);
  EXPECT_TRUE(at_rest());
  change(3, true);
  install(2);
  EXPECT_TRUE(at_rest()) << "another view follows";
  install(3);
  EXPECT_FALSE(at_rest());
}

}  // namespace
}  // namespace gossamer::cluster
