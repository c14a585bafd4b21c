// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/negatives/hash_negatives.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rng.h"
#include "learn/lsh/simhash.h"
#include "learn/lsh/winner_hash.h"

namespace gossamer::sparse {
namespace {

constexpr std::size_t kWindow = 8;

}  // namespace

std::unique_ptr<lsh::HashFamily> make_hash_family(const HashNegativeOptions& options, std::size_t dimension,
                                                  kernels::Isa isa) {
  const lsh::HashShape shape = {
      .dimension = dimension, .functions = options.functions, .tables = options.tables};
  if (options.kind == HashKind::kWinner) {
    return std::make_unique<lsh::WinnerHash>(
        lsh::WinnerHashOptions{.shape = shape, .window = kWindow, .seed = options.seed, .isa = isa});
  }
  return std::make_unique<lsh::SimHash>(
      lsh::SimHashOptions{.shape = shape, .seed = options.seed, .isa = isa});
}

struct HashNegatives::Asker {
  Asker(const lsh::Tables& tables, const lsh::BucketQueryOptions& options)
      : query(tables, options), hashing(tables.family().shape()), codes(tables.tables()) {}

  lsh::BucketQuery query;
  lsh::HashWorkspace hashing;
  std::vector<std::uint32_t> codes;
};

HashNegatives::HashNegatives(const Parts& parts, const HashNegativeOptions& options)
    : parts_(parts),
      options_(options),
      rows_(parts.network.part.rows),
      family_(make_hash_family(options, parts.network.shape.last_hidden(), parts.kernels.isa)),
      found_(options.sets, options.queries, found_limit(options)) {
  CHECK(options.queries >= 1 && options.update_every >= 1, options.queries, options.update_every);
  CHECK(options.key_bits >= 1 && options.key_bits <= 16, options.key_bits);
  CHECK(options.update_growth >= 0, options.update_growth);
  next_update_ = static_cast<double>(options.first_step);
}

HashNegatives::~HashNegatives() = default;

lsh::RowsView HashNegatives::view() const {
  const RowTable& output = parts_.network.output;
  return {.data = output.weights(0),
          .rows = rows_.size(),
          .stride = output.stride(),
          .runs = rows_.shards(),
          .run_shift = rows_.shift()};
}

void HashNegatives::make_tables() {
  tables_ = std::make_unique<lsh::Tables>(
      *family_, rows_.size(),
      lsh::TablesOptions{.key_bits = options_.key_bits, .tolerance = options_.tolerance});
  const bool capped = options_.bucket_cap > 0;
  const lsh::BucketQueryOptions ask = {.limit = found_.limit,
                                       .cap = capped ? lsh::BucketCap::kFifo : lsh::BucketCap::kNone,
                                       .cap_rows = std::max<std::size_t>(1, options_.bucket_cap)};
  askers_.clear();
  for (int w = 0; w < parts_.compute.workers(); ++w) askers_.emplace_back(*tables_, ask);
}

// Moves on to the first update after `step`; true when an update was due at `step` or before it.
bool HashNegatives::update_is_due(StepNumber step) {
  const auto now = static_cast<double>(step.value);
  bool due = false;
  while (next_update_ <= now) {
    due = true;
    const double gap =
        static_cast<double>(options_.update_every) * std::exp(options_.update_growth * updates_);
    next_update_ += std::max(1.0, gap);
    ++updates_;
  }
  return due;
}

void HashNegatives::prepare(StepNumber step) {
  if (!begun(step) || !update_is_due(step) || rows_.size() == 0) return;
  if (!tables_) {
    make_tables();
    tables_->build(view(), parts_.compute);
    return;
  }
  due_.clear();
  for (std::size_t row = 0; row < tables_->rows(); ++row) {
    if (tables_->due(row)) due_.push_back(static_cast<std::uint32_t>(row));
  }
  tables_->update(view(), due_, parts_.compute);
}

void HashNegatives::find(int worker, const BatchState& batch, StepNumber step, std::size_t sample) {
  if (!tables_) return;
  Asker& asker = askers_[static_cast<std::size_t>(worker)];
  const LayerState& layer = batch.last();
  const std::span<const float> h(layer.h.data() + sample * layer.stride, parts_.network.shape.last_hidden());
  family_->hash_dense(h, asker.hashing, asker.codes);
  Rng order(options_.seed, Purpose::kTableOrder, step.value, static_cast<std::uint32_t>(sample));
  const auto candidates = options_.selection == HashSelection::kBest
                              ? asker.query.find_codes(asker.codes)
                              : asker.query.sample_codes(asker.codes, order);
  found_.count[sample] = 0;
  for (const lsh::Candidate& candidate : candidates) found_.add(sample, rows_.row(candidate.row));
}

HashNegatives::State HashNegatives::state() const {
  State state{.keys = std::vector<std::uint16_t>(options_.tables * rows_.size()),
              .allowances = std::vector<float>(rows_.size())};
  if (tables_) tables_->save(state.keys, state.allowances);
  return state;
}

void HashNegatives::restore(const State& state, StepNumber next) {
  tables_.reset();
  askers_.clear();
  next_update_ = static_cast<double>(options_.first_step);
  updates_ = 0;
  if (next.value <= options_.first_step) return;
  static_cast<void>(update_is_due(StepNumber{next.value - 1}));
  if (rows_.size() == 0) return;
  make_tables();
  tables_->restore(state.keys, state.allowances);
}

}  // namespace gossamer::sparse
