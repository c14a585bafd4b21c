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
// term, so "nearest neighbours alone" and "the net alone" are the same code with other switches. With a
// single view the floor, which keeps one view's zero from overruling the others, is left out: the order is
// that view's own.
//
// Thread rule: one Fusion per worker; the options are plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/result.h"
#include "engines/sparse/ranking.h"
#include "learn/sparse/slot_map.h"

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

// kUsage, with `where` the field, for an option out of its range.
[[nodiscard]] Result<void> validate(const FusionOptions& options);

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
  return options.mixed_vote_weight != 0 && parts.input_neighbours && parts.hidden_neighbours;
}

class InstanceIndex;
struct Instances;

// What the parts found for one query. Lists of parts that are switched off are empty.
struct QueryViews {
  std::span<const Scored> net = {};     // labels with the net's scores, best first
  std::span<const Scored> input = {};   // training rows with their input cosines, best first
  std::span<const Scored> hidden = {};  // with their hidden cosines
  std::span<const Scored> mixed = {};   // with the mean of both
  std::span<const float> cosines = {};  // input cosines of all rows (InstanceIndex::cosines); for centroids
};

class Fusion {
 public:
  // Borrows what it looks up: `instances` for the labels of neighbours, `index` for centroids; null where no
  // part needs it. Requires one part that names candidates.
  struct Sources {
    const Instances* instances = nullptr;
    const InstanceIndex* index = nullptr;
  };
  Fusion(const FusionOptions& options, const PredictParts& parts, const Sources& sources);

  // The best `top_k` of all candidates into `out`, best first. Requires out.size() >= top_k; returns how
  // many.
  std::size_t rank(const QueryViews& views, std::size_t top_k, std::span<Scored> out);

 private:
  struct Terms {
    float log_net = -std::numeric_limits<float>::infinity();
    float input = 0;
    float hidden = 0;
    float mixed = 0;
  };

  Terms& terms_of(std::uint32_t label);
  void add_net(std::span<const Scored> net);
  void add_votes(std::span<const Scored> rows, float power, float Terms::* view);
  [[nodiscard]] float score(std::uint32_t label, const Terms& terms, std::span<const float> cosines) const;

  FusionOptions options_;
  PredictParts parts_;
  Sources sources_;
  sparse::SlotMap slots_;
  std::vector<Terms> terms_;  // by slot
  std::vector<Scored> ranked_;
};

}  // namespace gossamer::engine
