// SPDX-License-Identifier: Apache-2.0
//
// StepRecord: what each member gives all others once it has its sum (docs/protocols/pipeline-step.md, "A
// record has"). look_at() says whether the records of a step fit together, and which members differ from
// most ("Records that do not fit").
//
// Records that fit go on fitting while members leave: whatever some records say against an attempt, all
// records say, too. So a step that was applied fits by the records of any survivors.
//
// Thread rule: plain values, pure functions.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/ids.h"
#include "engines/pipeline/step/layout.h"

namespace gossamer::pipeline {

// What a member wishes once a step is done. Bits.
enum StepWish : std::uint8_t { kWishRest = 1, kWishCheckpoint = 2, kWishEnd = 4 };
// What was not finite in a step. Bits.
enum NotFinite : std::uint8_t {
  kSentZeros = 1,   // this member gave zeros in place of numbers that were not finite
  kGivenZeros = 2,  // others did: a boundary, a gradient or the sum says so
};

struct StepRecord {
  std::uint64_t hash = 0;  // of the sum
  double squared_norm = 0;
  std::uint64_t root = 0;            // of the stage before this step
  double loss = 0;                   // summed over the tokens; 0 before the last stage
  std::uint64_t tokens = 0;          // that this member has added to its accumulators
  std::uint64_t records_before = 0;  // hash of all records of the step before; 0: there was an Install
  std::uint8_t not_finite = 0;
  std::uint8_t wishes = 0;

  // Records are compared by their bits: NaN equals no number, not even itself.
  [[nodiscard]] auto bits() const {
    return std::tuple(hash, std::bit_cast<std::uint64_t>(squared_norm), root,
                      std::bit_cast<std::uint64_t>(loss), tokens, records_before, not_finite, wishes);
  }
  std::strong_ordering operator<=>(const StepRecord& other) const { return bits() <=> other.bits(); }
  bool operator==(const StepRecord& other) const { return bits() == other.bits(); }
};

using Records = std::map<NodeId, StepRecord>;

// Equal records of equal members give equal hashes; never 0.
[[nodiscard]] std::uint64_t hash_of(const Records& records);
// What the records wish, together.
[[nodiscard]] std::uint8_t wishes_of(const Records& records);
// Squared norm of the whole gradient: for each stage that of its lowest node, added in the order of stages.
// Requires a stage for each record.
[[nodiscard]] double total_norm(const Records& records, const Stages& stages);

// A row of "Records that do not fit".
struct RecordsFit {
  enum class Row {
    kFit,
    kDiffer,     // `named` differ from more than half of their stage, or of all
    kDispute,    // `named` differ, and none of them is like more than half
    kTokens,     // a stage has not added the tokens of the step
    kNotFinite,  // norm or loss is not finite, or zeros stand for what was not
  };
  Row row = Row::kFit;
  std::set<NodeId> named = {};
  bool operator==(const RecordsFit&) const = default;
};

// `stages`: of all members of the attempt. Some of them may have given no record, as they are gone. What they
// have added is not known, so a stage that lacks a record may have any number of tokens up to `tokens`. That
// is how many the step has; nothing: it is not looked at. Requires a stage for each record.
[[nodiscard]] RecordsFit look_at(const Records& records, const Stages& stages,
                                 std::optional<std::uint64_t> tokens);

}  // namespace gossamer::pipeline
