// SPDX-License-Identifier: Apache-2.0
//
// FleetQueries: the lead's side of serving by several nodes (docs/protocols/sparse-serving.md): asks the
// members that hold a model's parts, round by round, and puts together what they answer. A pure state
// machine: messages come in by on(), what is to be sent is taken out.
//
//   queries.ask({.rows = rows, .labels = 100});
//   for (auto& each : queries.take_out()) links.send(each.to, each.lane, each.message);
//   if (auto answer = queries.take_answer()) ...
//
// The lists, and all that the fusion looks at, are those that one process finds, to the bit, whoever comes
// and goes meanwhile. Thread rule: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_array.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "engines/sparse/fleet/fused_block.h"
#include "engines/sparse/fleet/layout.h"
#include "engines/sparse/ranking.h"
#include "host/api/network.h"
#include "learn/data/rows.h"
#include "learn/sparse/row_order.h"
#include "net/link/message.h"
#include "net/link/peer_id.h"

namespace gossamer::engine {

inline constexpr std::uint32_t kQueryChannel = 8;

class FleetQueries {
 public:
  struct Sending {
    net::PeerId to;
    host::Lane lane = host::Lane::kControl;
    net::Message message;
  };
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

  // Members hold shares of so many training rows.
  explicit FleetQueries(FleetShape shape, std::size_t instances = 0);

  // One block that is under way is given up. What `block` looks at is copied. Neighbours need training rows.
  void ask(const Block& block);
  // A message of the channel. What nobody asked for is dropped.
  void on(net::PeerId from, const net::Message& message);
  [[nodiscard]] std::vector<Sending> take_out();
  // Once for each ask(): kBadData for an answer that no member can have given.
  [[nodiscard]] std::optional<Result<Answer>> take_answer();

  // The parts of all that are ready are the whole network.
  [[nodiscard]] bool whole() const { return whole_; }
  // That are ready.
  [[nodiscard]] std::size_t members() const { return ready_.size(); }

 private:
  struct Ready {
    net::PeerId peer;
    sparse::NetworkPart part;
    std::optional<Slices> answer;  // of the round under way
  };

  void on_ready(net::PeerId from, Epoch epoch, sparse::NetworkPart part);
  void ask_round();
  [[nodiscard]] Slices question_for(const Ready& ready) const;
  void round_done();
  void hidden_done();
  void take_hidden(const Ready& from);
  void lists_done();
  [[nodiscard]] Result<void> take_lists(const Ready& from);
  void labels_done();
  void terms_done();
  // Nothing: any that the round then finds to be right.
  [[nodiscard]] std::optional<std::uint64_t> answer_bytes(const sparse::NetworkPart& part) const;
  void end(Result<Answer> answer);

  const FleetShape shape_;
  const std::size_t instances_;
  const sparse::RowOrder order_;  // row = label
  Epoch epoch_;
  std::map<NodeId, Ready> ready_;  // of that epoch
  bool whole_ = false;
  std::uint64_t number_ = 0;
  bool under_way_ = false;
  std::size_t layer_ = 0;  // of the round; after the hidden ones the lists, the labels of rows, the terms
  std::size_t queries_ = 0;
  std::size_t labels_ = 0;
  Lists net_;
  std::optional<FusedBlock> fused_;
  Slices given_;  // what the round begins with
  std::vector<float> hidden_;
  std::vector<Sending> out_;
  std::optional<Result<Answer>> answer_;
};

}  // namespace gossamer::engine
