// SPDX-License-Identifier: Apache-2.0
//
// StepMember, the table of its phases. All changes of the phase go through advance().
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "engines/pipeline/step/step_member.h"

namespace gossamer::pipeline {

namespace {

std::string_view step_words(StepEvent event) {
  using Event = StepEvent;
  switch (event) {
    case Event::kBegins: return "`Install`: a step begins, and the stage is whole";
    case Event::kApplies: return "`Install`: apply the sum that is held";
    case Event::kLoads: return "`Install`: another stage, or a checkpoint; nothing is left to apply";
    case Event::kNoPart: return "`Install`: no stage, or no step is left";
    case Event::kContradicted:
      return "`Install`: apply a sum that is not held, or begin a step that is applied";
    case Event::kLoaded: return "the stage is whole";
    case Event::kAllAdded: return "`AllBack` of all is here, and all products are added";
    case Event::kSummed: return "the sum is here";
    case Event::kFit: return "all records are here, and fit";
    case Event::kMisfit: return "all records are here, and do not fit";
    case Event::kWritten: return "the update is written, and nothing below is true";
    case Event::kWrittenLoads: return "the update is written, and the layout gives another stage";
    case Event::kWrittenRests:
      return "it is written, or loaded; a change that cannot wait is known, a record wished `rest`, or no "
             "step "
             "is left";
    case Event::kHard: return "a change that cannot wait; a lost link or exchange";
    case Event::kSoft: return "a change that can wait";
    case Event::kFails: return "a piece of computing (Work) fails";
  }
  return "";
}

}  // namespace

const char* phase_name(StepPhase phase) {
  switch (phase) {
    case StepPhase::kResting: return "resting";
    case StepPhase::kLoading: return "loading";
    case StepPhase::kComputing: return "computing";
    case StepPhase::kSumming: return "summing";
    case StepPhase::kGathering: return "gathering";
    case StepPhase::kApplying: return "applying";
    case StepPhase::kLeft: return "left";
  }
  return "";
}

struct StepMember::Table {
  static constexpr Action kBegin{
      &StepMember::begin,
      "once no Work of an earlier attempt runs: clear sums and accumulators; grant "
      "credits; in the first stage begin"};
  static constexpr Action kUpdate{&StepMember::update, "write the update"};
  static constexpr Action kLoad{&StepMember::load, "fetch the stage, and keep the old one"};
  static constexpr Action kReport{&StepMember::say_report, "report"};
  static constexpr Action kStop{&StepMember::stop_and_report,
                                "drop what is queued, stop the exchanges, report"};
  static constexpr Action kKeep{&StepMember::stop_and_report, "keep the sum as refused, report"};
  static constexpr Action kNote{&StepMember::note_hard, "note it"};
  static constexpr Action kWish{&StepMember::note_wish, "wish `rest` in the next record"};
  static constexpr Action kJoinSum{&StepMember::join_sum, "join SUM"};
  static constexpr Action kJoinRecords{&StepMember::join_records, "join RECORDS"};
  static constexpr Action kLeave{&StepMember::leave, "give up its contribution"};
  static constexpr Action kDropPart{&StepMember::drop_part,
                                    "drop the sum; keep the stage, but as no holder of it"};

  static constexpr Phase kResting = Phase::kResting;
  static constexpr Phase kLoading = Phase::kLoading;
  static constexpr Phase kComputing = Phase::kComputing;
  static constexpr Phase kSumming = Phase::kSumming;
  static constexpr Phase kGathering = Phase::kGathering;
  static constexpr Phase kApplying = Phase::kApplying;
  static constexpr Phase kLeft = Phase::kLeft;
  static constexpr std::string_view kCannotEnd = "the attempt cannot end in this view";
  static constexpr std::string_view kOthersWait = "others would wait for it in the step that they have begun";
  static constexpr std::string_view kHalf = "its accumulators, or its stage, may hold a half";

  static constexpr std::array<Transition, 32> kRows{{
      {kResting, Event::kBegins, kComputing, kBegin, "all hold the same state"},
      {kResting, Event::kApplies, kApplying, kUpdate, "all survivors have that sum"},
      {kResting, Event::kLoads, kLoading, kLoad, "a death may make the old stage needed again"},
      {kResting, Event::kNoPart, kResting, kDropPart, "others go on without it"},
      {kResting, Event::kContradicted, kLeft, kLeave, "its weights would not be those of the others"},
      {kResting, Event::kHard, kResting, kReport, "what it says stays true"},
      {kResting, Event::kSoft, kResting, kReport, "nobody waits for it"},
      {kResting, Event::kFails, kLeft, kLeave, kHalf},
      {kLoading, Event::kLoaded, kComputing, kBegin, "others may have begun; they wait for its credits"},
      {kLoading, Event::kWrittenRests, kResting, kReport, "nobody waits for it"},
      {kLoading, Event::kHard, kResting, kStop, kCannotEnd},
      {kLoading, Event::kSoft, kLoading, kWish, kOthersWait},
      {kLoading, Event::kFails, kLeft, kLeave, kHalf},
      {kComputing, Event::kAllAdded, kSumming, kJoinSum, "nothing more can be added"},
      {kComputing, Event::kHard, kResting, kStop, kCannotEnd},
      {kComputing, Event::kSoft, kComputing, kWish, kOthersWait},
      {kComputing, Event::kFails, kLeft, kLeave, kHalf},
      {kSumming, Event::kSummed, kGathering, kJoinRecords, "a record says: I have my sum"},
      {kSumming, Event::kHard, kResting, kStop, kCannotEnd},
      {kSumming, Event::kSoft, kSumming, kWish, kOthersWait},
      {kSumming, Event::kFails, kLeft, kLeave, kHalf},
      {kGathering, Event::kFit, kApplying, kUpdate, "every member has its sum"},
      {kGathering, Event::kMisfit, kResting, kKeep, "the decision says what follows, the same for all"},
      {kGathering, Event::kHard, kResting, kStop, "without all records it may not apply"},
      {kGathering, Event::kSoft, kGathering, kWish, kOthersWait},
      {kGathering, Event::kFails, kLeft, kLeave, kHalf},
      {kApplying, Event::kWritten, kComputing, kBegin, "the next step"},
      {kApplying, Event::kWrittenLoads, kLoading, kLoad, "a death may make the old stage needed again"},
      {kApplying, Event::kWrittenRests, kResting, kReport, "all members have seen the same records"},
      {kApplying, Event::kHard, kApplying, kNote, "an update that has begun ends"},
      {kApplying, Event::kSoft, kApplying, kWish, kOthersWait},
      {kApplying, Event::kFails, kLeft, kLeave, kHalf},
  }};

  // Whether each event has one row at most in each phase.
  static constexpr bool is_clear() {
    for (std::size_t i = 0; i < kRows.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (kRows[i].from == kRows[j].from && kRows[i].event == kRows[j].event) return false;
      }
    }
    return true;
  }
};

void StepMember::advance(Event event, StepActions& todo) {
  static_assert(Table::is_clear());
  Phase from = phase_;
  // A late record moves this member as if it had not come to rest.
  if (is_defective(StepDefect::kLateNorm) && event == Event::kFit) from = Phase::kGathering;
  const auto found = std::ranges::find_if(
      Table::kRows, [&](const Transition& one) { return one.from == from && one.event == event; });
  if (found == Table::kRows.end()) return;  // means nothing in this phase
  phase_ = found->to;
  (this->*found->action.run)(todo);
}

std::string StepMember::transitions() {
  std::string text = "| from | event | to | action | why |\n|---|---|---|---|---|\n";
  for (const Transition& one : Table::kRows) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n", phase_name(one.from), step_words(one.event),
                        phase_name(one.to), one.action.words, one.why);
  }
  return text;
}

}  // namespace gossamer::pipeline
