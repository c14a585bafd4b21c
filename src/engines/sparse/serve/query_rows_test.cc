// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/serve/query_rows.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engines/sparse/serve/test_payload_words.h"

namespace gossamer::sparse_engine {
namespace {

using testing::words;

std::optional<OwnedLabelSets> sets_of(const std::string& bytes) {
  SliceReader reader({Slice::of(bytes)});
  return read_label_sets(reader, 2, 10);
}

// Claim: label sets come back as they were. Cut or added bytes are noticed.
TEST(QueryRows, LabelSetsComeBack) {
  const OwnedLabelSets sets{.begin = {0, 3, 3}, .label = {1, 4, 9}};
  const std::string bytes = joined({write_label_sets(sets.view())});
  const auto read = sets_of(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->begin, sets.begin);
  EXPECT_EQ(read->label, sets.label);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(sets_of(bytes.substr(0, size))) << size;
  EXPECT_FALSE(sets_of(bytes + std::string(4, '\0')));
}

// Claim: label sets are refused if they begin nowhere, fall, repeat a label or have one that does not exist.
TEST(QueryRows, RefusesLabelSetsThatCannotBe) {
  EXPECT_TRUE(sets_of(words({0, 1, 2, 9, 0})));
  EXPECT_FALSE(sets_of(words({1, 1, 2, 9, 0})));
  EXPECT_FALSE(sets_of(words({0, 3, 2, 9, 0})));
  EXPECT_FALSE(sets_of(words({0, 1, 4'000'000'000, 9, 0})));
  EXPECT_FALSE(sets_of(words({0, 0, 2, 4, 4})));
  EXPECT_FALSE(sets_of(words({0, 0, 2, 5, 4})));
  EXPECT_FALSE(sets_of(words({0, 1, 2, 10, 0})));
}

// Claim: queries are read from the front, and the bytes behind them are left.
TEST(QueryRows, QueriesFromTheFront) {
  const QueryRows rows{.begin = {0, 1, 3}, .index = {3, 7, 2}, .value = {1, 2, 0.5F}};
  const Slice bytes = write_query_rows(rows.view());
  SliceReader reader({bytes, Slice::of(std::string("more"))});
  const auto read = take_query_rows(reader, 2, 8);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->begin, rows.begin);
  EXPECT_EQ(read->index, rows.index);
  EXPECT_EQ(read->value, rows.value);
  EXPECT_EQ(reader.left(), 4U);
  EXPECT_FALSE(read_query_rows({bytes, Slice::of(std::string("more"))}, 2, 8));
  EXPECT_TRUE(read_query_rows({bytes}, 2, 8));
  EXPECT_FALSE(read_query_rows({bytes}, 2, 7));
}

}  // namespace
}  // namespace gossamer::sparse_engine
