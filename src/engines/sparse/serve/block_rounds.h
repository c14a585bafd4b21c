// SPDX-License-Identifier: Apache-2.0
//
// BlockRounds: what the lead of a serving run computes for a block of queries, from one round to the next
// (docs/protocols/sparse-serving.md). It writes the questions of a round, and makes a result of the answers.
// With thousands of neighbours that takes seconds, so a loop must not do it (fleet_queries.h).
//
//   BlockRounds block({.shape = shape}, {.rows = rows, .labels = 100});
//   while (!block.done()) {
//     for (const auto& question : block.write(members)) ...
//     block.take(members with their answers);
//   }
//   auto answer = block.take_answer();
//
// Memory: the block's lists, and the memory of FusedBlock. Thread rule: one owner at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/model/ranking.h"
#include "engines/sparse/serve/fused_block.h"
#include "learn/data/rows.h"
#include "learn/sparse/network/row_order.h"

namespace gossamer::sparse_engine {

// A model that members hold in parts.
struct ModelInParts {
  FleetShape shape;
  sparse::RowOrder order = {};  // of the labels in the parts
  std::size_t instances = 0;    // training rows that members share out; then row = label
};

class BlockRounds {
 public:
  // For each query the best labels of the net, best first.
  using Lists = std::vector<std::vector<Scored>>;

  struct Block {
    data::SparseRows rows;                 // 1..kQueryBlock queries as the network sees them, weighted
    std::size_t labels = 1;                // labels of the net for each query, at least 1
    std::span<const float> compared = {};  // their values for comparison with training rows; for neighbours
    std::size_t neighbours = 0;  // training rows for each list, at most kMaxListed; 0: the net alone ranks
  };
  struct Answer {
    Lists net;
    std::optional<FusedBlock> fused;  // present if neighbours were asked for
  };
  struct Member {
    NodeId node;
    std::shared_ptr<const sparse::NetworkPart> part;
    Slices answer = {};  // the answer to the last question
  };
  struct Question {
    NodeId node;
    Slices payload;
    std::optional<std::uint64_t> answer_bytes;  // nothing: take() finds out whether the number is right
  };

  // The contents of `block` are copied. Neighbours need training rows.
  BlockRounds(ModelInParts model, const Block& block);

  // The questions of this round, one for each member. The members' parts are the whole network. To be called
  // again if the members change.
  [[nodiscard]] std::vector<Question> write(const std::vector<Member>& members);
  // Takes the answers of all members, each of the expected size. The next round follows, or the block is
  // done.
  void take(const std::vector<Member>& members);
  [[nodiscard]] bool done() const { return answer_.has_value(); }
  // Requires done(). Errors: wrong_answer() for an answer that no member can have given. kRefused if there
  // are too many labels to rank together.
  [[nodiscard]] Result<Answer> take_answer() { return *std::move(answer_); }

  // Facts about this round, for its questions.
  [[nodiscard]] std::size_t layer() const { return layer_; }
  [[nodiscard]] std::size_t queries() const { return queries_; }
  // Labels per list. 0 in every round but the one for lists.
  [[nodiscard]] std::size_t labels() const { return layer_ == shape_.layers() ? labels_ : 0; }
  [[nodiscard]] std::size_t neighbours() const {
    return layer_ == shape_.layers() && fused_ ? fused_->neighbours() : 0;
  }

 private:
  [[nodiscard]] std::optional<std::uint64_t> answer_bytes(const sparse::NetworkPart& part) const;
  void take_hidden(const std::vector<Member>& members);
  void take_columns(const Member& from);
  void take_lists(const std::vector<Member>& members);
  [[nodiscard]] Result<void> take_list(const Member& from);
  void take_labels(const std::vector<Member>& members);
  void take_terms(const std::vector<Member>& members);

  const FleetShape shape_;
  const sparse::RowOrder order_;
  const std::size_t queries_;
  const std::size_t labels_;
  std::size_t layer_ = 0;  // the round: the hidden layers, then lists, labels of rows, terms
  Lists net_;
  std::optional<FusedBlock> fused_;
  Slices given_;  // the payload that the round begins with
  std::vector<float> hidden_;
  std::optional<Result<Answer>> answer_;
};

// The error for a member's answer that cannot be used. It is kFailed: the fault is not that of the process
// that asks.
[[nodiscard]] Error wrong_answer(NodeId node, std::string what);

}  // namespace gossamer::sparse_engine
