// SPDX-License-Identifier: Apache-2.0
#include "simulation/sparse/sparse_shape.h"

#include <algorithm>
#include <array>

#include "base/rng.h"
#include "learn/sparse/negatives/hash_negatives.h"

namespace gossamer::simulation {
namespace {

using sparse_engine::ExchangeKind;

constexpr Instant kFirstFault{1'500'000'000};

// Some widths give fewer column blocks than there are members, so some members have none.
TinyProblem::Options draw_problem(const SparseChaosOptions& options, Rng& rng) {
  constexpr std::array<std::size_t, 3> kHidden{32, 64, 96};
  TinyProblem::Options problem{.features = 24,
                               .labels = 40,
                               .hidden = kHidden[rng.below(kHidden.size())],
                               .dense = {},
                               .samples = 6,
                               .sampled = 6,
                               .shard_shift = 2,
                               .steps = 24 + rng.below(17),
                               .snapshot_every = 2 + rng.below(15),
                               .isa = options.isa,
                               .defect = options.defect};
  const std::size_t layers = options.dense.value_or(std::array{0, 0, 1, 2}[rng.below(4)]);
  constexpr std::array<std::size_t, 2> kDense{64, 32};
  for (std::size_t layer = 0; layer < layers; ++layer) problem.dense.push_back(kDense[layer % kDense.size()]);
  if (options.steps > 0) problem.steps = options.steps;
  if (options.snapshot_every > 0) problem.snapshot_every = options.snapshot_every;
  return problem;
}

SparseFleet::Options draw_fleet(const SparseChaosOptions& options, Rng& rng) {
  constexpr std::array<std::size_t, 4> kCopies{1, 2, 2, 3};
  constexpr std::array kDelays{1.0, 10.0, 10.0, 40.0};
  constexpr std::array kLongestWork{15.0, 50.0, 130.0};
  const double delay = kDelays[rng.below(kDelays.size())];
  SparseFleet::Options fleet{
      .first_members = 3 + rng.below(4),
      .copies = kCopies[rng.below(kCopies.size())],
      .seed = options.seed,
      .driver = options.driver.value_or(rng.below(2) == 0 ? Driver::kPrompt : Driver::kBatches),
      .longest_work = from_milliseconds(kLongestWork[rng.below(kLongestWork.size())]),
      .store = options.store.value_or(rng.below(2) == 0 ? StoreKind::kFile : StoreKind::kCluster),
      .path = {.delay = from_milliseconds(options.delay_ms > 0 ? options.delay_ms : delay),
               .jitter = from_milliseconds(rng.below(2) == 0 ? 0 : 5)},
      .clock_error = 0.02,
      .freeze_time = from_seconds(rng.below(2) == 0 ? 6 : 30),
      .defect = options.cluster_defect,
      .trace = options.trace};
  if (options.members > 0) fleet.first_members = options.members;
  if (options.copies > 0) fleet.copies = options.copies;
  return fleet;
}

// How many more members the fault strikes at the same time. A third of kills are two members, if two or more
// copies make that harmless. Half of the cuts and stops take as many as have a piece, or one less.
std::size_t more_struck(FaultKind kind, std::size_t copies, Rng& rng) {
  const bool away = kind == FaultKind::kPartition || kind == FaultKind::kPause;
  if (away) return rng.below(2) == 0 ? std::max<std::size_t>(copies - rng.below(2), 1) : 0;
  return kind == FaultKind::kKill && copies > 1 && rng.below(3) == 0 ? 1 : 0;
}

// Draws the faults.
std::vector<Fault> draw(const SparseChaosOptions& options, std::size_t copies, Rng& rng) {
  if (!options.script.empty()) return options.script;
  const std::vector<FaultKind> kinds = options.kinds.empty() ? sparse_chaos_kinds() : options.kinds;
  std::vector<Fault> faults;
  for (const Fault& fault : draw_faults(options.seed, kinds, options.faults, kFirstFault,
                                        kFirstFault + options.trouble, Longest::kLong)) {
    faults.push_back(fault);
    for (std::size_t more = more_struck(fault.kind, copies, rng); more > 0; --more) {
      faults.push_back(fault);
      faults.back().member = fault.member + more;
    }
  }
  if (options.kinds.empty()) lose_some_coordinators(faults);
  return faults;
}

// Draws hash tables. If each sample scores its own rows, all samples find many. A sample that scored its own
// label alone would have a gradient of nothing but rounding, which Adam makes as large as any other.
sparse::HashNegativeOptions draw_tables(sparse::HashSets sets, std::size_t samples, Rng& rng) {
  constexpr std::array<std::size_t, 3> kEach{8, 40, 2};  // rows that a sample finds
  const bool own = sets == sparse::HashSets::kOwn;
  const std::size_t queries = own || rng.below(2) == 0 ? samples : 2;
  return {.kind = rng.below(3) == 0 ? sparse::HashKind::kWinner : sparse::HashKind::kSimHash,
          .functions = own ? 1 : 1 + rng.below(3),
          .tables = own ? 4 : 1 + rng.below(4),
          .key_bits = 3,
          .selection = rng.below(2) == 0 ? sparse::HashSelection::kBest : sparse::HashSelection::kRandom,
          .sets = sets,
          .queries = queries,
          .found = queries * kEach[rng.below(own ? 2 : 3)],
          .bucket_cap = rng.below(2) == 0 ? 0U : 4U,
          .tolerance = rng.below(2) == 0 ? 0 : 0.1,
          .first_step = rng.below(8),
          .update_every = 1 + rng.below(5),
          .update_growth = rng.below(2) == 0 ? 0 : 0.1};
}

// Draws the hash tables, if there are any. The exchange of all outputs excludes shared ones. Options are
// kept, and drawn values give way. The stream is separate, so that fleets and faults of a seed are the same
// whatever is drawn here.
void draw_step(const SparseChaosOptions& options, SparseShape& shape, Rng own) {
  TinyProblem::Options& problem = shape.problem;
  HashTables tables = HashTables::kNone;
  if (own.below(8) <= 2) tables = own.below(2) == 0 ? HashTables::kShared : HashTables::kOwn;
  tables = options.lsh.value_or(tables);
  if (tables == HashTables::kShared && problem.exchange == ExchangeKind::kDslide) {
    if (options.lsh) problem.exchange = ExchangeKind::kShares;
    tables = options.lsh.value_or(HashTables::kOwn);
  }
  const auto sets = tables == HashTables::kOwn ? sparse::HashSets::kOwn : sparse::HashSets::kShared;
  if (tables != HashTables::kNone) problem.hashed = draw_tables(sets, problem.samples, own);
  const bool measured = options.evaluation.value_or(own.below(4) == 0);
  if (measured) problem.test_records = 200 + own.below(1800);
}

// Draws the codec. One run in four exchanges rounded values, and its result is known less sharply. The stream
// is separate, as above.
void draw_codec(const SparseChaosOptions& options, SparseShape& shape, Rng own) {
  constexpr std::array kCodecs{net::Codec::kBf16, net::Codec::kInt8};
  const std::uint64_t kind = own.below(8);
  shape.problem.codec = options.codec.value_or(kind < kCodecs.size() ? kCodecs[kind] : net::Codec::kF32);
}

// Draws what lies between the machines. The stream is separate, as above.
void draw_lines(const SparseChaosOptions& options, SparseShape& shape, Rng own) {
  const double hidden = own.below(5) == 0 ? 0.4 : 0;
  const Duration scatter = own.below(3) == 0 ? from_milliseconds(120) : Duration{};
  const bool drawn = options.script.empty() && options.faults > 0;
  shape.fleet.hidden = options.hidden.value_or(drawn ? hidden : 0);
  shape.fleet.scatter = options.scatter.value_or(drawn ? scatter : Duration{});
  shape.fleet.machines_again = drawn;
}

void draw_power_off(const SparseChaosOptions& options, SparseShape& shape, Rng& rng) {
  const bool drawn = options.script.empty() && options.faults > 0 && options.kinds.empty();
  if (!options.power_off.value_or(drawn && rng.below(4) == 0)) return;
  shape.power_off = {.after = kFirstFault - Instant{} +
                              from_seconds(options.trouble.seconds() * static_cast<double>(rng.uniform())),
                     .members = options.members > 0 ? options.members : 1 + rng.below(6),
                     .shard_shift = 1 + static_cast<unsigned>(rng.below(3))};
  shape.problem.checkpoint_every = 1 + rng.below(8);
}

}  // namespace

std::vector<FaultKind> sparse_chaos_kinds() {
  std::vector<FaultKind> kinds{FaultKind::kKill, FaultKind::kKill, FaultKind::kKill, FaultKind::kJoin};
  for (const FaultName& one : kFaults) {
    const bool says_untruth = one.kind == FaultKind::kLie;
    const bool is_rare = one.kind == FaultKind::kStop || one.kind == FaultKind::kLoseCoordinator;
    if (!says_untruth && !is_rare) kinds.push_back(one.kind);
  }
  return kinds;
}

SparseShape sparse_shape_of(const SparseChaosOptions& options) {
  Rng rng(options.seed, Purpose::kFault, 13);
  SparseShape shape{.problem = draw_problem(options, rng),
                    .fleet = draw_fleet(options, rng),
                    .faults = {},
                    .aftershocks = {},
                    .power_off = {}};
  shape.faults = draw(options, shape.fleet.copies, rng);
  const bool drawn =
      options.script.empty() && options.faults > 0 && options.kinds.empty() && shape.fleet.copies > 1;
  for (std::uint64_t i = rng.below(3); drawn && i > 0; --i)
    shape.aftershocks.push_back(from_seconds(0.5 * static_cast<double>(rng.uniform())));
  shape.problem.staleness = options.staleness.value_or(rng.below(3) == 0 ? 1 : 0);
  shape.problem.exchange =
      options.exchange.value_or(rng.below(4) == 0 ? ExchangeKind::kDslide : ExchangeKind::kShares);
  draw_power_off(options, shape, rng);
  draw_step(options, shape, Rng(options.seed, Purpose::kFault, 15));
  draw_codec(options, shape, Rng(options.seed, Purpose::kFault, 16));
  draw_lines(options, shape, Rng(options.seed, Purpose::kFault, 21));
  return shape;
}

}  // namespace gossamer::simulation
