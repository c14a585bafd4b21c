// SPDX-License-Identifier: Apache-2.0
//
// The states of a connection, and the transitions between them as data. docs/protocols/link.md shows the same
// rows (LinkStates.PageShowsTheRows). A connection changes its state by Connection::advance() alone, which
// takes the row of its state and an event.
//
// Thread rule: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace gossamer::net {

enum class ConnectionState : std::uint8_t {
  kNew,        // this node dials it or accepts it just now
  kDialing,    // ours: not open yet
  kHelloSent,  // ours: waits for Welcome
  kAccepted,   // theirs: waits for Hello, and belongs to no link yet
  kUp,         // carries a lane of a link
  kLeaving,    // belongs to no link any more: our last frame is said, and the other side should close
  kGone,       // forgotten
};

enum class ConnectionEvent : std::uint8_t {
  kWeDial,         // for a lane of a link
  kPeerDials,      // the network has accepted a connection, and there is room for it (strangers.h)
  kOpened,         // the network has reached the other end
  kOpenedOther,    // likewise, and that end has another node's certificate
  kHello,          // without objection
  kHelloRefused,   // with an objection
  kWelcome,        // as expected
  kWelcomeWrong,   // from another node or incarnation, or with another wire version
  kFinalRefusal,   // with a reason that does not pass
  kOtherRefusal,   // with another reason: busy, protocol
  kWrongProgress,  // the other side has what was never sent, or lacks what was forgotten
  kTraffic,        // Data, Ack, Ping, Pong, and frames of a relay
  kGoodbye,        // the other side leaves on purpose
  kFault,          // a frame that is malformed or out of place
  kAnyFrame,       // whatever it says
  kClosed,         // by the network or the other side
  kSilence,        // for too long
  kUserCloses,     // the link, for the lane that says Goodbye: control
  kUserFences,     // the peer, likewise
  kReplaced,       // the peer has opened a later connection for the lane
  kLinkEnds,       // or is taken over; the user or another connection brought the reason
};

// What is to be done beside the change of state. A lane that is down belongs to a link that stays. The node
// that opened the link dials the lane again after a wait.
enum class ConnectionAction : std::uint8_t {
  kNothing,
  kServe,  // takes what the frame brings, and sends what may be sent
  kSayHello,
  kSayWelcome,  // and the lane is up
  kLaneUp,
  kLaneDown,  // hangs up
  kSayRefusal,
  kSayRefusalAndEnd,  // the link
  kSayGoodbye,
  kEndLink,  // hangs up
  kHangUp,
};

struct ConnectionTransition {
  ConnectionState from;
  ConnectionEvent event;
  ConnectionState to;
  ConnectionAction action;
  std::string_view why;
};

inline constexpr auto kConnectionTransitions = [] {
  using S = ConnectionState;
  using E = ConnectionEvent;
  using A = ConnectionAction;
  return std::to_array<ConnectionTransition>({
      {S::kNew, E::kWeDial, S::kDialing, A::kNothing, "the lane has no connection"},
      {S::kNew, E::kPeerDials, S::kAccepted, A::kNothing, "the opener speaks first"},

      {S::kDialing, E::kOpened, S::kHelloSent, A::kSayHello, "the opener speaks first"},
      {S::kDialing, E::kOpenedOther, S::kGone, A::kLaneDown, "its words count for nothing here"},
      {S::kDialing, E::kFault, S::kGone, A::kLaneDown, "no frame may come yet"},
      {S::kDialing, E::kClosed, S::kGone, A::kLaneDown, "the peer may be there later"},
      {S::kDialing, E::kSilence, S::kGone, A::kLaneDown, "10 s: the way may be open later"},
      {S::kDialing, E::kLinkEnds, S::kGone, A::kHangUp, "no lane needs it any more"},

      {S::kHelloSent, E::kWelcome, S::kUp, A::kLaneUp, "each end knows what the other has"},
      {S::kHelloSent, E::kWelcomeWrong, S::kLeaving, A::kSayRefusalAndEnd,
       "the peer has the link, and we do not"},
      {S::kHelloSent, E::kFinalRefusal, S::kGone, A::kEndLink, "trying again would give the same"},
      {S::kHelloSent, E::kOtherRefusal, S::kGone, A::kLaneDown, "the reason may pass"},
      {S::kHelloSent, E::kFault, S::kGone, A::kLaneDown, "the next answer may be a better one"},
      {S::kHelloSent, E::kClosed, S::kGone, A::kLaneDown, "the peer may be there later"},
      {S::kHelloSent, E::kSilence, S::kGone, A::kLaneDown, "5 s: a Welcome takes less"},
      {S::kHelloSent, E::kLinkEnds, S::kGone, A::kHangUp, "no lane needs it any more"},

      {S::kAccepted, E::kHello, S::kUp, A::kSayWelcome, "each end knows what the other has"},
      {S::kAccepted, E::kHelloRefused, S::kLeaving, A::kSayRefusal, "the opener should know the reason"},
      {S::kAccepted, E::kFault, S::kLeaving, A::kSayRefusal, "the opener should know the reason"},
      {S::kAccepted, E::kClosed, S::kGone, A::kHangUp, "it belongs to no link"},
      {S::kAccepted, E::kSilence, S::kGone, A::kHangUp, "5 s: its place is for others"},

      {S::kUp, E::kTraffic, S::kUp, A::kServe, "the messages travel so"},
      {S::kUp, E::kWrongProgress, S::kGone, A::kEndLink, "what is lost cannot be sent again"},
      {S::kUp, E::kFinalRefusal, S::kGone, A::kEndLink, "the peer has ended the link"},
      {S::kUp, E::kOtherRefusal, S::kGone, A::kEndLink, "the peer has ended the link"},
      {S::kUp, E::kGoodbye, S::kGone, A::kEndLink, "the peer has ended the link"},
      {S::kUp, E::kFault, S::kLeaving, A::kSayRefusalAndEnd, "trying again would give the same"},
      {S::kUp, E::kClosed, S::kGone, A::kLaneDown, "the next connection goes on from here"},
      {S::kUp, E::kSilence, S::kGone, A::kLaneDown, "10 s: not even a Pong came"},
      {S::kUp, E::kUserCloses, S::kLeaving, A::kSayGoodbye, "hanging up would lose the Goodbye"},
      {S::kUp, E::kUserFences, S::kLeaving, A::kSayRefusalAndEnd, "the peer should know of its fence"},
      {S::kUp, E::kReplaced, S::kGone, A::kHangUp, "the peer has lost it already"},
      {S::kUp, E::kLinkEnds, S::kGone, A::kHangUp, "no lane needs it any more"},

      {S::kLeaving, E::kAnyFrame, S::kLeaving, A::kNothing, "our last word is said"},
      {S::kLeaving, E::kClosed, S::kGone, A::kHangUp, "it belongs to no link"},
      {S::kLeaving, E::kSilence, S::kGone, A::kHangUp, "5 s: the other side does not close"},
  });
}();

// The row of a state and an event. Requires that there is one.
[[nodiscard]] const ConnectionTransition& transition(ConnectionState from, ConnectionEvent event);

// As the tables show them.
[[nodiscard]] std::string_view name(ConnectionState state);
[[nodiscard]] std::string_view name(ConnectionEvent event);
[[nodiscard]] std::string_view name(ConnectionAction action);

}  // namespace gossamer::net
