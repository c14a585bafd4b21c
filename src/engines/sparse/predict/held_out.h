// SPDX-License-Identifier: Apache-2.0
//
// rank_held_out() asks a predictor for the best labels of each record that training held out. What is learnt
// from the answers must not be judged by them: a fit looks better on its own records than on others. So the
// records have two halves, and what was learnt on one is judged by the other.
//
// Thread rule: the thread that may call the predictor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/function_ref.h"
#include "base/result.h"
#include "engines/sparse/predict/predictor.h"
#include "learn/data/dataset.h"
#include "learn/data/hold_out.h"

namespace gossamer::sparse_engine {

// Blocks of records that belong together are never divided (learn/data/hold_out.h).
enum class Half : std::uint8_t { kFirst, kSecond };
inline constexpr std::array kHalves = {Half::kFirst, Half::kSecond};
[[nodiscard]] constexpr Half half_of_held(std::uint64_t i) {
  return static_cast<Half>(i / data::HoldOut::kBlock % kHalves.size());
}

struct HeldOutRecords {
  const data::Dataset& dataset;
  const data::HoldOut& hold_out;
  std::optional<Half> half = {};  // only this one; nothing: all
};

// One answer: query `query` of `block` is this record, the `held`-th that was held out.
struct RankedRecord {
  const data::Record& record;
  std::uint64_t held;
  const PredictionBlock& block;
  std::size_t query;

  // Whether the record has its c-th ranked label.
  [[nodiscard]] bool correct(std::size_t c) const;
};

// Calls `take` for each record, in their order. `block` is reused, and says whether terms are wanted. Errors
// are the predictor's.
[[nodiscard]] Result<void> rank_held_out(Predictor& predictor, const HeldOutRecords& records,
                                         std::size_t top_k, PredictionBlock& block,
                                         FunctionRef<void(const RankedRecord&)> take);

}  // namespace gossamer::sparse_engine
