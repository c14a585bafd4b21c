// SPDX-License-Identifier: Apache-2.0
//
// FeatureWeighting: turns the raw counts or values of a record into what a learner sees. Three steps in this
// order, each of them optional:
// 1. The scale of counts, for v >= 1; other values stay. v becomes 1 + ln v ("sublinear tf", section 6.4.1 of
//    [1]) or 1 + ln(1 + ln v) ([2]).
// 2. idf: v_i is multiplied by idf[i] = ln(N / df_i) (equation 6.7 of [1]). N is the number of training
//    records; df_i of them have feature i.
// 3. L2: the row is divided by its Euclidean norm; a row of norm 0 stays 0.
//
// [1] Manning, Raghavan and Schuetze, "Introduction to Information Retrieval", 2008.
// [2] Singhal, Buckley and Mitra, "Pivoted document length normalization", SIGIR 1996.
//
// The struct is plain data and is stored in the model, so that training, evaluation and prediction weigh
// alike. fit_weighting() chooses by the data and says why.
//
// NeighbourWeighting: what differs where records are compared with each other instead of learnt from. A
// cosine of tf-idf rows prefers short records, repeated words and rare ones too much. Better neighbours come
// from counts on the double log, a power of idf below 1 and lengths drawn to their mean ("pivoted", [2]).
// docs/recipe.md tells more.
//
// Thread rule: immutable after fitting, any thread. Owner: the model.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "learn/data/dataset.h"
#include "learn/data/rows.h"

namespace gossamer::text {

enum class CountScale { kLinear, kLog, kDoubleLog };

struct FeatureWeighting {
  CountScale counts = CountScale::kLinear;
  bool l2 = true;
  // Per feature, >= 0; empty: no idf. A feature without training records, or one past the end, weighs 0.
  std::vector<float> idf = {};

  // Requires out.size() == row.value.size(); `out` may be row.value's own memory. Allocates nothing.
  void apply(data::SparseRow row, std::span<float> out) const;
};

struct NeighbourWeighting {
  CountScale counts = CountScale::kLinear;
  float idf_power = 1;  // 0..4
  float pivot = 1;      // 0..1: a training row is divided by (1 - pivot) x mean length + pivot x its length
  float local_scaling = 0;  // 0..4: and by (its similarity to its own neighbours)^this; 0: not

  bool operator==(const NeighbourWeighting&) const = default;
};

// Where the learner sees idf: the values that did best on held-out records; else as the learner sees them.
[[nodiscard]] NeighbourWeighting neighbour_weighting(const FeatureWeighting& learnt);

// The weighting of queries and, before their lengths are pivoted, of training rows: always of length 1.
[[nodiscard]] FeatureWeighting comparison_weighting(const FeatureWeighting& learnt,
                                                    const NeighbourWeighting& neighbours);

struct FittedWeighting {
  FeatureWeighting weighting;
  std::string reason;  // one sentence for people: what the values look like and what is done with them
};

// Looks at every value of the training data once:
//   - all 0 or 1: idf and L2;
//   - all non-negative integers: counts, so log counts, idf and L2;
//   - anything else: somebody has weighted them already, so only L2.
// Without any non-zero value nothing can be told: L2 alone.
[[nodiscard]] FittedWeighting fit_weighting(const data::Dataset& dataset);

}  // namespace gossamer::text
