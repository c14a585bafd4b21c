// SPDX-License-Identifier: Apache-2.0
//
// Any bytes, mostly of the right length, as what members give each other in a step of a sparse run: rows that
// hash tables found, scores of all outputs and their number, and copies of pieces. Nothing crashes. Rows that
// are taken are rows of their sender, scores make sums of numbers, and copies are taken as a whole or not at
// all.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "choices.h"
#include "engines/sparse/fleet/recovery/vault.h"
#include "engines/sparse/fleet/step/found_records.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/fleet/step/output_records.h"
#include "simulation/sparse/tiny_problem.h"

namespace {

using namespace gossamer;
using namespace gossamer::sparse_engine;

constexpr std::size_t kSamples = 2;

std::shared_ptr<const FleetJob> make_job() {
  static const simulation::TinyProblem problem{
      {.features = 8,
       .labels = 20,
       .hidden = 20,
       .samples = kSamples,
       .features_each = 3,
       .labels_each = 2,
       .sampled = 4,
       .hashed = sparse::HashNegativeOptions{.queries = kSamples, .found = kSamples * 6},
       .exchange = ExchangeKind::kDslide}};
  return problem.make_job();
}

sparse::NetworkPart some_part(const FleetJob& job, fuzz::Choices& choices) {
  std::set<std::size_t> shards;
  for (std::size_t shard = 0; shard < job.shape.shards(); ++shard) {
    if (choices.flip()) shards.insert(shard);
  }
  return with_shards(no_part(job.shape), job.shape, shards);
}

// Bytes in two slices. Numbers are mostly small, so that rows and counts exist.
Slices bytes_of(fuzz::Choices& choices, std::size_t size) {
  std::string bytes;
  while (bytes.size() < size) {
    const std::uint64_t number = choices.number();
    bytes.append(reinterpret_cast<const char*>(&number), choices.flip() ? 4 : 8);
  }
  bytes.resize(size);
  const std::size_t cut = choices.below(size + 1);
  return {Slice::of(bytes.substr(0, cut)), Slice::of(bytes.substr(cut))};
}

void take_found(const FleetJob& job, fuzz::Choices& choices) {
  const sparse::NetworkPart part = some_part(job, choices);
  const std::size_t limit = found_limit(job, part);
  sparse::FoundRows found = nothing_found(job);
  if (!add_found(job, bytes_of(choices, found_bytes(job, limit)), {limit, part.rows}, found).ok()) return;
  for (std::size_t sample = 0; sample < found.count.size(); ++sample) {
    CHECK(found.count[sample] <= found.limit, found.count[sample]);
    for (const std::uint32_t row : found.of(sample)) CHECK(part.rows.contains(row), row);
  }
}

void take_outputs(const FleetJob& job, fuzz::Choices& choices) {
  const sparse::NetworkPart part = some_part(job, choices);
  const auto scores = read_score_count(job, bytes_of(choices, sizeof(std::uint64_t)), part);
  if (!scores.ok()) return;
  CHECK(*scores <= most_scores(job, part), *scores);
  std::vector<sparse::PartitionShare> sums(job.learner.batch_max);
  if (!add_outputs(job, bytes_of(choices, output_bytes(job, *scores)), part, sums).ok()) return;
  for (const sparse::PartitionShare& sum : sums) CHECK(std::isfinite(sum.sum) && sum.sum >= 0, sum.sum);
}

void take_copies(const FleetJob& job, fuzz::Choices& choices) {
  const Pieces pieces{{0, 0}, {1, 0}};
  const StepNumber step(3);
  Vault vault(job);
  const std::size_t most = Vault::most_bytes(job, pieces);
  const Slices delta = bytes_of(choices, choices.below(most + 2));
  const bool good = vault.check(delta, {.pieces = pieces, .step = step}).ok();
  const bool taken = vault.apply(step, std::vector<Slices>{delta}).ok();
  CHECK(taken || !good);
  for (const PieceId& piece : pieces) CHECK(!good || vault.has(piece));
  for (const PieceId& piece : pieces) CHECK(taken || !vault.has(piece));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::shared_ptr<const FleetJob> job = make_job();
  fuzz::Choices choices(data, size);
  switch (choices.below(3)) {
    case 0: take_found(*job, choices); break;
    case 1: take_outputs(*job, choices); break;
    default: take_copies(*job, choices);
  }
  return 0;
}
