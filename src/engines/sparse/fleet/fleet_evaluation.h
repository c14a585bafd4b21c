// SPDX-License-Identifier: Apache-2.0
//
// FleetEvaluation: a member's part of evaluating a network whose parts lie with several members
// (docs/protocols/sparse-step.md, "Evaluation"). Test records go in query blocks. For each block the members
// gather the hidden vectors. Each member finds the best labels among the rows that it holds. The lists of a
// record meet at the member that merges them. Like FleetLearner it knows ranks, not peers. In each exchange
// it computes from what all members gave in the exchange before, and gives something.
//
//   FleetEvaluation evaluation(job, my part, {parts by rank}, my rank);
//   for (e = 0; e <= evaluation.exchanges(); ++e) given = evaluation.round(e, got);    // got: by rank
//   evaluation.ranks();
//
// Lists and ranks are, to the bit, the same as a Predictor's that has the whole network and predicts by the
// net alone. The network does not change. Memory: width + 32 bytes for each row held, and buffers of a block.
// Thread rule: the one thread of the job's Compute; nothing changes the network meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_array.h"
#include "base/result.h"
#include "base/slice.h"
#include "cluster/collective/operation.h"
#include "engines/sparse/fleet/step/fleet_job.h"
#include "engines/sparse/fleet/step/part_scorer.h"
#include "engines/sparse/fleet/step/step_log.h"
#include "engines/sparse/predict/evaluation.h"
#include "engines/sparse/predict/fusion.h"
#include "engines/sparse/predict/predictor.h"
#include "engines/sparse/predict/row_search.h"
#include "learn/data/rows.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse_engine {

class FleetEvaluation {
 public:
  // Requires job.test. Borrows job and network for its life. The network is this rank's part, in the job's
  // order.
  FleetEvaluation(const FleetJob& job, const sparse::Network& network, std::vector<sparse::NetworkPart> parts,
                  std::size_t rank);
  FleetEvaluation(const FleetEvaluation&) = delete;
  FleetEvaluation& operator=(const FleetEvaluation&) = delete;

  [[nodiscard]] std::uint64_t exchanges() const { return blocks() * rounds_ + 1; }
  // Requires exchange < exchanges(). For the last exchange round() must have been called before.
  [[nodiscard]] cluster::Operation operation(std::uint64_t exchange) const;
  // Computes what this member gives in an exchange. For an all-to-all it is the parts for all ranks, one
  // after the other. `got` is what all members gave in the exchange before. Requires that exchanges come in
  // order. The call for exchanges() gives nothing. kBadData for bytes that no member can have given.
  [[nodiscard]] Result<Slices> round(std::uint64_t exchange, std::span<const Slices> got);

  // The answers to the records of the block before that this member has merged. They are there after the
  // first exchange of a block, and after the last exchange of all.
  [[nodiscard]] const PredictionBlock& answers() const { return answers_; }
  [[nodiscard]] host::Range answered() const { return answered_; }
  // After round(exchanges()): for each true label of all records, in their order, its rank among the best
  // kEvaluationDepth. Ranks begin with 1; 0 means that the label is not among them.
  [[nodiscard]] std::span<const std::uint32_t> ranks() const { return ranks_; }

 private:
  [[nodiscard]] std::uint64_t blocks() const { return (records_ + kQueryBlock - 1) / kQueryBlock; }
  // The records of a block; and those that a member merges, counted from the block's first.
  [[nodiscard]] host::Range block_of(std::uint64_t block) const;
  [[nodiscard]] host::Range merged_by(std::size_t rank, std::uint64_t block) const;
  [[nodiscard]] std::size_t limit(std::size_t rank) const;

  void begin_block(std::uint64_t block);
  [[nodiscard]] Slices give_hidden(std::size_t layer) const;
  void take_hidden(std::size_t layer, std::span<const Slices> got);
  [[nodiscard]] Slices give_lists(std::uint64_t block);
  [[nodiscard]] Result<void> take_lists(std::uint64_t block, std::span<const Slices> got);
  void rank_answers(std::span<std::vector<Scored>> lists);
  [[nodiscard]] Result<void> take_ranks(std::span<const Slices> got);
  [[nodiscard]] HiddenRows hidden(std::size_t layer) { return {hidden_[layer].data(), strides_[layer]}; }

  const FleetJob& job_;
  const std::vector<sparse::NetworkPart> parts_;  // by rank
  const std::size_t me_;
  const std::uint64_t records_;
  const std::uint64_t rounds_;  // exchanges of a block
  const std::size_t wished_;    // labels of a list, as wished
  const PieceCodec codec_;
  std::vector<std::size_t> strides_;         // by hidden layer
  std::vector<AlignedArray<float>> hidden_;  // by layer, [kQueryBlock][stride]
  PartScorer scorer_;
  std::vector<Fusion> fusions_;  // by worker
  data::Batch batch_ = {};       // of the block
  host::Range answered_;
  PredictionBlock answers_;
  std::vector<std::uint32_t> own_ranks_;         // for the records that this member has merged
  std::vector<std::vector<std::uint32_t>> due_;  // by rank: how many ranks it has for each block
  std::vector<std::uint32_t> ranks_;
};

}  // namespace gossamer::sparse_engine
