// SPDX-License-Identifier: Apache-2.0
//
// Fusion: the score of a label from four views of one query.
//
//   score(l) = w_p ln(P(l) + net_floor)            P: softmax of the net over its own top candidates
//            + w_r R(l)                            R: cosine of the query to the label's centroid
//            + w_i ln(I(l) + vote_floor)           I: vote of the nearest training rows by input cosine
//            + w_h ln(V(l) + vote_floor)           V: vote of the nearest training rows by hidden cosine
//            + w_m ln(M(l) + vote_floor)           M: vote of the nearest by the mean of both cosines
//
// A vote of neighbours j with cosines s_j gives every label of j the share s_j^power / sum_j s_j^power. The
// centroid of a label is the sum of the input rows that carry it (Rocchio); the query has length 1.
// Candidates are all labels that any part names. A part that is switched off adds neither candidates nor a
// term, so "nearest neighbours alone" and "the net alone" are the same code with other switches.
//
// Thread rule: one Fusion per worker; the options are plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gossamer::engine {

struct FusionOptions {
  std::uint32_t candidates = 100;  // labels taken from the net, 1..10000
  std::uint32_t neighbours = 100;  // training rows taken per cosine, 1..10000
  float net_weight = 1;
  float centroid_weight = 8;
  float input_vote_weight = 1;
  float hidden_vote_weight = 1;
  float mixed_vote_weight = 0;  // 0: not computed. Needs both kinds of neighbours
  float input_vote_power = 4;   // 0..64
  float hidden_vote_power = 8;  // 0..64
  float mixed_vote_power = 8;   // 0..64
  float net_floor = 1e-6F;      // > 0
  float vote_floor = 1e-3F;     // > 0

  bool operator==(const FusionOptions&) const = default;
};

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

// A label or a training row with its score or cosine.
struct Scored {
  std::uint32_t id = 0;
  float score = 0;
  bool operator==(const Scored&) const = default;
};
// The order of every list here: higher score first, then smaller id. A strict order as long as no score is a
// NaN.
[[nodiscard]] inline bool ranks_before(const Scored& a, const Scored& b) {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
}

}  // namespace gossamer::engine
