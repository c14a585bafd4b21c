// SPDX-License-Identifier: Apache-2.0
//
// PipelineExchanges: SUM among the holders of a stage, and RECORDS among all members of a layout
// (docs/protocols/pipeline-step.md, "Messages"). Sums are formed by the Work of the side queue.
//
// Thread rule: the loop thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/slice.h"
#include "cluster/collective/collectives.h"
#include "cluster/control/engine.h"
#include "cluster/control/view.h"
#include "engines/pipeline/step/layout.h"
#include "engines/pipeline/step/record.h"

namespace gossamer::pipeline {

class PipelineExchanges {
 public:
  // The number of an attempt's operations within a view.
  [[nodiscard]] static cluster::OperationId number_of(const Attempt& attempt) {
    return cluster::OperationId(2 * attempt.step.value + attempt.tries);
  }

  struct Send {
    net::PeerId to;
    host::Lane lane;
    net::Message message;
  };
  struct Summed {
    cluster::OperationId id;
    Slices sum;
  };
  struct Gathered {
    cluster::OperationId id;
    std::map<NodeId, Slices> records;
  };
  // An exchange of the view cannot end.
  struct Failed {};
  struct Broken {
    net::PeerId peer;
    Error error;
  };
  using Event = std::variant<Send, Summed, Gathered, Failed, Broken>;
  using Events = std::vector<Event>;

  // `gone`: whether a peer is gone for good.
  PipelineExchanges(net::PeerId self, std::function<bool(net::PeerId)> gone);

  // Takes over a layout in which this member has a stage. False: not all of its members are in the view.
  [[nodiscard]] bool install(const cluster::View& view, Epoch epoch, const Stages& stages);
  // The exchanges of the view end, and nobody is told.
  void stop();
  void lost(net::PeerId peer, Events& out);
  // The contribution of this member, as it travels. Requires other holders of its stage.
  void sum(const Attempt& attempt, std::uint64_t numbers, cluster::SumNumbers type, Slices contribution,
           Events& out);
  void gather(const Attempt& attempt, Slice record, Events& out);
  // A message of one of the two channels.
  void on(const net::Arrived& event, Events& out);

  [[nodiscard]] cluster::Engine::Work take_side_work();
  void side_worked(Events& out);

  [[nodiscard]] bool sums_alone() const { return peers_.size() < 2; }
  [[nodiscard]] std::optional<cluster::Awaited> awaits() const;
  [[nodiscard]] std::uint64_t numbers_touched() const {
    return sums_.numbers_touched() + records_.numbers_touched();
  }

 private:
  void translate(bool of_sums, cluster::CollectiveEvents events, Events& out);

  const net::PeerId self_;
  cluster::Collectives sums_;
  cluster::Collectives records_;
  std::vector<net::PeerId> peers_;    // of this stage, by rank
  std::vector<net::PeerId> members_;  // of the layout, by rank
};

}  // namespace gossamer::pipeline
