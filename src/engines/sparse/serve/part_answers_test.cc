// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/serve/part_answers.h"

#include <gossamer/sparse_serving.pb.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "engines/sparse/fleet/step/payload_values.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/model_part.h"
#include "engines/sparse/model/test_random_model.h"
#include "engines/sparse/serve/query_rows.h"
#include "engines/sparse/serve/test_payload_words.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"

namespace gossamer::sparse_engine {
namespace {

constexpr std::uint32_t kRowsAsked = 301;

// Claim: an answer has the labels of the first records that were asked for. It has as many of them as fit
// into its limit, and one at least.
TEST(PartAnswers, LabelsFitTheLimit) {
  const Model model = testing::random_model({.features = 30, .labels = 77, .hidden = 48, .rows = kRowsAsked});
  host::SimDisk disk;
  host::SimCompute compute({});
  ASSERT_TRUE(save_model(disk, "model", model, {}).ok());
  for (const std::uint64_t limit : {std::uint64_t{1}, std::uint64_t{100}, kMostLabelBytes}) {
    auto loaded =
        load_model_part(disk, "model", sparse::whole(model.network.shape, 3), PartInstances::kShare, compute);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    PartAnswers answers({.shape = {.network = model.network.shape, .shard_shift = 3},
                         .activation = model.activation,
                         .kernels = testing::best_kernels(),
                         .compute = compute,
                         .most_label_bytes = limit},
                        loaded->network, std::move(loaded->instances));
    sparse_serving::Question asked;
    asked.set_layer(2);  // after one hidden layer and the lists
    asked.set_queries(1);
    std::size_t given = 0;
    for (std::uint32_t next = 0; next < kRowsAsked; ++given) {
      std::vector<std::uint32_t> rows;
      for (std::uint32_t row = next; row < kRowsAsked; ++row) rows.push_back(row);
      const auto answer = answers.answer(asked, {Slice::of(testing::words(rows))});
      ASSERT_TRUE(answer.ok()) << answer.error().message();
      SliceReader reader({Slice::copy_of(*answer)});
      const std::uint32_t count = take_values<std::uint32_t>(reader, 1).front();
      const auto sets = read_label_sets(reader, count, 77);
      ASSERT_TRUE(sets && count >= 1);
      EXPECT_TRUE(count == 1 || answer->size() <= limit) << answer->size();
      for (std::uint32_t i = 0; i < count; ++i)
        ASSERT_TRUE(std::ranges::equal(sets->view().row(i), model.instances->labels().row(next + i)));
      next += count;
      if (next < kRowsAsked) {
        EXPECT_GT(answer->size() + 4 * (1 + model.instances->labels().row(next).size()), limit);
      }
    }
    EXPECT_EQ(given == 1, limit == kMostLabelBytes);
    EXPECT_EQ(given == kRowsAsked, limit == 1);
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
