// SPDX-License-Identifier: Apache-2.0
//
// FleetQueries: the lead's side of serving by several nodes (docs/protocols/sparse-serving.md). It asks the
// members that hold a model's parts, round by round, and puts their answers together. A pure state machine:
// messages come in by on(), and the caller takes out what is to be sent. Long computations are Work, as an
// engine's are (cluster/control/engine.h).
//
//   queries.ask({.rows = rows, .labels = 100});
//   for (auto& each : queries.take_out()) {
//     links.expect(each.to, kQueryChannel, each.most_answer_bytes);
//     links.send(each.to, each.lane, each.message);
//   }
//   if (auto work = queries.take_work()) ...  // on another thread; then queries.worked()
//   if (auto answer = queries.take_answer()) ...
//
// The lists, and all that the fusion looks at, are to the bit those of one process, whatever members come and
// go meanwhile. Thread rule: one owner. Work may run on any thread, one piece after the other, and may
// outlive its queries.
#pragma once

#include <gossamer/sparse_serving.pb.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/slice.h"
#include "cluster/control/engine.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/serve/block_rounds.h"
#include "engines/sparse/serve/lead_questions.h"
#include "host/api/network.h"
#include "net/link/message.h"
#include "net/link/peer_id.h"

namespace gossamer::sparse_engine {

class FleetQueries {
 public:
  struct Sending {
    net::PeerId to;
    host::Lane lane = host::Lane::kControl;
    net::Message message;
    std::uint64_t most_answer_bytes = 0;  // counted as link messages are
  };
  using Work = cluster::Engine::Work;
  using Lists = BlockRounds::Lists;
  using Block = BlockRounds::Block;
  using Answer = BlockRounds::Answer;

  explicit FleetQueries(ModelInParts model) : model_(std::move(model)) {}

  // Asks about a block, and gives up the block that is under way, if any. The contents of `block` are copied.
  // Neighbours need training rows.
  void ask(const Block& block);
  // The layout in force, as the workload has decided it. Without one, no member has to say that it has parts.
  void placed(Epoch epoch, const std::string& decision);
  // A message of the channel. A message that answers no open question is dropped. An error for one that no
  // correct member sends, such as that of a member that claims a part which the layout gives to others.
  [[nodiscard]] Result<void> on(net::PeerId from, const net::Message& message);
  [[nodiscard]] std::vector<Sending> take_out();
  // Nothing while a piece is under way, or if there is nothing to compute.
  [[nodiscard]] Work take_work();
  // The caller has done the piece that it took.
  void worked();
  // The answer, once for each ask(). wrong_answer() for an answer that no member can have given.
  [[nodiscard]] std::optional<Result<Answer>> take_answer();

  // Whether the parts of all ready members are the whole network.
  [[nodiscard]] bool whole() const { return whole_; }
  // The epoch that ready members have their parts of; 0 before the first one is ready.
  [[nodiscard]] Epoch epoch() const { return epoch_; }
  // The number of ready members, and which nodes they are.
  [[nodiscard]] std::size_t members() const { return ready_.size(); }
  [[nodiscard]] std::set<NodeId> nodes() const;

 private:
  struct Ready {
    net::PeerId peer;
    std::shared_ptr<const sparse::NetworkPart> part;
    std::optional<std::uint64_t> answer_bytes;  // in the round under way, if its question says
    std::optional<Slices> answer;
  };
  struct Bench;

  [[nodiscard]] Result<void> on_ready(net::PeerId from, const sparse_serving::Ready& ready);
  void on_part(net::PeerId from, Epoch epoch, sparse::NetworkPart part);
  void want_questions();
  void want_next();
  void ask_round();
  void end(Result<Answer> answer);

  const ModelInParts model_;
  struct Placed {
    Epoch epoch;
    Layout layout;
  };
  std::optional<Placed> placed_;
  Epoch epoch_;
  std::map<NodeId, Ready> ready_;  // of that epoch
  std::uint64_t changes_ = 0;      // how often ready_ has changed
  bool whole_ = false;
  std::shared_ptr<Bench> block_;  // under way, if any
  std::uint64_t number_ = 0;      // of the last round
  bool waiting_ = false;          // for answers to it
  Work wanted_;
  bool working_ = false;           // wanted_ was taken
  std::shared_ptr<Bench> at_;      // the block whose Work is wanted or taken
  std::uint64_t written_for_ = 0;  // the changes that the questions know
  std::vector<Sending> out_;
  std::optional<Result<Answer>> answer_;
};

}  // namespace gossamer::sparse_engine
