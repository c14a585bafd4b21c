// SPDX-License-Identifier: Apache-2.0
#include "net/link/link_states.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "net/link/connection.h"

namespace gossamer::net {
namespace {

using State = ConnectionState;
using Event = ConnectionEvent;
using Action = ConnectionAction;

// The rows as docs/protocols/link.md shows them.
std::string as_block() {
  std::string text = "<!-- link-states -->\n| from | event | to | action | why |\n|---|---|---|---|---|\n";
  for (const ConnectionTransition& row : kConnectionTransitions) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n", name(row.from), name(row.event), name(row.to),
                        name(row.action), row.why);
  }
  return text + "<!-- /link-states -->\n";
}

// The page of the protocol shows the rows of the table, all of them and no others.
TEST(LinkStates, PageShowsTheRows) {
  std::ifstream page(GOSSAMER_LINK_PAGE);
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  EXPECT_NE(text.find(as_block()), std::string::npos) << "docs/protocols/link.md should say:\n" << as_block();
}

// A state and an event have one row at most, and nothing comes after `gone`.
TEST(LinkStates, OneRowEach) {
  std::set<std::pair<State, Event>> seen;
  for (const ConnectionTransition& row : kConnectionTransitions) {
    EXPECT_TRUE(seen.insert({row.from, row.event}).second) << name(row.from) << ", " << name(row.event);
    EXPECT_EQ(&transition(row.from, row.event), &row);
    EXPECT_NE(row.from, State::kGone);
    EXPECT_FALSE(row.why.empty());
  }
}

// Each state is reached from `new`. From each a connection may be closed or fall silent, and is then gone.
TEST(LinkStates, NoneIsForEver) {
  std::set<State> reached{State::kNew};
  for (std::size_t before = 0; before < reached.size();) {
    before = reached.size();
    for (const ConnectionTransition& row : kConnectionTransitions)
      if (reached.contains(row.from)) reached.insert(row.to);
  }
  for (const State state :
       {State::kDialing, State::kHelloSent, State::kAccepted, State::kUp, State::kLeaving}) {
    EXPECT_TRUE(reached.contains(state)) << name(state);
    EXPECT_EQ(transition(state, Event::kClosed).to, State::kGone) << name(state);
    EXPECT_EQ(transition(state, Event::kSilence).to, State::kGone) << name(state);
  }
  EXPECT_TRUE(reached.contains(State::kGone));
}

// A connection without a link ends none and brings no lane down. A connection is gone when it hangs up, and
// only then. A connection that comes to leave has said why. It comes up by a Hello or a Welcome alone.
TEST(LinkStates, ActionsFitStates) {
  const std::set<State> without_link{State::kNew, State::kAccepted, State::kLeaving};
  const std::set<Action> touches_link{Action::kLaneDown, Action::kEndLink, Action::kSayRefusalAndEnd};
  const std::set<Action> hangs_up{Action::kHangUp, Action::kLaneDown, Action::kEndLink};
  const std::set<Action> last_words{Action::kSayRefusal, Action::kSayRefusalAndEnd, Action::kSayGoodbye};
  for (const ConnectionTransition& row : kConnectionTransitions) {
    SCOPED_TRACE(testing::Message() << name(row.from) << ", " << name(row.event));
    EXPECT_FALSE(without_link.contains(row.from) && touches_link.contains(row.action));
    EXPECT_EQ(row.to == State::kGone, hangs_up.contains(row.action));
    EXPECT_EQ(row.to == State::kLeaving && row.from != State::kLeaving, last_words.contains(row.action));
    EXPECT_EQ(row.to == State::kUp && row.from != State::kUp,
              row.event == Event::kHello || row.event == Event::kWelcome);
    EXPECT_EQ(row.action == Action::kSayHello, row.to == State::kHelloSent);
    EXPECT_EQ(row.action == Action::kSayWelcome, row.event == Event::kHello);
    EXPECT_EQ(row.action == Action::kLaneUp, row.event == Event::kWelcome);
  }
}

// A connection goes where its row says, and waits 5 s for a Welcome, and 10 s for other signs of life.
TEST(LinkStates, ConnectionAdvances) {
  Connection connection;
  EXPECT_EQ(connection.advance(Event::kWeDial), Action::kNothing);
  EXPECT_EQ(connection.patience(), from_seconds(10));
  EXPECT_EQ(connection.advance(Event::kOpened), Action::kSayHello);
  EXPECT_EQ(connection.state, State::kHelloSent);
  EXPECT_EQ(connection.patience(), from_seconds(5));
  EXPECT_EQ(connection.advance(Event::kWelcome), Action::kLaneUp);
  EXPECT_EQ(connection.patience(), Connection::kSilence);
  EXPECT_EQ(connection.advance(Event::kFault), Action::kSayRefusalAndEnd);
  EXPECT_EQ(connection.state, State::kLeaving);
}

}  // namespace
}  // namespace gossamer::net
