// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership/claim_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/rng.h"

namespace gossamer::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Ids = std::map<std::uint64_t, std::uint64_t>;  // id -> incarnation, 0 for none

constexpr TrackId kTrack = TrackId(5);

Claim claim_of(std::uint64_t step, std::uint64_t begin, std::uint64_t end, std::uint64_t by,
               TrackId track = kTrack) {
  return {track, StepNumber(step), {SampleId(begin), SampleId(end)}, Incarnation(by)};
}

Ids ids_of(const std::vector<Claim>& runs) {
  Ids ids;
  for (const Claim& run : runs) {
    for (SampleId id = run.ids.begin; id < run.ids.end; ++id) {
      EXPECT_TRUE(ids.emplace(id.value, run.by.value).second) << "id " << id.value << " twice in one answer";
    }
  }
  return ids;
}

// A ledger beside a model of plain maps, and the rows as a store keeps them. All must agree after every call.
class CheckedClaims {
 public:
  CheckedClaims(std::uint64_t batch, const std::vector<TrackId>& tracks)
      : batch_(batch), tracks_(tracks), ledger_(batch, tracks) {
    for (const TrackId track : tracks) next_[track] = 0;
  }

  ClaimAnswer claim(const Claim& claim) {
    const ClaimAnswer answer = ledger_.claim(claim);
    const std::uint64_t begin = claim.ids.begin.value;
    const std::uint64_t end = claim.ids.end.value;
    const std::uint64_t step = claim.step.value;
    EXPECT_EQ(answer.outcome, outcome_of(claim));
    Ids granted;
    Ids taken;
    if (answer.outcome == ClaimOutcome::kAnswered) {
      Ids& claimed = claimed_[{claim.track, step}];
      for (std::uint64_t id = begin; id < end; ++id) {
        const bool is_free = claimed.emplace(id, claim.by.value).second;
        (is_free ? granted : taken)[id] = claimed[id];
      }
    }
    EXPECT_EQ(ids_of(answer.granted), granted);
    EXPECT_EQ(ids_of(answer.taken), taken);
    for (const Claim& row : answer.granted) rows_[{row.track, row.step, row.ids.begin}] = row;
    return answer;
  }

  CommitOutcome commit(TrackId track, std::uint64_t step) {
    const CommitOutcome outcome = ledger_.commit(track, StepNumber(step));
    EXPECT_EQ(outcome, outcome_of(track, step));
    if (outcome == CommitOutcome::kCommitted) ++next_[track];
    return outcome;
  }

  void fence(Incarnation incarnation) {
    fenced_.insert(incarnation);
    fenced_rows_.fence(incarnation);
    std::map<std::pair<TrackId, std::uint64_t>, Ids> model;
    for (auto& [place, claimed] : claimed_) {
      if (place.second < next_[place.first]) continue;
      for (auto id = claimed.begin(); id != claimed.end();) {
        const bool is_freed = id->second == incarnation.value;
        if (is_freed) model[place].insert(*id);
        id = is_freed ? claimed.erase(id) : std::next(id);
      }
    }
    std::map<std::pair<TrackId, std::uint64_t>, Ids> answered;
    for (const Claim& run : ledger_.fence(incarnation))
      answered[{run.track, run.step.value}].merge(ids_of({run}));
    EXPECT_EQ(answered, model);
  }

  // Compares every answer of the ledger, and a ledger made anew from the rows, stale ones among them.
  void check() {
    std::uint64_t least = UINT64_MAX;
    for (const TrackId track : tracks_) {
      least = std::min(least, next_[track]);
      EXPECT_EQ(ledger_.next(track), StepNumber(next_[track]));
      for (std::uint64_t step = next_[track]; step < next_[track] + 3; ++step) {
        const Ids& claimed = claimed_[{track, step}];
        EXPECT_EQ(ids_of(ledger_.claims(track, StepNumber(step))), claimed);
        std::uint64_t missing = 0;
        for (const SampleRange& run : ledger_.missing(track, StepNumber(step))) {
          missing += run.end.value - run.begin.value;
          for (SampleId id = run.begin; id < run.end; ++id) EXPECT_FALSE(claimed.contains(id.value));
        }
        EXPECT_EQ(missing + claimed.size(), batch_);
      }
    }
    EXPECT_EQ(ledger_.committed(), StepNumber(least));
    ClaimLedger::Rows rows;
    for (const auto& [track, next] : next_) rows.commits.push_back({track, StepNumber(next)});
    for (const auto& [key, row] : rows_) rows.claims.push_back(row);
    std::reverse(rows.claims.begin(), rows.claims.end());
    EXPECT_EQ(ClaimLedger(batch_, tracks_, fenced_rows_, rows).rows(), ledger_.rows());
    EXPECT_EQ(ClaimLedger(batch_, tracks_, fenced_rows_, ledger_.rows()).rows(), ledger_.rows());
  }

  [[nodiscard]] const ClaimLedger& ledger() const { return ledger_; }
  std::uint64_t next(TrackId track) { return next_[track]; }

 private:
  ClaimOutcome outcome_of(const Claim& claim) {
    const std::uint64_t first = claim.step.value * batch_;
    const bool of_step = claim.ids.begin < claim.ids.end && claim.ids.begin.value >= first &&
                         claim.ids.end.value <= first + batch_;
    if (fenced_.contains(claim.by)) return ClaimOutcome::kFenced;
    if (!next_.contains(claim.track)) return ClaimOutcome::kNoTrack;
    if (!of_step) return ClaimOutcome::kNotOfStep;
    return claim.step.value < next_[claim.track] ? ClaimOutcome::kCommitted : ClaimOutcome::kAnswered;
  }

  CommitOutcome outcome_of(TrackId track, std::uint64_t step) {
    if (!next_.contains(track)) return CommitOutcome::kNoTrack;
    if (step < next_[track]) return CommitOutcome::kAlready;
    if (step > next_[track]) return CommitOutcome::kEarlierOpen;
    return claimed_[{track, step}].size() < batch_ ? CommitOutcome::kIncomplete : CommitOutcome::kCommitted;
  }

  std::uint64_t batch_;
  std::vector<TrackId> tracks_;
  ClaimLedger ledger_;
  std::map<TrackId, std::uint64_t> next_;
  std::map<std::pair<TrackId, std::uint64_t>, Ids> claimed_;
  std::set<Incarnation> fenced_;
  FencedIncarnations fenced_rows_;
  std::map<std::tuple<TrackId, StepNumber, SampleId>, Claim> rows_;
};

// Each outcome occurs, id by id, with one track of three ids a step.
TEST(ClaimLedger, AnswersIdById) {
  CheckedClaims ledger(3, {kTrack});
  EXPECT_THAT(ledger.claim(claim_of(0, 1, 3, 7)).granted, ElementsAre(claim_of(0, 1, 3, 7)));
  const ClaimAnswer second = ledger.claim(claim_of(0, 0, 3, 8));
  EXPECT_THAT(second.granted, ElementsAre(claim_of(0, 0, 1, 8)));
  EXPECT_THAT(second.taken, ElementsAre(claim_of(0, 1, 3, 7)));
  EXPECT_THAT(ledger.claim(claim_of(0, 2, 3, 7)).taken, ElementsAre(claim_of(0, 2, 3, 7)));
  EXPECT_EQ(ledger.claim(claim_of(0, 2, 4, 7)).outcome, ClaimOutcome::kNotOfStep);
  EXPECT_EQ(ledger.claim(claim_of(1, 2, 4, 7)).outcome, ClaimOutcome::kNotOfStep);
  EXPECT_EQ(ledger.claim(claim_of(0, 2, 2, 7)).outcome, ClaimOutcome::kNotOfStep);
  EXPECT_EQ(ledger.claim(claim_of(UINT64_MAX, 2, 3, 7)).outcome, ClaimOutcome::kNotOfStep);
  EXPECT_EQ(ledger.claim(claim_of(0, 0, 1, 7, TrackId(6))).outcome, ClaimOutcome::kNoTrack);
  EXPECT_EQ(ledger.commit(kTrack, 1), CommitOutcome::kEarlierOpen);
  ledger.fence(Incarnation(8));
  EXPECT_EQ(ledger.claim(claim_of(0, 0, 1, 8)).outcome, ClaimOutcome::kFenced);
  EXPECT_EQ(ledger.commit(kTrack, 0), CommitOutcome::kIncomplete);
  EXPECT_THAT(ledger.claim(claim_of(0, 0, 1, 9)).granted, ElementsAre(claim_of(0, 0, 1, 9)));
  EXPECT_EQ(ledger.commit(kTrack, 0), CommitOutcome::kCommitted);
  EXPECT_EQ(ledger.commit(kTrack, 0), CommitOutcome::kAlready);
  EXPECT_EQ(ledger.claim(claim_of(0, 0, 1, 9)).outcome, ClaimOutcome::kCommitted);
  ledger.fence(Incarnation(7));
  EXPECT_EQ(ledger.ledger().committed(), StepNumber(1));
  EXPECT_THAT(ledger.ledger().rows().claims, IsEmpty());
}

// Does one of thirteen things to a ledger of two ids a step, in steps 0 and 1.
void do_one_claim_call(CheckedClaims& ledger, int what) {
  const std::uint64_t by = what % 2 == 0 ? 1 : 2;
  switch (what / 2) {
    case 0: (void)ledger.claim(claim_of(0, 0, 1, by)); break;
    case 1: (void)ledger.claim(claim_of(0, 1, 2, by)); break;
    case 2: (void)ledger.claim(claim_of(0, 0, 2, by)); break;
    case 3: (void)ledger.claim(claim_of(1, 2, 4, by)); break;
    case 4: (void)ledger.commit(kTrack, by - 1); break;
    case 5: ledger.fence(Incarnation(by)); break;
    default: (void)ledger.claim(claim_of(0, 0, 2, 3)); break;
  }
}

void try_all_claim_calls(const CheckedClaims& before, int depth, const std::string& history) {
  if (depth == 0 || ::testing::Test::HasFailure()) return;
  for (int what = 0; what < 13; ++what) {
    CheckedClaims ledger = before;
    const std::string so_far = history + " " + std::to_string(what);
    SCOPED_TRACE(so_far);
    do_one_claim_call(ledger, what);
    ledger.check();
    try_all_claim_calls(ledger, depth - 1, so_far);
  }
}

// All sequences of five claims, commits and fencings by three incarnations agree with plain maps. The rows
// written on the way make the same ledger.
TEST(ClaimLedger, EqualsPlainMapsInAllShortHistories) {
  try_all_claim_calls(CheckedClaims(2, {kTrack}), 5, "did");
}

// Long random histories of three tracks agree, too. At the end all missing ids can still be claimed, and
// every step commits.
TEST(ClaimLedger, EqualsPlainMapsInLongHistories) {
  const std::vector<TrackId> tracks = {TrackId(3), TrackId(0), TrackId(9)};
  for (std::uint64_t seed = 0; seed < 200 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, Purpose::kTest);
    const std::uint64_t batch = 1 + rng.below(6);
    CheckedClaims ledger(batch, tracks);
    std::uint64_t newest = 4;
    for (int i = 0; i < 150; ++i) {
      const TrackId track = tracks[rng.below(3)];
      const std::uint64_t step = ledger.next(track) + rng.below(3) - (ledger.next(track) > 0 ? 1 : 0);
      const std::uint64_t by = newest - rng.below(4);
      const std::uint64_t begin = step * batch + rng.below(batch);
      const std::uint64_t what = rng.below(20);
      if (what == 0) {
        ledger.fence(Incarnation(by));
        ++newest;
      } else if (what < 4) {
        (void)ledger.commit(track, step);
      } else {
        (void)ledger.claim(claim_of(step, begin, begin + rng.below(batch + 2), by, track));
      }
      ledger.check();
    }
    for (const TrackId track : tracks) {
      const std::uint64_t step = ledger.next(track);
      (void)ledger.claim(claim_of(step, step * batch, (step + 1) * batch, newest + 1, track));
      EXPECT_EQ(ledger.commit(track, step), CommitOutcome::kCommitted);
    }
  }
}

// Three peers, which are replaced when they are fenced. A peer adds a sample to a sum of its own once it
// hears that its claim was granted. Messages are repeated, late, and in any order. Fenced peers go on as if
// nothing had happened.
class Sums {
 public:
  explicit Sums(std::uint64_t seed) : rng_(seed, Purpose::kTest) {}

  void step() {
    const std::uint64_t step = ledger_.next(kTrack).value + rng_.below(2);
    const std::uint64_t begin = step * kBatch + rng_.below(kBatch);
    const std::uint64_t end = std::min(begin + 1 + rng_.below(3), (step + 1) * kBatch);
    switch (rng_.below(20)) {
      case 0: fence(rng_.below(living_.size())); break;
      case 1:
      case 2: commit(); break;
      case 3: asked_.push_back(claim_of(step, begin, end, 1 + rng_.below(last_incarnation_))); break;
      case 4:
      case 5:
      case 6:
      case 7: asked_.push_back(claim_of(step, begin, end, living_[rng_.below(living_.size())])); break;
      case 8:
      case 9:
      case 10: hear_one(); break;
      default: answer_one(); break;
    }
  }

  [[nodiscard]] int commits() const { return commits_; }

 private:
  static constexpr std::uint64_t kBatch = 4;
  using Answered = std::pair<Claim, ClaimAnswer>;

  void answer_one() {
    if (asked_.empty()) return;
    const std::size_t which = rng_.below(asked_.size());
    answers_.emplace_back(asked_[which], ledger_.claim(asked_[which]));
    if (rng_.below(3) != 0) asked_.erase(asked_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void hear_one() {
    if (answers_.empty()) return;
    const std::size_t which = rng_.below(answers_.size());
    hear(answers_[which]);
    answers_.erase(answers_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void hear(const Answered& answered) {
    for (const auto& [id, by] : ids_of(answered.second.granted)) sums_[by].insert(id);
  }

  void fence(std::size_t which) {
    (void)ledger_.fence(Incarnation(living_[which]));
    living_[which] = ++last_incarnation_;
  }

  // Adds up the sums of the peers with claims in the step, once all answers are heard.
  void commit() {
    const StepNumber step = ledger_.next(kTrack);
    std::set<std::uint64_t> contributors;
    for (const Claim& run : ledger_.claims(kTrack, step)) contributors.insert(run.by.value);
    if (ledger_.commit(kTrack, step) != CommitOutcome::kCommitted) return;
    ++commits_;
    for (const Answered& answered : answers_) hear(answered);
    answers_.clear();
    std::vector<std::uint64_t> sum;
    for (const std::uint64_t by : contributors) {
      std::copy_if(sums_[by].begin(), sums_[by].end(), std::back_inserter(sum),
                   [&step](std::uint64_t id) { return id / kBatch == step.value; });
    }
    const std::uint64_t first = step.value * kBatch;
    EXPECT_THAT(sum, UnorderedElementsAre(first, first + 1, first + 2, first + 3));
  }

  Rng rng_;
  ClaimLedger ledger_{kBatch, std::array{kTrack}};
  std::array<std::uint64_t, 3> living_ = {1, 2, 3};
  std::uint64_t last_incarnation_ = 3;
  std::map<std::uint64_t, std::multiset<std::uint64_t>> sums_;  // by life: the ids in its sum
  std::vector<Claim> asked_;
  std::vector<Answered> answers_;
  int commits_ = 0;
};

// Each committed step's sum has each of its ids exactly once.
TEST(ClaimLedger, NothingLostNothingTwice) {
  int commits = 0;
  for (std::uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Sums sums(seed);
    for (int i = 0; i < 400; ++i) sums.step();
    commits += sums.commits();
  }
  EXPECT_GT(commits, 600);
}

// A step of a million ids is claimed one by one in a scattered order by a hundred peers, some of which die.
TEST(ClaimLedger, AMillionIdsInAnyOrder) {
  constexpr std::uint64_t kBatch = 1'000'000;
  ClaimLedger ledger(kBatch, std::array{kTrack});
  const auto id_at = [](std::uint64_t i) { return kBatch + i * 700'001 % kBatch; };
  for (std::uint64_t i = 0; i < kBatch; ++i) {
    const std::uint64_t id = id_at(i);
    const ClaimAnswer answer = ledger.claim(claim_of(1, id, id + 1, 1 + i % 100));
    ASSERT_EQ(answer.granted.size(), 1U) << id;
  }
  std::uint64_t freed = 0;
  for (std::uint64_t by = 1; by <= 10; ++by) freed += ids_of(ledger.fence(Incarnation(by))).size();
  EXPECT_EQ(freed, kBatch / 10);
  const ClaimAnswer rest = ledger.claim(claim_of(1, kBatch, 2 * kBatch, 101));
  EXPECT_EQ(ids_of(rest.granted).size(), kBatch / 10);
  EXPECT_THAT(ledger.missing(kTrack, StepNumber(1)), IsEmpty());
  (void)ledger.claim(claim_of(0, 0, kBatch, 101));
  EXPECT_EQ(ledger.commit(kTrack, StepNumber(0)), CommitOutcome::kCommitted);
  EXPECT_EQ(ledger.commit(kTrack, StepNumber(1)), CommitOutcome::kCommitted);
}

}  // namespace
}  // namespace gossamer::cluster
