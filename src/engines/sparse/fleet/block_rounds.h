// SPDX-License-Identifier: Apache-2.0
//
// BlockRounds: what the lead of a serving run computes for a block of queries, from one round to the next
// (docs/protocols/sparse-serving.md): the questions of a round, and what the answers come to. With thousands
// of neighbours that is seconds, so it is no business of a loop (fleet_queries.h).
//
//   BlockRounds block(shape, instances, {.rows = rows, .labels = 100});
//   while (!block.done()) {
//     for (const auto& question : block.write(members)) ...
//     block.take(members with their answers);
//   }
//   auto answer = block.take_answer();
//
// Memory: the block's lists, and what FusedBlock has. Thread rule: one owner at a time.
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
#include "engines/sparse/fleet/fused_block.h"
#include "engines/sparse/fleet/layout.h"
#include "engines/sparse/ranking.h"
#include "learn/data/rows.h"

namespace gossamer::engine {

class BlockRounds {
 public:
  // Of each query the best labels of the net, best first.
  using Lists = std::vector<std::vector<Scored>>;

  struct Block {
    data::SparseRows rows;                 // 1..kQueryBlock queries as the network sees them, weighted
    std::size_t labels = 1;                // of the net for each, at least 1
    std::span<const float> compared = {};  // their values as training rows are compared; only for neighbours
    std::size_t neighbours = 0;  // training rows for each list, at most kMaxListed; 0: by the net alone
  };
  struct Answer {
    Lists net;
    std::optional<FusedBlock> fused;  // where neighbours were asked for
  };
  struct Member {
    NodeId node;
    std::shared_ptr<const sparse::NetworkPart> part;
    Slices answer = {};  // to the last question
  };
  struct Question {
    NodeId node;
    Slices payload;
    std::optional<std::uint64_t> answer_bytes;  // nothing: any number that take() then finds to be right
  };

  // Members hold shares of so many training rows. What `block` looks at is copied. Neighbours need rows.
  BlockRounds(FleetShape shape, std::size_t instances, const Block& block);

  // The round's, to each of the members, whose parts are the whole network. Again, if they change.
  [[nodiscard]] std::vector<Question> write(const std::vector<Member>& members);
  // Of all members, of the sizes that were expected: then comes the next round, or the block is done.
  void take(const std::vector<Member>& members);
  [[nodiscard]] bool done() const { return answer_.has_value(); }
  // Requires done(). Errors: kBadData for an answer that no member can have given; kRefused: there are too
  // many labels to rank together.
  [[nodiscard]] Result<Answer> take_answer() { return *std::move(answer_); }

  // Of the round, for its questions.
  [[nodiscard]] std::size_t layer() const { return layer_; }
  [[nodiscard]] std::size_t queries() const { return queries_; }
  // Per list; 0 in other rounds than that of the lists.
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
  const std::size_t queries_;
  const std::size_t labels_;
  std::size_t layer_ = 0;  // after the hidden ones the lists, the labels of rows, the terms
  Lists net_;
  std::optional<FusedBlock> fused_;
  Slices given_;  // what the round begins with
  std::vector<float> hidden_;
  std::optional<Result<Answer>> answer_;
};

// Of a member's answer that cannot be used.
[[nodiscard]] Error wrong_answer(NodeId node, std::string what);

}  // namespace gossamer::engine
