// SPDX-License-Identifier: Apache-2.0
//
// Recovery: the functions that train lost pieces anew.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engines/sparse/fleet/recovery/recovery.h"
#include "engines/sparse/fleet/step/step_order.h"

namespace gossamer::sparse_engine {

using host::Range;
using sparse::LayerState;
using sparse::NetworkPart;

namespace {

Error no_copy(StepNumber base) {
  return {.where = fmt::format("step {}", base.value),
          .what = "a part of what the run has learnt is lost: no member has it, nor a copy of it",
          .fix = "resume the run from its newest checkpoint"};
}

}  // namespace

// Whether there are copies of all of it. The state that the run began with would lack what was learnt since.
bool Recovery::copied(const NetworkPart& part) const {
  Pieces copies;
  for (const RecoveryPlan::Fetch& fetch : plan_.fetches) {
    if (fetch.to == me_) copies.insert(fetch.piece);
  }
  return std::ranges::includes(copies, pieces_of(job_.shape, part));
}

// A network as it was at the last snapshot, or where the run began. After long training most rows are in the
// copies, and drawing a row takes longer than loading it. So the copies are loaded first.
std::unique_ptr<sparse::Network> Recovery::begin_with(NetworkPart part) {
  if (plan_.base != job_.start) {
    if (!copied(part)) restored_ = no_copy(plan_.base);
    auto network = empty_network(job_, std::move(part));
    load_copies(*network);
    sparse::initialize(*network, job_.init, job_.labels.count, job_.compute);
    return network;
  }
  reached(job_.probes, FleetProbe::kFromInitial);
  auto network = starting_network(job_, part);
  if (!network.ok()) {
    restored_ = network.error();
    return empty_network(job_, std::move(part));
  }
  load_copies(**network);
  return *std::move(network);
}

void Recovery::make_patches() {
  Patch rows{.piece = {.layer = layers_, .range = {}}, .network = nullptr};
  NetworkPart rows_part = no_part(job_.shape);
  bool any = false;
  for (const RecoveryPlan::Lost& one : plan_.lost) {
    if (one.rank != me_) continue;
    if (one.piece.layer == layers_) {
      rows_part.rows.add(one.piece.range.begin >> job_.shape.shard_shift);
      any = true;
    } else {
      patches_.push_back({.piece = one.piece, .network = begin_with(part_of(job_.shape, one.piece))});
    }
  }
  if (any) {
    rows.network = begin_with(std::move(rows_part));
    patches_.push_back(std::move(rows));
  }
  for (const Patch& patch : patches_) {
    const std::size_t layer = patch.piece.layer;
    reached(job_.probes, layer == layers_ ? FleetProbe::kRowsAnew
                         : layer == 0     ? FleetProbe::kColumnsAnew
                                          : FleetProbe::kUnitsAnew);
  }
  std::ranges::sort(patches_, std::greater(), [](const Patch& patch) { return patch.piece.layer; });
}

// Trains in the order in which the lost part was trained, so that its reads lack the same steps. For each
// step it goes through those phases alone on which the patch's own rows depend.
void Recovery::replay(Patch& patch) {
  patch.replayed = true;
  if (plan_.base == plan_.resume) return;
  const bool skips = !job_.guarded(FleetDefect::kSkipReplayStep);
  const StepNumber end(plan_.resume.value - (skips ? 1 : 0));
  std::vector<std::unique_ptr<sparse::Learner>> learners;
  for (std::size_t i = 0; i <= job_.staleness; ++i) {
    learners.push_back(std::make_unique<sparse::Learner>(sparse::Learner::Parts{.network = *patch.network,
                                                                                .labels = job_.labels,
                                                                                .kernels = job_.kernels,
                                                                                .compute = job_.compute},
                                                         job_.learner));
  }
  StepOrder order(step_rounds(layers_).size(), job_.staleness);
  order.restart(plan_.base);
  while (true) {
    const StepNumber begins = order.next_step();
    const bool waits = begins < end && learner_.log().at(begins).fresh && !order.idle();
    const auto item = order.next(begins < end && !waits);
    if (!item) break;
    replay_round(patch, *learners[item->step.value % learners.size()], *item);
    order.computed(*item);
  }
}

void Recovery::replay_round(const Patch& patch, sparse::Learner& learner, const StepOrder::Item& item) {
  using Round = FleetRound::Kind;
  const FleetRound round = step_rounds(layers_)[item.round];
  const std::size_t level = patch.piece.layer;
  const LoggedStep& logged = learner_.log().at(item.step);
  switch (round.kind) {
    case Round::kHidden:
      if (round.layer == 0) return begin_again(patch, learner, item.step);
      if (round.layer != level) return;
      learner.deepen(level - 1);
      return fill_hidden(logged, learner_.codec(), patch.piece, learner.state());
    case Round::kShares:
      if (level < layers_) return;
      if (logged.found && std::ranges::any_of(logged.found->count, [](auto count) { return count > 0; }))
        reached(job_.probes, FleetProbe::kReplayedFound);
      return learner.score();
    case Round::kGradient:
      if (round.layer + 1 != level) return;
      if (level == layers_) {
        learner.normalise(logged.sums);
      } else {
        take_sum(patch, learner, item.step);
        learner.descend(round.layer);
      }
      return log_added(patch, learner, item.step);
    case Round::kFinish:
      if (level == 0) take_sum(patch, learner, item.step);
      (void)learner.finish();
      if (&patch == &patches_.back()) batches_.erase(item.step);
      return;
  }
}

void Recovery::begin_again(const Patch& patch, sparse::Learner& learner, StepNumber step) {
  reached(job_.probes, FleetProbe::kReplayedStep);
  if (job_.codec != net::Codec::kF32) reached(job_.probes, FleetProbe::kReplayedRounded);
  const LoggedStep& logged = learner_.log().at(step);
  const auto [place, first] = batches_.try_emplace(step);
  data::BatchCopy& batch = place->second;
  if (first) batch.take(job_.steps.read(step));
  if (job_.staleness > 0) learner.others_changed();
  learner.begin(batch.view(), step, {.learning_rate = job_.schedule.learning_rate(step)},
                sparse::Company::kOthers);
  if (logged.found && job_.guarded(FleetDefect::kForgetFound)) learner.recall(*logged.found);
  learner.embed();
  // The patch reads all of the layer below. The activation's derivative needs the patch's own columns.
  sparse::NetworkPiece read = patch.piece;
  if (read.layer > 0) read = {.layer = read.layer - 1, .range = {0, job_.shape.width(read.layer - 1)}};
  fill_hidden(logged, learner_.codec(), read, learner.state());
}

// Takes the sum of what all members added to dh of the patch's columns.
void Recovery::take_sum(const Patch& patch, sparse::Learner& learner, StepNumber step) {
  const Sum& sum = sum_of(patch.piece.layer, patch.piece.range);
  set_columns(sum.steps[step.value - sum.want.begin.value], learner_.rows(),
              learner.state().layers[patch.piece.layer]);
}

// Keeps what the patch added to dh of the layer below. It is cut into pieces, so that each want reads its
// columns alone.
void Recovery::log_added(const Patch& patch, sparse::Learner& learner, StepNumber step) {
  const std::size_t layer = patch.piece.layer - 1;
  const LayerState& below = learner.state().layers[layer];
  Gradients& added = added_[step];
  added.resize(layers_);
  std::set<std::size_t> cuts = {0, below.stride};
  for (const RecoveryPlan::Want& want : plan_.wants) {
    if (want.layer == layer) cuts.insert({want.columns.begin, want.columns.end});
  }
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    const Range columns{*cut, *std::next(cut)};
    added[layer].push_back(learner_.codec().encode(net::Codec::kF32, below.dh.span(), below.stride, columns));
  }
}

const Recovery::Sum& Recovery::sum_of(std::size_t layer, const Range& columns) const {
  const auto found = std::ranges::find_if(sums_, [&](const Sum& sum) {
    return sum.want.layer == layer && sum.want.columns.begin == columns.begin &&
           sum.want.columns.end == columns.end;
  });
  CHECK(found != sums_.end(), layer, columns.begin, columns.end);
  return *found;
}

}  // namespace gossamer::sparse_engine
