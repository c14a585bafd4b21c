// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/inverted_lists.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "learn/sparse/test_random_problem.h"

namespace gossamer::sparse {
namespace {

// Ids get slots in order of first appearance and keep them, through growth, clearing and reuse.
TEST(SlotMap, NumbersIdsByFirstAppearance) {
  SlotMap map(2);
  Rng rng(1, Purpose::kTest);
  for (const std::size_t below : {std::size_t{3}, std::size_t{50}, std::size_t{100000}}) {
    map.clear();
    EXPECT_EQ(map.size(), 0U);
    std::map<std::uint32_t, std::uint32_t> model;
    for (int i = 0; i < 3000; ++i) {
      const auto id = static_cast<std::uint32_t>(rng.below(below));
      const auto slot = model.try_emplace(id, static_cast<std::uint32_t>(model.size())).first->second;
      ASSERT_EQ(map.insert(id), slot) << below << " " << i;
      ASSERT_EQ(map.ids()[slot], id);
    }
    EXPECT_EQ(map.size(), model.size());
  }
}

// The extreme ids are ids like all others.
TEST(SlotMap, TakesTheExtremeIds) {
  SlotMap map;
  EXPECT_EQ(map.insert(UINT32_MAX), 0U);
  EXPECT_EQ(map.insert(0), 1U);
  EXPECT_EQ(map.insert(UINT32_MAX), 0U);
}

// Every row has exactly one owner, and shares of consecutive and of strided ids are even to a few percent.
TEST(Ownership, DealsOutEvenly) {
  for (const std::uint32_t workers : {1U, 2U, 3U, 7U}) {
    for (const std::uint32_t stride : {1U, 16U, 1000U}) {
      std::vector<std::size_t> share(workers);
      for (std::uint32_t i = 0; i < 42000; ++i) ++share.at(owner_of(i * stride, workers));
      for (const std::size_t n : share) EXPECT_NEAR(static_cast<double>(n) * workers / 42000, 1, 0.1);
    }
  }
}

// Values by id and sample.
using Entries = std::map<std::pair<std::uint32_t, std::uint32_t>, float>;

void add_entries(const InvertedLists& list, Entries& entries) {
  for (std::size_t slot = 0; slot < list.size(); ++slot) {
    const auto members = list.samples(slot);
    EXPECT_TRUE(std::ranges::is_sorted(members));
    EXPECT_FALSE(members.empty());
    for (std::size_t i = 0; i < members.size(); ++i) {
      EXPECT_TRUE(entries.emplace(std::pair{list.ids()[slot], members[i]}, list.values(slot)[i]).second);
    }
  }
}

// Over all workers the lists are the batch turned round: each (id, sample, value) once, samples rising. So it
// is looked up as well as counted out; counted out, ids rise too.
TEST(InvertedLists, AreTheBatchTurnedRound) {
  for (const std::uint32_t workers : {1U, 2U, 5U}) {
    std::vector<InvertedLists> lists;
    lists.reserve(workers);
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      lists.emplace_back(Ownership{.worker = worker, .workers = workers});
    }
    // Large, small, large: builds leave nothing behind.
    for (const std::size_t samples : {std::size_t{40}, std::size_t{1}, std::size_t{30}}) {
      const OwnedBatch batch = random_batch({.network = {.features = 90, .labels = 25},
                                             .samples = samples,
                                             .features_each = 9,
                                             .labels_each = 3,
                                             .unlabelled = true},
                                            samples);
      Entries want;
      for (std::uint32_t s = 0; s < samples; ++s) {
        const data::SparseRow row = batch.view().features.row(s);
        for (std::size_t k = 0; k < row.index.size(); ++k) want[{row.index[k], s}] = row.value[k];
      }
      for (const std::size_t ids : {std::size_t{90}, std::size_t{100'000}}) {
        Entries got;
        for (InvertedLists& list : lists) {
          list.build(batch.view().features, ids);
          if (ids == 90 && samples > 1) {
            EXPECT_TRUE(std::ranges::is_sorted(list.ids()));
          }
          add_entries(list, got);
        }
        EXPECT_EQ(got, want) << workers << " " << samples << " " << ids;
      }
    }
  }
}

// Ids without samples come behind those of the batch, once, at their owner only.
TEST(InvertedLists, TakeIdsWithoutSamples) {
  const OwnedBatch batch = random_batch({.network = {.features = 5, .labels = 10}, .samples = 4}, 3);
  std::multiset<std::uint32_t> ids;
  for (std::uint32_t worker = 0; worker < 3; ++worker) {
    InvertedLists list({.worker = worker, .workers = 3});
    list.build(batch.view().labels);
    const std::size_t listed = list.size();
    for (const std::uint32_t id : {7U, 100U, 7U, 101U, 102U, 100U}) list.add_without_samples(id);
    for (std::size_t slot = listed; slot < list.size(); ++slot) EXPECT_TRUE(list.samples(slot).empty());
    ids.insert(list.ids().begin(), list.ids().end());
  }
  for (const std::uint32_t id : {7U, 100U, 101U, 102U}) EXPECT_EQ(ids.count(id), 1U) << id;
}

}  // namespace
}  // namespace gossamer::sparse
