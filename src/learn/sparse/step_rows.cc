// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/step_rows.h"

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"

namespace gossamer::sparse {
namespace {

std::uint64_t rows_of(const HeldRows& held) {
  std::uint64_t rows = 0;
  for (std::size_t shard = 0; shard < held.shards(); ++shard) {
    if (held.holds(shard)) rows += held.rows_of(shard).end - held.rows_of(shard).begin;
  }
  return rows;
}

}  // namespace

StepRows::StepRows(const Parts& parts, std::uint64_t seed, int workers)
    : parts_(parts), seed_(seed), holds_rows_(rows_of(parts.network.part.rows) > 0) {
  for (int worker = 0; worker < workers; ++worker) {
    const Ownership features = {.worker = static_cast<std::uint32_t>(worker),
                                .workers = static_cast<std::uint32_t>(workers)};
    Ownership rows = features;
    rows.held = &parts.network.part.rows;
    lists_.push_back({.active = ActiveSet(rows), .features = InvertedLists(features)});
  }
}

void StepRows::begin(const FoundRows* asked) {
  asking_ = asked != nullptr;
  found_ = asked;
}

void StepRows::recall(const FoundRows& found) {
  asking_ = false;
  found_ = &found;
}

void StepRows::select(int worker, const data::Batch& batch, StepNumber step) {
  ActiveSet& active = of(worker).active;
  active.build(batch.labels);
  Rng rng(seed_, Purpose::kNegatives, step.value);
  parts_.sampler.draw_all(rng, [&](std::uint32_t label) { active.add(label); });
  if (found_ != nullptr) add_found(active, batch);
}

void StepRows::add_found(ActiveSet& active, const data::Batch& batch) const {
  const std::size_t asking = found_->asking(batch.size());
  for (std::size_t sample = 0; sample < asking; ++sample) {
    if (found_->sets == HashSets::kOwn) {
      for (const std::uint32_t label : found_->of(sample)) {
        active.add_finder(label, static_cast<std::uint32_t>(sample));
      }
      continue;
    }
    for (const std::uint32_t label : found_->of(sample)) active.add_certain(label);
    if (!parts_.logq.own_labels_certain()) continue;
    for (const std::uint32_t label : batch.labels.row(sample)) active.add_certain(label);
  }
  if (found_->sets == HashSets::kOwn) active.end_finders();
}

void StepRows::list_features(int worker, const data::Batch& batch) {
  of(worker).features.build(batch.features, parts_.network.shape.features);
}

std::size_t StepRows::active_rows() const {
  std::size_t rows = 0;
  for (const Lists& one : lists_) rows += one.active.size();
  return rows;
}

std::size_t StepRows::unique_features() const {
  std::size_t features = 0;
  for (const Lists& one : lists_) features += one.features.size();
  return features;
}

std::uint64_t StepRows::most_scores(const data::Batch& batch) const {
  if (!asking_) return active_rows() * batch.size();
  CHECK(found_->sets == HashSets::kOwn, static_cast<int>(found_->sets));
  std::uint64_t most = 0;
  const HeldRows& held = parts_.network.part.rows;
  const std::uint64_t rows = rows_of(held);
  const std::size_t asking = found_->asking(batch.size());
  for (std::size_t sample = 0; sample < batch.size(); ++sample) {
    const auto labels = std::ranges::count_if(batch.labels.row(sample),
                                              [&](std::uint32_t label) { return held.contains(label); });
    const std::uint64_t found = sample < asking ? found_->limit : 0;
    // A label that is the sample's own and was found too is scored once.
    most += std::min(rows, static_cast<std::uint64_t>(labels) + found);
  }
  return most;
}

std::uint64_t StepRows::bytes() const {
  std::uint64_t total = 0;
  for (const Lists& one : lists_) total += one.active.bytes() + one.features.bytes();
  return total;
}

}  // namespace gossamer::sparse
