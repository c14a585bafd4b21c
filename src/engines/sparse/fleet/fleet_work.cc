// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_work.h"

#include <algorithm>
#include <utility>

namespace gossamer::sparse_engine {
namespace {

void give(FleetWorkbench& bench, Result<Slices> what) {
  if (what.ok()) {
    bench.given = *std::move(what);
  } else {
    bench.taken = what.error();
  }
}

}  // namespace

FleetWork stage_work(FleetWorkbenchRef bench, RecoveryStage stage) {
  return [bench = std::move(bench), stage] {
    if (!bench->taken.ok()) return;
    give(*bench, bench->recovery->stage(stage, bench->got));
    bench->giver = bench->recovery->giver();
    if (bench->recovery->restored().ok()) return;
    bench->taken = bench->recovery->restored();
    bench->giver.reset();
  };
}

FleetWork round_work(FleetWorkbenchRef bench, const RoundWork& work) {
  return [bench = std::move(bench), work] {
    if (!bench->taken.ok()) return;
    FleetLearner& learner = *bench->learner;
    const auto& due = learner.job().checkpoints.due;
    const bool last_to_give = work.round.kind == FleetRound::Kind::kGradient && work.round.layer == 0;
    if (last_to_give) learner.wish(due && due() ? std::max(work.wish, StepWish::kCheckpoint) : work.wish);
    give(*bench, learner.round(work.item.step, work.round, bench->got));
    bench->giver = learner.giver();
    if (bench->taken.ok() && work.round.kind == FleetRound::Kind::kFinish)
      learner.tell(work.epoch, work.sent);
  };
}

FleetWork work_ahead(FleetWorkbenchRef bench, const FleetRounds& rounds, const FleetRounds::Item& next) {
  const FleetLearner& learner = *bench->learner;
  const bool waits = rounds.waits(next);
  const bool lists = FleetRounds::needs_gifts(next) && !learner.listed(next.step);
  if ((waits || lists) && learner.rows_left()) return [bench] { bench->learner->finish_rows(); };
  if (lists) return [bench, step = next.step] { bench->learner->list(step); };
  if (next.round > 0 && !waits) return {};
  const StepNumber step = next.round == 0 ? next.step : rounds.order().next_step();
  if (step.value >= learner.job().schedule.total_steps || learner.has_read(step)) return {};
  return [bench = std::move(bench), step] { bench->learner->read(step); };
}

FleetWork delta_work(FleetWorkbenchRef bench, const FleetSnapshots& snapshots) {
  return [bench = std::move(bench), copies = snapshots.known(), keeps = snapshots.under_way()->keeps,
          step = snapshots.under_way()->step] {
    const FleetJob& job = bench->learner->job();
    PieceSources sources;
    if (bench->recovery != nullptr) {
      sources = bench->recovery->sources();
    } else {
      sparse::Network& network = bench->learner->network();
      for (const PieceId& piece : pieces_of(job.shape, network.part)) sources[piece] = &network;
    }
    bench->deltas.clear();
    for (std::size_t rank = 0; rank < keeps.size(); ++rank) {
      auto delta = make_delta(job, sources,
                              {.keeps = keeps[rank],
                               .has = copies.kept[rank],
                               .since = copies.step,
                               .step = step,
                               .memory = bench->snapshot_memory});
      if (!delta.ok()) {
        bench->taken = delta.error();
        return;
      }
      bench->deltas.push_back(*std::move(delta));
    }
  };
}

std::function<void(FleetWorkbench&)> look_work(const FleetSnapshots::Snapshot& snapshot) {
  return [step = snapshot.step, got = snapshot.got, gets = snapshot.gets](FleetWorkbench& bench) {
    for (std::size_t rank = 0; rank < got.size(); ++rank) {
      auto good = bench.vault->check(got[rank], {.pieces = gets[rank], .step = step});
      if (good.ok()) continue;
      bench.taken = good;
      bench.giver = rank;
      return;
    }
    bench.looked = step;
  };
}

std::function<void(FleetWorkbench&)> keep_work(FleetSnapshots::Snapshot snapshot) {
  return [snapshot = std::move(snapshot)](FleetWorkbench& bench) {
    if (auto kept = bench.vault->apply(snapshot.step, snapshot.got); !kept.ok()) bench.taken = kept;
    StepLog& log = bench.learner->log();
    log.erase(log.begin(), log.lower_bound(snapshot.step));
  };
}

FleetWork save_work(FleetWorkbenchRef bench, StepNumber step, bool last) {
  return [bench = std::move(bench), step, last] {
    const FleetCheckpoints& checkpoints = bench->learner->job().checkpoints;
    checkpoints.save(step, bench->learner->network());
    if (last && checkpoints.finish) checkpoints.finish();
  };
}

FleetWork delivery_work(FleetWorkbenchRef bench) {
  return [bench = std::move(bench)] {
    bench->delivered = bench->learner->job().deliver(bench->learner->network());
  };
}

FleetWork answer_work(FleetWorkbenchRef bench, std::shared_ptr<const LeadQuestions::Question> question) {
  return [bench = std::move(bench), question = std::move(question)] {
    const FleetJob& job = bench->learner->job();
    if (bench->answers == nullptr) {
      bench->answers =
          std::make_unique<PartAnswers>(PartAnswers::Options{.shape = job.shape,
                                                             .activation = job.learner.activation,
                                                             .kernels = job.kernels,
                                                             .compute = job.compute},
                                        bench->learner->network());
    }
    auto answered = LeadQuestions::answer(*bench->answers, *question);
    if (answered.ok()) {
      bench->answer = *std::move(answered);
    } else {
      bench->taken = answered.error();
    }
  };
}

}  // namespace gossamer::sparse_engine
