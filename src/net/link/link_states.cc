// SPDX-License-Identifier: Apache-2.0
#include "net/link/link_states.h"

#include <algorithm>

#include "base/check.h"

namespace gossamer::net {

const ConnectionTransition& transition(ConnectionState from, ConnectionEvent event) {
  const auto* const row = std::ranges::find_if(kConnectionTransitions, [&](const ConnectionTransition& one) {
    return one.from == from && one.event == event;
  });
  CHECK(row != kConnectionTransitions.end(), name(from), name(event));
  return *row;
}

std::string_view name(ConnectionState state) {
  switch (state) {
    case ConnectionState::kNew: return "new";
    case ConnectionState::kDialing: return "dialing";
    case ConnectionState::kHelloSent: return "hello sent";
    case ConnectionState::kAccepted: return "accepted";
    case ConnectionState::kUp: return "up";
    case ConnectionState::kLeaving: return "leaving";
    case ConnectionState::kGone: return "gone";
  }
  return {};
}

std::string_view name(ConnectionEvent event) {
  switch (event) {
    case ConnectionEvent::kWeDial: return "we dial";
    case ConnectionEvent::kPeerDials: return "peer dials";
    case ConnectionEvent::kOpened: return "open";
    case ConnectionEvent::kOpenedOther: return "open, another node";
    case ConnectionEvent::kHello: return "Hello";
    case ConnectionEvent::kHelloRefused: return "Hello, objection";
    case ConnectionEvent::kWelcome: return "Welcome";
    case ConnectionEvent::kWelcomeWrong: return "Welcome, wrong";
    case ConnectionEvent::kFinalRefusal: return "Refusal, final";
    case ConnectionEvent::kOtherRefusal: return "Refusal, other";
    case ConnectionEvent::kWrongProgress: return "wrong progress";
    case ConnectionEvent::kTraffic: return "Data, Ack, Ping ...";
    case ConnectionEvent::kGoodbye: return "Goodbye";
    case ConnectionEvent::kFault: return "broken rule";
    case ConnectionEvent::kAnyFrame: return "any frame";
    case ConnectionEvent::kClosed: return "closed";
    case ConnectionEvent::kSilence: return "silence";
    case ConnectionEvent::kUserCloses: return "user closes link";
    case ConnectionEvent::kUserFences: return "user fences peer";
    case ConnectionEvent::kReplaced: return "later connection";
    case ConnectionEvent::kLinkEnds: return "link ends";
  }
  return {};
}

std::string_view name(ConnectionAction action) {
  switch (action) {
    case ConnectionAction::kNothing: return "-";
    case ConnectionAction::kServe: return "serve lane";
    case ConnectionAction::kSayHello: return "say Hello";
    case ConnectionAction::kSayWelcome: return "say Welcome, lane up";
    case ConnectionAction::kLaneUp: return "lane up";
    case ConnectionAction::kLaneDown: return "lane down";
    case ConnectionAction::kSayRefusal: return "say Refusal";
    case ConnectionAction::kSayRefusalAndEnd: return "say Refusal, end link";
    case ConnectionAction::kSayGoodbye: return "say Goodbye";
    case ConnectionAction::kEndLink: return "end link";
    case ConnectionAction::kHangUp: return "hang up";
  }
  return {};
}

}  // namespace gossamer::net
