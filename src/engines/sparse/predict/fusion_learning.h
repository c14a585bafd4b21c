// SPDX-License-Identifier: Apache-2.0
//
// Learns the weights of the fusion on records that training held out.
//
// Each held-out record has the candidates of the fusion with their terms x, and p = softmax(w . x) over them.
// The loss has two parts:
// - the cross-entropy to the record's own labels among the candidates, each with the same weight, averaged
//   over the records that have any
// - ridge |w - prior|^2
//
// A weight that the user gives stays, and the others are learnt for it.
//
// It is convex in the few weights, so Newton's method finds the minimum. It draws the correct labels up as a
// list (listwise learning to rank: Cao et al., ICML 2007, equation 4 with uniform targets).
//
// Thread rule: fit_fusion_weights() is a pure function; learn_fusion_weights() is called by the owner of the
// Compute. Results do not depend on the number of workers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engines/sparse/config/config.h"
#include "engines/sparse/model/fusion_options.h"
#include "engines/sparse/model/model.h"
#include "engines/sparse/predict/fusion.h"
#include "engines/sparse/predict/held_out.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/data/dataset.h"
#include "learn/data/hold_out.h"

namespace gossamer::sparse_engine {

// Candidates of several records: record r has begin[r]..begin[r+1].
struct FusionExamples {
  std::vector<std::size_t> begin = {0};
  std::vector<FusionVector> terms;
  std::vector<std::uint8_t> correct;  // 1: the record has the label

  [[nodiscard]] std::size_t records() const { return begin.size() - 1; }
};

struct FittedFusion {
  FusionVector weights;
  std::size_t records = 0;  // records with a correct candidate; 0: the weights are the prior
  double loss = 0;          // mean over those records, nats, without the ridge
  double loss_before = 0;   // the loss of the prior
};

// By FusionTerm: whether its weight stays that of the prior.
using GivenTerms = std::array<bool, kFusionTerms>;
[[nodiscard]] GivenTerms given_terms(const PredictConfig& config);

// Fits the weights. Given terms keep their prior weight, and so do those that are equal for all candidates of
// every record.
[[nodiscard]] FittedFusion fit_fusion_weights(const FusionExamples& examples, const FusionVector& prior,
                                              const GivenTerms& given = {});

struct LearntFusion {
  FittedFusion all;
  // By Half: the weights that the other half alone would give. Answers by them do not know these records.
  std::array<FusionVector, kHalves.size()> by_the_other;
};

// Learns the weights that are not given. `model` was trained from the records that `hold_out` keeps of
// `dataset`, and has them as instances. It has the given weights. kBadData, with the record, where the loss
// is not finite.
[[nodiscard]] Result<LearntFusion> learn_fusion_weights(const Model& model, const GivenTerms& given,
                                                        const data::Dataset& dataset,
                                                        const data::HoldOut& hold_out,
                                                        const kernels::Kernels& kernels,
                                                        host::Compute& compute);

}  // namespace gossamer::sparse_engine
