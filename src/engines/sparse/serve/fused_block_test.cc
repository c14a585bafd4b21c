// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/serve/fused_block.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

#include "engines/sparse/serve/query_rows.h"
#include "engines/sparse/serve/test_payload_words.h"

namespace gossamer::sparse_engine {
namespace {

using testing::words;

Slice lists_of(const std::vector<FoundRow>& rows) { return Slice::copy_of(std::as_bytes(std::span(rows))); }

// Claim: the labels of all queries of a block count together against the most that are ranked. Each label
// counts once for a query, whether the net or several rows name it.
TEST(FusedBlock, AllQueriesCountTogether) {
  const QueryRows queries{.begin = {0, 1, 2}, .index = {2, 3}, .value = {1, 1}};
  const sparse::HeldRows held(10, 3);
  for (const std::size_t most : {6U, 7U, 8U}) {
    FusedBlock block({.rows = 5, .labels = 10}, queries.view(), 2);
    const std::vector<FoundRow> input{{3, 0.5F, 0.25F}, {1, 0.25F, 0.5F}, {1, 0.5F, 0.25F}, {4, 0.25F, 0}};
    const std::vector<FoundRow> hidden{{1, 0.25F, 0.5F}, {4, 0, 0.25F}, {1, 0.5F, 0.25F}, {4, 0.25F, 0}};
    SliceReader found({lists_of(input), lists_of(hidden)});
    ASSERT_EQ(found.left(), block.found_bytes(held));
    ASSERT_TRUE(block.add_found(found, held).ok());
    block.rank_found();
    EXPECT_EQ(joined({block.rows_of(held)}), words({1, 3, 4}));
    // The labels of row 1 are 2 and 7, those of row 3 are 0 and 9, and row 4 has 2.
    ASSERT_TRUE(block.add_labels({Slice::of(words({3, 0, 2, 4, 5, 2, 7, 0, 9, 2}))}, held).ok());
    ASSERT_TRUE(block.has_labels());
    const std::vector<std::vector<Scored>> net{std::vector<Scored>{{.id = 7, .score = 1}},
                                               std::vector<Scored>{{.id = 8, .score = 1}}};
    ASSERT_EQ(block.gather(net, most), most >= 7);
    if (most < 7) continue;
    EXPECT_EQ(joined({block.candidates()}), words({0, 4, 7, 0, 2, 7, 9, 2, 7, 8}));
  }
}

}  // namespace
}  // namespace gossamer::sparse_engine
