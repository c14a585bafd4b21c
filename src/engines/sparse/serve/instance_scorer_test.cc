// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/serve/instance_scorer.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "engines/sparse/fleet/step/row_lists.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/model_part.h"
#include "engines/sparse/model/test_random_model.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"

namespace gossamer::sparse_engine {
namespace {

constexpr std::size_t kQueries = 40;
constexpr std::size_t kWidth = 48;

using Lists = std::vector<std::vector<FoundRow>>;

// What all parts together say about some queries.
struct Said {
  Lists by_input = Lists(kQueries);
  Lists by_hidden = Lists(kQueries);
  std::vector<std::uint64_t> sums;

  bool operator==(const Said&) const = default;
};

// Rows of few features with few values, each of them several times. So there are ties everywhere.
class InstanceScorerTest : public ::testing::Test {
 protected:
  InstanceScorerTest() {
    model_ = testing::random_model({.features = 40, .labels = 60, .hidden = kWidth, .rows = 700, .seed = 3});
    Instances& rows = *model_.instances;
    for (float& value : rows.value) value = value < 0.5F ? 0.25F : 0.7F;
    for (std::size_t r = 0; r < rows.rows(); ++r)
      std::copy_n(rows.hidden.data() + r % 90 * kWidth, kWidth, rows.hidden.data() + r * kWidth);
    EXPECT_TRUE(save_model(disk_, "model", model_, {}).ok());
    Rng rng(8, Purpose::kTest);
    queries_ = testing::random_rows(rng, 40, kQueries);
    for (float& v : hidden_.span()) v = rng.normal();
    for (std::size_t q = 0; q < kQueries; ++q) {
      for (std::uint32_t label = 0; label < 60; label += 1 + static_cast<std::uint32_t>(rng.below(4)))
        label_.push_back(label);
      label_begin_.push_back(static_cast<std::uint32_t>(label_.size()));
    }
  }

  // Asks so many parts. Their shards are dealt out in turn.
  Said ask(std::size_t parts, std::size_t neighbours, int workers) {
    Said said;
    said.sums.assign(label_.size(), 0);
    host::SimCompute compute({.workers = workers});
    for (std::size_t p = 0; p < parts; ++p) {
      sparse::NetworkPart part = sparse::whole(model_.network.shape, 2);
      for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) {
        if (shard % parts != p) part.rows.drop(shard);
      }
      auto loaded = load_model_part(disk_, "model", part, PartInstances::kShare, compute);
      EXPECT_TRUE(loaded.ok());
      InstanceScorer scorer(*std::move(loaded->instances), {.features = 40, .labels = 60}, kWidth,
                            kernels::kernels_for(kernels::best_isa()), compute);
      scorer.search(queries_.view(), {.values = hidden_.data(), .stride = 64, .count = kQueries}, neighbours);
      std::vector<std::int64_t> sums(label_.size());
      scorer.sum(queries_.view(), {label_begin_, label_}, sums);
      for (std::size_t i = 0; i < sums.size(); ++i) said.sums[i] += static_cast<std::uint64_t>(sums[i]);
      for (std::size_t q = 0; q < kQueries; ++q) {
        const auto input = scorer.by_input(q);
        const auto hidden = scorer.by_hidden(q);
        said.by_input[q].insert(said.by_input[q].end(), input.begin(), input.end());
        said.by_hidden[q].insert(said.by_hidden[q].end(), hidden.begin(), hidden.end());
      }
    }
    for (std::size_t q = 0; q < kQueries; ++q) {
      rank_rows(neighbours, RankedBy::kInput, said.by_input[q]);
      rank_rows(neighbours, RankedBy::kHidden, said.by_hidden[q]);
    }
    return said;
  }

  Model model_;
  host::SimDisk disk_;
  testing::OwnedRows queries_;
  AlignedArray<float> hidden_{kQueries * 64};
  std::vector<std::uint32_t> label_begin_ = {0};
  std::vector<std::uint32_t> label_;
};

// Claim: the parts say, to the bit, what the index and the search of all rows say. It does not matter how
// rows are divided, nor whether many rows tie.
TEST_F(InstanceScorerTest, PartsSayWhatTheWholeSays) {
  for (std::size_t q = 0; q < kQueries; ++q) std::fill_n(hidden_.data() + q * 64 + kWidth, 64 - kWidth, 0.0F);
  host::SimCompute compute({.workers = 2});
  const kernels::Kernels& kernels = kernels::kernels_for(kernels::best_isa());
  const InstanceIndex index(*model_.instances, {.features = 40, .labels = 60}, kernels, compute);
  RowSearch search({.rows = 700, .width = kWidth, .compact = model_.instances->hidden.data()}, kernels,
                   compute);
  AlignedArray<float> units(kQueries * 64);
  for (std::size_t q = 0; q < kQueries; ++q)
    to_unit_length({hidden_.data() + q * 64, 64}, units.data() + q * 64);
  for (const std::size_t neighbours : {1U, 7U, 100U, 2000U}) {
    search.search({units.data(), 64, kQueries}, neighbours);
    Said want;
    for (std::size_t q = 0; q < kQueries; ++q) {
      InstanceIndex::Scratch scratch;
      std::vector<float> cosines(index.padded_rows());
      const data::SparseRow query = queries_.view().row(q);
      index.cosines({&query, 1}, scratch, cosines);
      std::vector<Scored> near;
      index.nearest(cosines, neighbours, near);
      for (const Scored& one : near) {
        const float hidden = kernels.dot_bf16(model_.instances->hidden.data() + one.id * kWidth,
                                              units.data() + q * 64, kWidth);
        want.by_input[q].push_back({one.id, one.score, hidden});
      }
      for (const Scored& one : search.found(q))
        want.by_hidden[q].push_back({one.id, cosines[one.id], one.score});
      for (std::size_t i = label_begin_[q]; i < label_begin_[q + 1]; ++i)
        want.sums.push_back(static_cast<std::uint64_t>(index.centroid_sum(label_[i], cosines)));
    }
    for (const std::size_t parts : {1U, 2U, 3U, 5U, 15U}) {
      for (const int workers : {1, 3}) ASSERT_EQ(ask(parts, neighbours, workers), want) << parts << " parts";
    }
  }
}

// Claim: a part knows the labels of the rows that it has, and of no others.
TEST_F(InstanceScorerTest, LabelsOfRows) {
  host::SimCompute compute({});
  sparse::NetworkPart part = sparse::whole(model_.network.shape, 2);
  for (std::size_t shard = 0; shard < part.rows.shards(); ++shard) {
    if (shard % 2 == 0) part.rows.drop(shard);
  }
  auto loaded = load_model_part(disk_, "model", part, PartInstances::kShare, compute);
  ASSERT_TRUE(loaded.ok());
  const InstanceScorer scorer(*std::move(loaded->instances), {.features = 40, .labels = 60}, kWidth,
                              kernels::kernels_for(kernels::best_isa()), compute);
  for (std::uint32_t row = 0; row < 700; ++row) {
    const auto labels = scorer.labels_of(row);
    ASSERT_EQ(labels.has_value(), holds_instance(700, part.rows, row)) << row;
    if (!labels) continue;
    ASSERT_TRUE(std::ranges::equal(*labels, model_.instances->labels().row(row))) << row;
  }
  EXPECT_FALSE(scorer.labels_of(700));
}

}  // namespace
}  // namespace gossamer::sparse_engine
