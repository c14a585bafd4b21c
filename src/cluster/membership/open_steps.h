// SPDX-License-Identifier: Apache-2.0
//
// OpenSteps: may members end the step that is open before they rest for a change of the view, and for how
// long? (docs/protocols/membership.md, "A change that can wait".) The caller knows which changes are in
// order, and what ends the waiting. It carries out what follows: a change that can wait no longer begins
// anew, as one that cannot.
//
// Thread rule: one owner.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace gossamer::cluster {

class OpenSteps {
 public:
  // Members end the same step within moments of each other, as they see the same records.
  static constexpr Duration kEndTime{10'000'000'000};

  enum class State : std::uint8_t {
    kBarred,   // this coordinator has installed no view
    kNone,     // no change is under way that can wait
    kOpen,     // one is, and no member has rested that had a step open
    kClosing,  // one is, and others have kEndTime left
  };
  enum class Event : std::uint8_t { kInstalled, kBegins, kStepEnded, kTimeOver, kTrouble, kOver };

  // Whether a change that begins now can wait, as far as this object knows.
  [[nodiscard]] bool may_begin() const { return state_ == State::kNone; }
  // Whether members may still be in a step.
  [[nodiscard]] bool waits() const { return state_ == State::kOpen || state_ == State::kClosing; }
  [[nodiscard]] State state() const { return state_; }
  // Whether the event means something in this state. If so, the state follows from it.
  bool take(Event event, Instant now);
  [[nodiscard]] bool is_due(Instant now) const { return until_ && *until_ <= now; }
  [[nodiscard]] std::optional<Instant> next_look() const { return until_; }

  // The table of transitions in Markdown, for people.
  [[nodiscard]] static std::string transitions();

 private:
  struct Row {
    State from;
    Event event;
    State to;
    std::string_view why;
  };
  static constexpr std::array<Row, 9> kRows{{
      {State::kBarred, Event::kInstalled, State::kNone, "what the coordinator before knew is settled"},
      {State::kNone, Event::kBegins, State::kOpen, "nobody need stop within a step"},
      {State::kOpen, Event::kStepEnded, State::kClosing, "all others have seen the same records"},
      {State::kOpen, Event::kTrouble, State::kNone, "the step may never end"},
      {State::kOpen, Event::kOver, State::kNone, "nothing is left to wait for"},
      {State::kClosing, Event::kStepEnded, State::kClosing, "the time counts from the first one"},
      {State::kClosing, Event::kTimeOver, State::kNone, "a member lacks what others have seen"},
      {State::kClosing, Event::kTrouble, State::kNone, "the step may never end"},
      {State::kClosing, Event::kOver, State::kNone, "nothing is left to wait for"},
  }};
  [[nodiscard]] static std::string_view word(State state);
  [[nodiscard]] static std::string_view words(Event event);

  State state_ = State::kBarred;
  std::optional<Instant> until_;
};

inline bool OpenSteps::take(Event event, Instant now) {
  const auto found =
      std::ranges::find_if(kRows, [&](const Row& row) { return row.from == state_ && row.event == event; });
  if (found == kRows.end()) return false;
  if (found->to != State::kClosing) until_.reset();
  if (found->to == State::kClosing && !until_) until_ = now + kEndTime;
  state_ = found->to;
  return true;
}

inline std::string_view OpenSteps::word(State state) {
  switch (state) {
    case State::kBarred: return "barred";
    case State::kNone: return "none";
    case State::kOpen: return "open";
    case State::kClosing: return "closing";
  }
  return "";
}

inline std::string_view OpenSteps::words(Event event) {
  switch (event) {
    case Event::kInstalled: return "this coordinator installs its first view";
    case Event::kBegins: return "a change in order begins, and no trouble is known";
    case Event::kStepEnded: return "a member that had a step open has ended it, and rests";
    case Event::kTimeOver: return "10 s are over";
    case Event::kTrouble: return "a member seems dead; a link is lost; a dispute; the run stands still";
    case Event::kOver: return "all rest, or a change begins that cannot wait";
  }
  return "";
}

inline std::string OpenSteps::transitions() {
  std::string text = "| from | event | to | why |\n|---|---|---|---|\n";
  for (const Row& row : kRows) {
    text += "| `" + std::string(word(row.from)) + "` | " + std::string(words(row.event)) + " | `" +
            std::string(word(row.to)) + "` | " + std::string(row.why) + " |\n";
  }
  return text;
}

}  // namespace gossamer::cluster
