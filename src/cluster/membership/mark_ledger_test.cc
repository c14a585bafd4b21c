// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/mark_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace gossamer::cluster {
namespace {

const std::vector<TrackId> kTracks = {TrackId(4), TrackId(7)};

Mark mark_of(std::uint64_t track, std::uint64_t by, std::uint64_t next) {
  return {TrackId(track), Incarnation(by), StepNumber(next)};
}

// A ledger beside a model worked out anew from the list of all reports, and the rows as a store keeps them.
class CheckedMarks {
 public:
  explicit CheckedMarks(const std::vector<TrackId>& tracks) : tracks_(tracks), ledger_(tracks) {}

  void applied(const Mark& mark) {
    const auto known = std::find(tracks_.begin(), tracks_.end(), mark.track) != tracks_.end();
    const auto place = reports_.find({mark.track, mark.by});
    const bool raises = place == reports_.end() || place->second < mark.next;
    const MarkAnswer answer = ledger_.applied(mark);
    EXPECT_EQ(answer.outcome, fenced_.contains(mark.by) ? MarkOutcome::kFenced
                              : !known                  ? MarkOutcome::kNoTrack
                              : !raises                 ? MarkOutcome::kNothingNew
                                                        : MarkOutcome::kRaised);
    if (answer.outcome == MarkOutcome::kRaised) {
      reports_[{mark.track, mark.by}] = mark.next;
      rows_[{mark.track, mark.by}] = mark;
    }
    std::optional<StepNumber> least = StepNumber(UINT64_MAX);
    for (const TrackId track : tracks_) least = std::min(least, at(track));
    EXPECT_EQ(answer.committed_rose, least > std::optional(committed_));
    if (answer.committed_rose) committed_ = committed_row_ = *least;
  }

  void correct(StepNumber to) {
    bool contradicted = reports_.empty();
    for (const TrackId track : tracks_) contradicted |= at(track) && *at(track) < to;
    const CorrectionOutcome outcome = ledger_.correct(to);
    EXPECT_EQ(outcome, to == committed_  ? CorrectionOutcome::kNothingNew
                       : to < committed_ ? CorrectionOutcome::kBehind
                       : contradicted    ? CorrectionOutcome::kContradicted
                                         : CorrectionOutcome::kRaised);
    if (outcome == CorrectionOutcome::kRaised) committed_ = committed_row_ = to;
  }

  void fence(Incarnation incarnation) {
    ledger_.fence(incarnation);
    fenced_.insert(incarnation);
    fenced_row_.fence(incarnation);
    std::erase_if(reports_, [&](const auto& report) { return report.first.second == incarnation; });
  }

  void check() const {
    EXPECT_EQ(ledger_.committed(), committed_);
    StepNumber resume = committed_;
    for (const TrackId track : tracks_) {
      EXPECT_EQ(ledger_.mark(track), at(track));
      resume = std::max(resume, at(track).value_or(StepNumber(0)));
    }
    EXPECT_EQ(ledger_.resume_step(), resume);
    MarkLedger::Rows rows = {.marks = {}, .committed = committed_row_};
    for (const auto& [key, row] : rows_) rows.marks.push_back(row);
    std::reverse(rows.marks.begin(), rows.marks.end());
    EXPECT_EQ(MarkLedger(tracks_, fenced_row_, rows).rows(), ledger_.rows());
    EXPECT_EQ(MarkLedger(tracks_, fenced_row_, ledger_.rows()).rows(), ledger_.rows());
  }

  [[nodiscard]] StepNumber committed() const { return committed_; }

 private:
  [[nodiscard]] std::optional<StepNumber> at(TrackId track) const {
    std::optional<StepNumber> at;
    for (const auto& [key, next] : reports_) {
      if (key.first == track) at = std::max(at, std::optional(next));
    }
    return at;
  }

  std::vector<TrackId> tracks_;
  MarkLedger ledger_;
  std::map<std::pair<TrackId, Incarnation>, StepNumber> reports_;  // of incarnations that are not fenced
  std::set<Incarnation> fenced_;
  StepNumber committed_;
  std::map<std::pair<TrackId, Incarnation>, Mark> rows_;  // rows of fenced incarnations stay
  StepNumber committed_row_;
  FencedIncarnations fenced_row_;
};

// committed() trails the slowest of two tracks, outcome by outcome, while the holder of one dies.
TEST(MarkLedger, TrailsTheSlowestTrack) {
  MarkLedger ledger(kTracks);
  EXPECT_FALSE(ledger.applied(mark_of(4, 1, 9)).committed_rose);
  EXPECT_EQ(ledger.committed(), StepNumber(0));
  EXPECT_TRUE(ledger.applied(mark_of(7, 2, 8)).committed_rose);
  EXPECT_EQ(ledger.committed(), StepNumber(8));
  EXPECT_EQ(ledger.applied(mark_of(7, 2, 8)).outcome, MarkOutcome::kNothingNew);
  EXPECT_EQ(ledger.applied(mark_of(7, 2, 3)).outcome, MarkOutcome::kNothingNew);
  EXPECT_EQ(ledger.applied(mark_of(5, 2, 3)).outcome, MarkOutcome::kNoTrack);

  ledger.fence(Incarnation(2));
  EXPECT_EQ(ledger.applied(mark_of(7, 2, 100)).outcome, MarkOutcome::kFenced);
  EXPECT_EQ(ledger.mark(TrackId(7)), std::nullopt);
  EXPECT_EQ(ledger.resume_step(), StepNumber(9));
  EXPECT_EQ(ledger.correct(StepNumber(10)), CorrectionOutcome::kContradicted);
  EXPECT_EQ(ledger.correct(StepNumber(7)), CorrectionOutcome::kBehind);
  EXPECT_EQ(ledger.correct(StepNumber(9)), CorrectionOutcome::kRaised);

  // The new holder of the lost track replays from its snapshot. committed() stays where it is.
  EXPECT_FALSE(ledger.applied(mark_of(7, 3, 4)).committed_rose);
  EXPECT_EQ(ledger.committed(), StepNumber(9));
  EXPECT_FALSE(ledger.applied(mark_of(4, 1, 11)).committed_rose);
  EXPECT_TRUE(ledger.applied(mark_of(7, 3, 10)).committed_rose);
  EXPECT_EQ(ledger.committed(), StepNumber(10));

  ledger.fence(Incarnation(1));
  ledger.fence(Incarnation(3));
  EXPECT_EQ(ledger.correct(StepNumber(11)), CorrectionOutcome::kContradicted);
  EXPECT_EQ(ledger.correct(StepNumber(10)), CorrectionOutcome::kNothingNew);
}

// Does one of thirteen things with two incarnations and marks 1 and 2.
void do_one_mark_call(CheckedMarks& ledger, std::uint64_t what) {
  const std::uint64_t by = 1 + what % 2;
  if (what < 8) {
    ledger.applied(mark_of(what / 2 % 2 == 0 ? 4 : 7, by, 1 + what / 4));
  } else if (what < 10) {
    ledger.fence(Incarnation(by));
  } else {
    ledger.correct(StepNumber(what - 10));
  }
}

void try_all_mark_calls(const CheckedMarks& before, int depth, const std::string& history) {
  if (depth == 0 || ::testing::Test::HasFailure()) return;
  for (std::uint64_t what = 0; what < 13; ++what) {
    CheckedMarks ledger = before;
    const std::string so_far = history + " " + std::to_string(what);
    SCOPED_TRACE(so_far);
    do_one_mark_call(ledger, what);
    EXPECT_GE(ledger.committed(), before.committed());
    ledger.check();
    try_all_mark_calls(ledger, depth - 1, so_far);
  }
}

// All sequences of five reports, fencings and corrections agree with the list of all reports. The rows
// written on the way make the same ledger.
TEST(MarkLedger, EqualsTheListOfReportsInAllShortHistories) {
  try_all_mark_calls(CheckedMarks(kTracks), 5, "did");
}

// Long random histories of up to five tracks agree with the list, too.
TEST(MarkLedger, EqualsTheListOfReportsInLongHistories) {
  for (std::uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, Purpose::kTest);
    std::vector<TrackId> tracks;
    for (std::uint64_t i = 0; i <= rng.below(5); ++i) tracks.emplace_back(i * i);
    CheckedMarks ledger(tracks);
    std::uint64_t newest = 3;
    for (std::uint64_t i = 0; i < 200; ++i) {
      const StepNumber before = ledger.committed();
      const std::uint64_t by = newest - rng.below(3);
      switch (rng.below(25)) {
        case 0:
          ledger.fence(Incarnation(by));
          ++newest;
          break;
        case 1: ledger.correct(StepNumber(before.value + rng.below(4))); break;
        default: {
          const std::uint64_t next = before.value + rng.below(5) - std::min<std::uint64_t>(before.value, 1);
          ledger.applied({tracks[rng.below(tracks.size())], Incarnation(by), StepNumber(next)});
        }
      }
      EXPECT_GE(ledger.committed(), before);
      ledger.check();
    }
  }
}

// A run of shards in lockstep. The holder of each shard applies a step when all have come so far. It reports
// now and then over links that reorder. It may die with all its shards. Survivors then report exactly,
// committed() is corrected to the lowest of them, and a new holder replays the lost shards from a snapshot.
class Lockstep {
 public:
  explicit Lockstep(std::uint64_t seed) : rng_(seed, Purpose::kTest), ledger_(tracks()) {
    for (std::uint64_t i = 0; i < kShards; ++i) holders_[TrackId(i)] = {Incarnation(1 + i / 2), 0};
  }

  void step() {
    const TrackId track = TrackId(rng_.below(kShards));
    auto& [by, next] = holders_[track];
    switch (rng_.below(30)) {
      case 0: view_change(by); break;
      case 1:
      case 2:
      case 3: sent_.push_back({track, by, StepNumber(next)}); break;
      case 4:
      case 5:
      case 6: deliver(); break;
      default:
        if (next <= slowest()) ++next;
        break;
    }
    EXPECT_GE(ledger_.committed(), before_);
    before_ = ledger_.committed();
    // The living have applied all committed steps, or they replay them for a shard that was lost.
    for (const auto& [id, holder] : holders_) {
      EXPECT_LE(ledger_.committed().value, std::max(holder.second, replay_to_[id]));
    }
  }

  // Without further deaths all holders reach the furthest one and report, and that step is committed.
  void settle() {
    const StepNumber resume = ledger_.resume_step();
    for (auto& [id, holder] : holders_) {
      holder.second = std::max(holder.second, resume.value);
      (void)ledger_.applied({id, holder.first, StepNumber(holder.second)});
    }
    EXPECT_GE(ledger_.committed(), resume);
    EXPECT_EQ(ledger_.committed(), StepNumber(slowest()));
  }

 private:
  static constexpr std::uint64_t kShards = 6;

  static std::vector<TrackId> tracks() {
    std::vector<TrackId> tracks;
    tracks.reserve(kShards);
    for (std::uint64_t i = 0; i < kShards; ++i) tracks.emplace_back(i);
    return tracks;
  }

  [[nodiscard]] std::uint64_t slowest() const {
    std::uint64_t slowest = UINT64_MAX;
    for (const auto& [id, holder] : holders_) slowest = std::min(slowest, holder.second);
    return slowest;
  }

  void deliver() {
    if (sent_.empty()) return;
    const std::size_t which = rng_.below(sent_.size());
    (void)ledger_.applied(sent_[which]);
    if (rng_.below(4) != 0) sent_.erase(sent_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void view_change(Incarnation dead) {
    ledger_.fence(dead);
    std::uint64_t lowest = UINT64_MAX;
    for (const auto& [id, holder] : holders_) {
      if (holder.first == dead) continue;
      (void)ledger_.applied({id, holder.first, StepNumber(holder.second)});
      lowest = std::min(lowest, holder.second);
    }
    const StepNumber too_far = StepNumber(std::max(lowest, ledger_.committed().value) + 1);
    EXPECT_EQ(ledger_.correct(too_far), CorrectionOutcome::kContradicted);
    EXPECT_NE(ledger_.correct(StepNumber(lowest)), CorrectionOutcome::kContradicted);
    const std::uint64_t resume = ledger_.resume_step().value;
    const Incarnation joiner = Incarnation(++last_incarnation_);
    for (auto& [id, holder] : holders_) {
      if (holder.first != dead) continue;
      replay_to_[id] = resume;
      holder = {joiner, holder.second - std::min<std::uint64_t>(holder.second, rng_.below(5))};
    }
  }

  Rng rng_;
  MarkLedger ledger_;
  std::map<TrackId, std::pair<Incarnation, std::uint64_t>> holders_;  // and its first open step
  std::map<TrackId, std::uint64_t> replay_to_;
  std::vector<Mark> sent_;
  std::uint64_t last_incarnation_ = 3;
  StepNumber before_;
};

// committed() never falls, never runs ahead of the applied steps, and catches up after any deaths.
TEST(MarkLedger, NeverAheadOfWhatWasApplied) {
  for (std::uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Lockstep run(seed);
    for (int i = 0; i < 2000; ++i) run.step();
    run.settle();
  }
}

// Claim: an incarnation that gave a track away holds it back no more, and its mark is no proof either.
TEST(MarkLedger, ForgetsWhoHandedATrackOn) {
  const std::array<TrackId, 2> tracks{TrackId(1), TrackId(2)};
  MarkLedger ledger(tracks);
  EXPECT_EQ(ledger.applied({TrackId(1), Incarnation(7), StepNumber(60)}).outcome, MarkOutcome::kRaised);
  EXPECT_EQ(ledger.applied({TrackId(1), Incarnation(8), StepNumber(90)}).outcome, MarkOutcome::kRaised);
  EXPECT_EQ(ledger.applied({TrackId(2), Incarnation(9), StepNumber(90)}).outcome, MarkOutcome::kRaised);
  EXPECT_TRUE(ledger.forget(TrackId(1), Incarnation(7)));
  EXPECT_FALSE(ledger.forget(TrackId(1), Incarnation(7)));
  EXPECT_FALSE(ledger.forget(TrackId(3), Incarnation(7)));
  ledger.fence(Incarnation(8));
  EXPECT_EQ(ledger.mark(TrackId(1)), std::nullopt);
  EXPECT_EQ(ledger.correct(StepNumber(90)), CorrectionOutcome::kNothingNew);
  EXPECT_EQ(ledger.committed(), StepNumber(90));
}

}  // namespace
}  // namespace gossamer::cluster
