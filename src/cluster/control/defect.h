// SPDX-License-Identifier: Apache-2.0
//
// Defect: one protection switched off, so that the simulation can show that it would be missed
// (`gossamer simulate PRESET break=NAME`). Never set outside a simulation. Thread rule: plain value.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace gossamer::cluster {

enum class Defect {
  kNone,
  kNoFencing,           // the dead leave the view, but what they say still counts
  kReplyBeforePersist,  // answers do not wait for the store
  kLostLedgerWrite,     // granted claims are not written
  kStaleLease,          // a lease is given away while its holder may count on it
  kOldGeneration,       // a coordinator that was replaced goes on, and members obey it
  kNoGuard,             // the store takes writes of a coordinator that was replaced
  kAcceptDuplicate,     // a claim for an id that is claimed already is granted
  kNoFreeze,            // a view is installed before all members rest
  kForgottenMember,     // the record of a member is not written
  kUnprovenRenewal,     // a lease is renewed without proof that this coordinator still leads
  kNarrowLease,         // only the first key of a range is asked for
  kEarlyCommit,         // a step is committed before all have applied it
  kForgottenRequest,    // unanswered requests are not repeated
  kOldNews,             // a broken connection is reported as a lost link, for ever
  kChatter,             // the placement is said again after every beat
  kMarksOfAnybody,      // a member may mark the track of a thing that it does not hold
  kShortMemory,         // the cost of an accusation is not remembered
  kOpenCommit,          // a step is committed before all of its samples are claimed
  kKeptClaims,          // fencing a member frees none of its claims
  kClaimsOfAnybody,     // a member that does not serve may claim and commit
  kSilenceOfLink,       // a lane counts as heard while the other lane of its link is
  kKeptLeases,          // fencing a member frees none of its leases
  kSilenceFences,       // a silent member is fenced though nobody is heard that could take over
  kNoWitness,           // a silent member is fenced though others hear it
  kFreezeTimeFences,    // a member is late at rest though its engine works
  kNeverResigns,        // a leader that hears nobody stays, though another one stands by
  kLossUnasked,         // a silent member is fenced though others lack what it holds
  kNoOtherWay,          // a broken pair of members does not try the coordinator's relay
  kEndlessQuarrel,      // that one member breaks rules towards another again and again does not count
};

struct DefectName {
  Defect defect;
  std::string_view name;
  std::string_view sentence;
};

// What shows in `cluster-chaos`.
inline constexpr std::array<DefectName, 27> kDefects{{
    {Defect::kNoFencing, "no-fencing", "the dead leave the view, but what they say still counts"},
    {Defect::kReplyBeforePersist, "reply-before-persist", "answers do not wait for the store"},
    {Defect::kLostLedgerWrite, "lost-ledger-write", "granted claims are not written"},
    {Defect::kStaleLease, "stale-lease", "a lease is given away while its holder may count on it"},
    {Defect::kOldGeneration, "old-generation",
     "a coordinator that was replaced goes on, and members obey it"},
    {Defect::kNoGuard, "no-guard", "the store takes writes of a coordinator that was replaced"},
    {Defect::kAcceptDuplicate, "accept-duplicate", "a claim for what is claimed already is granted"},
    {Defect::kNoFreeze, "no-freeze", "a view is installed before all have come to rest"},
    {Defect::kForgottenMember, "forgotten-member", "the record of a member is not written"},
    {Defect::kUnprovenRenewal, "unproven-renewal",
     "a lease is renewed without proof that this coordinator still leads"},
    {Defect::kNarrowLease, "narrow-lease", "of a range only the first key is asked for"},
    {Defect::kEarlyCommit, "early-commit", "a step is committed before all have taken it"},
    {Defect::kForgottenRequest, "forgotten-request", "what was not answered is not asked again"},
    {Defect::kOldNews, "old-news", "a broken connection is reported as a lost link, for ever"},
    {Defect::kChatter, "chatter", "the placement is said again after every beat"},
    {Defect::kMarksOfAnybody, "marks-of-anybody",
     "a member that does not hold a thing may say how far it is"},
    {Defect::kShortMemory, "short-memory", "a member whose accusations cost a life is not remembered"},
    {Defect::kOpenCommit, "open-commit", "a step is committed before all of its samples are claimed"},
    {Defect::kKeptClaims, "kept-claims", "fencing a member frees none of its claims"},
    {Defect::kClaimsOfAnybody, "claims-of-anybody", "a member that does not serve may claim and commit"},
    {Defect::kSilenceOfLink, "silence-of-link", "a lane counts as heard while the other of its link is"},
    {Defect::kKeptLeases, "kept-leases", "fencing a member frees none of its leases"},
    {Defect::kSilenceFences, "silence-fences",
     "silence alone fences: nobody need be left to take over, and nobody is asked"},
    {Defect::kNoWitness, "no-witness", "that others hear a silent member does not count"},
    {Defect::kFreezeTimeFences, "freeze-time-fences",
     "a member that does not rest in the freeze time is late, though its engine works"},
    {Defect::kNeverResigns, "never-resigns", "a leader that hears nobody stays, though another stands by"},
    {Defect::kNoOtherWay, "no-other-way", "a broken pair does not try the coordinator's relay"},
}};

// What shows where members have something to lose: `sparse-chaos`.
inline constexpr std::array<DefectName, 3> kTrainingDefects{{
    {Defect::kNoFreeze, "no-freeze", "a view is installed before all have come to rest"},
    {Defect::kLossUnasked, "loss-unasked", "a silent member is fenced though others lack what it holds"},
    {Defect::kEndlessQuarrel, "endless-quarrel", "rules may be broken towards one member for ever"},
}};

// None for an unknown name.
[[nodiscard]] constexpr std::optional<Defect> defect_of(std::string_view name) {
  for (const DefectName& one : kDefects) {
    if (one.name == name) return one.defect;
  }
  return std::nullopt;
}

}  // namespace gossamer::cluster
