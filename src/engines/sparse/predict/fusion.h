// SPDX-License-Identifier: Apache-2.0
//
// Fusion: the score of a label from several views of one query, a weighted sum of terms:
//
//   net         max(s(l) - best s, -20)        s: the net's own score
//   centroid    R(l)                           R: cosine of the query to the label's centroid
//   input       ln(I(l) + floor)               I: vote of the nearest training rows by input cosine
//   sharp       ln(J(l) + floor)               J: the same with a higher power
//   hidden      ln(V(l) + floor)               V: vote of the nearest training rows by hidden cosine
//   mixed       ln(M(l) + floor)               M: vote of the nearest by the mean of both cosines
//
// A vote of neighbours j with cosines s_j gives every label of j the part s_j^power / sum_j s_j^power. The
// centroid of a label is the sum of the input rows that carry it (Rocchio). The net's score stops 20 below
// its best, so that other views can still name a label that the net never saw.
//
// Candidates are all labels that the net's best or any neighbour names. A part that is switched off adds
// neither candidates nor a term. So "nearest neighbours alone" and "the net alone" are the same code with
// other switches. A single view keeps its own order.
//
// The weights are learnt on records that training held out (fusion_learning.h).
//
// Thread rule: one Fusion per worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "engines/sparse/model/fusion_options.h"
#include "engines/sparse/model/ranking.h"
#include "kernels/kernels.h"
#include "learn/sparse/network/network.h"
#include "learn/sparse/slot_map.h"

namespace gossamer::sparse_engine {

// Which views take part.
struct PredictParts {
  bool net = true;
  bool input_neighbours = true;
  bool hidden_neighbours = true;
  bool centroids = true;

  [[nodiscard]] bool need_instances() const { return input_neighbours || hidden_neighbours || centroids; }
  bool operator==(const PredictParts&) const = default;
};
inline constexpr PredictParts kNetAlone{
    .net = true, .input_neighbours = false, .hidden_neighbours = false, .centroids = false};
inline constexpr PredictParts kNearestRowsAlone{
    .net = false, .input_neighbours = true, .hidden_neighbours = false, .centroids = false};

// Whether the mixed vote is computed.
[[nodiscard]] inline bool mixes(const FusionOptions& options, const PredictParts& parts) {
  return options.weights[FusionTerm::kMixed] != 0 && parts.input_neighbours && parts.hidden_neighbours;
}

class InstanceIndex;
struct Instances;

// The answers of nodes that hold the model together, about one query (serve/fused_block.h). They cover all
// labels and rows to which the query's views lead.
class FusionAnswers {
 public:
  FusionAnswers() = default;
  FusionAnswers(const FusionAnswers&) = delete;
  FusionAnswers& operator=(const FusionAnswers&) = delete;
  virtual ~FusionAnswers() = default;

  [[nodiscard]] virtual std::span<const std::uint32_t> labels_of(std::uint32_t row) const = 0;
  [[nodiscard]] virtual float net_score(std::uint32_t label) const = 0;
  [[nodiscard]] virtual float centroid_cosine(std::uint32_t label) const = 0;
};

// The finds of the parts for one query. Lists of parts that are switched off are empty.
struct QueryViews {
  std::span<const Scored> net = {};     // labels with the net's scores, best first
  const float* layer = nullptr;         // the query's hidden layer, padded as the network's rows
  std::span<const Scored> input = {};   // training rows with their input cosines, best first
  std::span<const Scored> hidden = {};  // with their hidden cosines
  std::span<const Scored> mixed = {};   // with the mean of both
  std::span<const float> cosines = {};  // input cosines of all rows (InstanceIndex::cosines); for centroids
  // Instead of the sources: then neither layer nor cosines are needed.
  const FusionAnswers* answers = nullptr;
};

class Fusion {
 public:
  // Borrowed objects for look-ups; null if no part needs one or other nodes answer (QueryViews::answers).
  // `network` has scores of labels that only neighbours name. `instances` has the labels of neighbours.
  // `index` has centroids. Requires one part that names candidates.
  struct Sources {
    const sparse::Network* network = nullptr;
    const kernels::Kernels* kernels = nullptr;
    const Instances* instances = nullptr;
    const InstanceIndex* index = nullptr;
  };
  Fusion(const FusionOptions& options, const PredictParts& parts, const Sources& sources);

  // Writes the best `top_k` of all candidates into `out`, best first. Writes their terms into `terms` unless
  // it is empty. Requires out.size() >= top_k, and the same for non-empty terms. Returns how many.
  std::size_t rank(const QueryViews& views, std::size_t top_k, std::span<Scored> out,
                   std::span<FusionVector> terms = {});
  // The probability that a label of the query that was ranked last is right, from its score. It does not
  // depend on top_k. Nothing where the options have no calibration for these parts.
  [[nodiscard]] std::optional<float> probability(float score) const;
  // The share of the softmax over the candidates.
  [[nodiscard]] float share(float score) const;

 private:
  struct Candidate {
    float net = std::numeric_limits<float>::quiet_NaN();  // the net's score, if the net named the label
    float input = 0;
    float sharp = 0;
    float hidden = 0;
    float mixed = 0;
  };

  Candidate& candidate(std::uint32_t label);
  void add_votes(const QueryViews& views, std::span<const Scored> rows, float power, float Candidate::* view);
  [[nodiscard]] std::span<const std::uint32_t> labels_of(std::uint32_t row, const QueryViews& views) const;
  [[nodiscard]] float net_score(std::uint32_t label, const QueryViews& views) const;
  [[nodiscard]] float centroid_cosine(std::uint32_t label, const QueryViews& views) const;
  // What the softmax multiplies scores by. The net alone is asked at its own scale.
  [[nodiscard]] double softmax_scale() const;
  void sum_up_candidates();
  [[nodiscard]] FusionVector terms_of(std::size_t slot, const QueryViews& views) const;

  FusionOptions options_;
  PredictParts parts_;
  Sources sources_;
  sparse::SlotMap slots_;
  std::vector<Candidate> candidates_;  // by slot
  std::vector<FusionVector> terms_;    // by slot
  std::vector<double> votes_;          // by row of one list
  std::vector<Scored> ranked_;
  double log_partition_ = 0;
};

}  // namespace gossamer::sparse_engine
