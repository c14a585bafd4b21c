// SPDX-License-Identifier: Apache-2.0
#include "net/link/link_states.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "net/link/connection.h"

namespace gossamer::net {
namespace {

using State = ConnectionState;
using Event = ConnectionEvent;
using Action = ConnectionAction;

// The rows as they stand in the comment of links.h.
std::string as_comment() {
  std::string text;
  for (const ConnectionTransition& row : kConnectionTransitions) {
    text += fmt::format("//   {:<10}  {:<19}  {:<10}  {:<21}  {}\n", name(row.from), name(row.event),
                        name(row.to), name(row.action), row.why);
  }
  return text;
}

// The rows as they stand in docs/protocols/link.md.
std::string as_page() {
  std::string text =
      "<!-- states of a link -->\n| from | event | to | action | why |\n|---|---|---|---|---|\n";
  for (const ConnectionTransition& row : kConnectionTransitions) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n", name(row.from), name(row.event), name(row.to),
                        name(row.action), row.why);
  }
  return text + "<!-- end of the states -->\n";
}

// A file of the tree.
std::string text_of(const std::string& path) {
  const std::ifstream file(std::string(GOSSAMER_TREE) + "/" + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The comment of links.h and the page of the protocol show the rows of the table, all of them and no others.
TEST(LinkStates, TextsShowTheRows) {
  EXPECT_NE(text_of("src/net/link/links.h").find("//\n" + as_comment() + "//\n"), std::string::npos)
      << "src/net/link/links.h should say:\n"
      << as_comment();
  EXPECT_NE(text_of("docs/protocols/link.md").find(as_page()), std::string::npos)
      << "docs/protocols/link.md should say:\n"
      << as_page();
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

// A connection without a link ends none and brings no lane down. One that comes to leave has said why. One
// comes up by a Hello or a Welcome alone.
TEST(LinkStates, ActionsFitStates) {
  const std::set<State> without_link{State::kNew, State::kAccepted, State::kLeaving};
  const std::set<Action> touches_link{Action::kLaneDown, Action::kEndLink, Action::kSayRefusalAndEnd};
  const std::set<Action> last_words{Action::kSayRefusal, Action::kSayRefusalAndEnd, Action::kSayGoodbye};
  for (const ConnectionTransition& row : kConnectionTransitions) {
    SCOPED_TRACE(testing::Message() << name(row.from) << ", " << name(row.event));
    EXPECT_FALSE(without_link.contains(row.from) && touches_link.contains(row.action));
    EXPECT_EQ(row.to == State::kLeaving && row.from != State::kLeaving, last_words.contains(row.action));
    EXPECT_EQ(row.to == State::kUp && row.from != State::kUp,
              row.event == Event::kHello || row.event == Event::kWelcome);
  }
}

// A connection goes where its row says, and waits for a Welcome less long than for other signs of life.
TEST(LinkStates, ConnectionAdvances) {
  Connection connection;
  EXPECT_EQ(connection.advance(Event::kWeDial), Action::kNothing);
  EXPECT_EQ(connection.patience(), Connection::kSilence);
  EXPECT_EQ(connection.advance(Event::kOpened), Action::kSayHello);
  EXPECT_EQ(connection.state, State::kHelloSent);
  EXPECT_EQ(connection.patience(), Connection::kGreetingTime);
  EXPECT_EQ(connection.advance(Event::kWelcome), Action::kLaneUp);
  EXPECT_EQ(connection.patience(), Connection::kSilence);
  EXPECT_EQ(connection.advance(Event::kFault), Action::kSayRefusalAndEnd);
  EXPECT_EQ(connection.state, State::kLeaving);
}

}  // namespace
}  // namespace gossamer::net
