// SPDX-License-Identifier: Apache-2.0
//
// Metrics of ranked labels against a test set.
//
//   P@k     mean over samples of |top k and true| / k
//   nDCG@k  mean of DCG / ideal DCG, gain 1 / log2(rank + 1), ideal over min(k, |true|) labels
//   PSP@k   S(ranking) / S(best possible ranking), with S the sum over all samples of the inverse
//           propensities of the hits in the top k (the Extreme Classification Repository's normalisation)
//   R@k     mean of |top k and true| / |true|
//   MRR@k   mean of 1 / rank of the best-ranked true label, 0 if it stands below k
//   hit@k   fraction of samples with a true label in the top k
//   median rank   of each sample's best-ranked true label, 1-based, infinite when it is not in the list
//
// The inverse propensity of a label seen n times in N training records (Jain, Prabhu and Varma, "Extreme
// multi-label loss functions", KDD 2016) is
//
//   1 + C (n + B)^-A,  C = (ln N - 1)(B + 1)^A,  A = 0.55,  B = 1.5
//
// Samples without labels are left out and counted. A true label that the model does not know (index beyond
// its labels) counts as missed, with n = 0. Thread rule: one owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engines/sparse/model/ranking.h"

namespace gossamer::sparse_engine {

// The fraction of the net's exact best labels that another search found; percent.
struct RetrievalRecall {
  double at10 = 0;
  double at100 = 0;
};

// All but median_rank are percent, 0..100.
struct Metrics {
  std::array<double, 3> precision{};   // P@1, P@3, P@5
  std::array<double, 3> ndcg{};        // nDCG@1, 3, 5
  std::array<double, 3> propensity{};  // PSP@1, 3, 5
  std::array<double, 2> recall{};      // R@10, 20
  double reciprocal_rank = 0;          // MRR@20
  std::array<double, 2> hit{};         // hit@1, 10
  double median_rank = 0;              // may be infinite
  std::optional<RetrievalRecall> retrieval = {};
  std::uint64_t samples = 0;  // samples with labels
  std::uint64_t without_labels = 0;
  std::uint64_t nothing_known = 0;  // of the samples, those without a feature of the model; the caller counts
  std::uint64_t labels = 0;         // of all samples
  std::uint64_t unseen_labels = 0;  // of them, labels that no training record had

  // The names are "P@1", "P@3", ..., "nDCG@5", "PSP@1", ..., "recall@10", "recall@20", "MRR@20", "hit@1",
  // "hit@10", "median_rank". If `retrieval` is known, "retrieval@10" and "retrieval@100" follow.
  [[nodiscard]] std::vector<std::pair<std::string_view, double>> named() const;
};

struct PropensityOptions {
  double a = 0.55;
  double b = 1.5;
};

class Evaluator {
 public:
  // `label_count`: training records per label, copied as propensities. `training_rows`: N.
  Evaluator(std::span<const std::uint32_t> label_count, std::uint64_t training_rows,
            const PropensityOptions& options = {});

  // Adds a sample. `ranked`: best first, no label twice; at least 20 labels if the model has as many.
  // `truth`: strictly increasing.
  void add(std::span<const Scored> ranked, std::span<const std::uint32_t> truth);
  // Adds a sample of which only the ranks of the true labels are known. ranks[i], from 1, belongs to
  // truth[i]; it is 0 if the list does not have that label. No two ranks are equal, except 0.
  void add_ranks(std::span<const std::uint32_t> ranks, std::span<const std::uint32_t> truth);
  // The metrics of all samples added so far; all zero without any.
  [[nodiscard]] Metrics metrics() const;

 private:
  [[nodiscard]] double inverse_propensity(std::uint32_t label) const;

  std::vector<double> inverse_propensity_;
  std::vector<bool> seen_;  // one per label: some training record has it
  double unseen_inverse_propensity_ = 1;
  Metrics sums_;
  std::array<double, 3> best_propensity_{};
  std::vector<double> scratch_;
  std::vector<std::uint32_t> ranks_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> hits_;  // rank and label
  std::vector<std::uint32_t> best_rank_;                       // one per sample; 0: not in the list
};

// So many labels of each sample are asked of the predictor. Ranks beyond are infinite.
inline constexpr std::size_t kEvaluationDepth = 100;

}  // namespace gossamer::sparse_engine
