// SPDX-License-Identifier: Apache-2.0
//
// Members with parts of a model, and the lead that asks them, in virtual time. For the tests of both; not
// part of the product.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engines/sparse/fleet/fleet_workload.h"
#include "engines/sparse/model/model_file.h"
#include "engines/sparse/model/model_part.h"
#include "engines/sparse/model/test_random_model.h"
#include "engines/sparse/predict/row_search.h"
#include "engines/sparse/serve/fleet_queries.h"
#include "engines/sparse/serve/serving_engine.h"
#include "host/sim/compute.h"
#include "host/sim/disk.h"
#include "kernels/kernels.h"
#include "learn/sparse/hidden_layer.h"
#include "simulation/fleet.h"

namespace gossamer::sparse_engine::testing {

// A model on a disk, and the results of one process that has it.
class Served {
 public:
  // `instances`: whether members have shares of the training rows, too.
  explicit Served(
      const RandomModelShape& shape, PartInstances instances = PartInstances::kNone,
      const std::function<void(Model& model)>& change = [](Model&) {})
      : model_(random_model(shape)), instances_(instances) {
    change(model_);
    EXPECT_TRUE(save_model(disk_, "model", model_, {.max_shard_bytes = 20'000}).ok());
  }
  [[nodiscard]] FleetQueries::Lists one_process(const data::SparseRows& queries, std::size_t labels) {
    const sparse::HiddenLayer layer(model_.network, model_.activation, best_kernels());
    AlignedArray<float> hidden(queries.rows() * layer.stride());
    for (std::size_t q = 0; q < queries.rows(); ++q)
      layer.forward(queries.row(q), hidden.data() + q * layer.stride());
    RowSearch search({.rows = model_.network.shape.labels,
                      .width = model_.network.shape.last_hidden(),
                      .weights = model_.network.output.all_weights().data(),
                      .stride = layer.stride(),
                      .bias = model_.network.bias.data()},
                     best_kernels(), compute_);
    search.search({hidden.data(), layer.stride(), queries.rows()}, labels);
    FleetQueries::Lists lists;
    for (std::size_t q = 0; q < queries.rows(); ++q)
      lists.emplace_back(search.found(q).begin(), search.found(q).end());
    return lists;
  }
  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] host::Compute& compute() { return compute_; }
  // The training rows that members share out.
  [[nodiscard]] std::size_t rows() const {
    return instances_ == PartInstances::kShare ? model_.instances->rows() : 0;
  }
  // Limits the labels in an answer from now on.
  void limit_label_bytes(std::uint64_t most) { most_label_bytes_ = most; }
  [[nodiscard]] FleetShape shape() const { return {.network = model_.network.shape, .shard_shift = 3}; }
  [[nodiscard]] std::shared_ptr<const ServingJob> job() {
    return std::make_shared<const ServingJob>(ServingJob{.shape = shape(),
                                                         .activation = model_.activation,
                                                         .kernels = best_kernels(),
                                                         .compute = compute_,
                                                         .load =
                                                             [this](const sparse::NetworkPart& part) {
                                                               return load_model_part(disk_, "model", part,
                                                                                      instances_, compute_);
                                                             },
                                                         .most_label_bytes = most_label_bytes_});
  }

 private:
  Model model_;
  PartInstances instances_;
  std::uint64_t most_label_bytes_ = 1 << 20;
  host::SimDisk disk_;
  host::SimCompute compute_{{.workers = 2, .seed = 3}};
};

// Does all wanted Work at once.
inline void do_work(FleetQueries& queries) {
  while (const auto work = queries.take_work()) {
    work();
    queries.worked();
  }
}

class ServedFleet {
 public:
  // `work`: how long members compute at a time; nothing: up to 5 ms.
  ServedFleet(Served& served, std::size_t members, std::uint64_t seed = 1, Duration work = {})
      : served_(served),
        work_(work),
        workload_(served.shape(), {.copies = 0}),
        queries_(std::in_place, model()),
        fleet_({.workload = workload_,
                .configuration = "model",
                .tracks = workload_.tracks(),
                .first_members = members,
                .seed = seed,
                .path = {.delay = from_milliseconds(5)},
                .others = [this](const net::Arrived& arrived) {
                  const cluster::Coordinator* const leader = fleet_.leader();
                  if (leader == nullptr || arrived.message.channel != kQueryChannel) return;
                  sparse_serving::Body body;
                  if (body.ParseFromString(arrived.message.body) && body.has_answer())
                    ++answers_[arrived.from.node];
                  // As node::Companion is told.
                  if (leader->installed() != placed_)
                    queries_->placed(placed_ = leader->installed(), leader->decision());
                  static_cast<void>(queries_->on(arrived.from, arrived.message));
                }}) {
    for (std::size_t i = 0; i < members; ++i) join();
  }

  std::string join() {
    return fleet_.join({.longest_work = work_ > Duration{} ? work_ : from_milliseconds(5),
                        .shortest_work = work_,
                        .make_engine = [this](cluster::MemberProcess& process) {
                          return std::make_unique<ServingEngine>(process,
                                                                 [this](const std::string& configuration) {
                                                                   EXPECT_EQ(configuration, "model");
                                                                   return Result(served_.job());
                                                                 });
                        }});
  }
  // Answers that have come to leads so far.
  [[nodiscard]] std::size_t answers() const {
    std::size_t all = 0;
    for (const auto& [node, answers] : answers_) all += answers;
    return all;
  }
  // Those of a node, in all of its lives.
  [[nodiscard]] std::size_t answers_of(NodeId node) { return answers_[node]; }
  void ask(const data::SparseRows& queries, std::size_t labels) {
    queries_->ask({.rows = queries, .labels = labels});
  }
  void ask(const FleetQueries::Block& block) { queries_->ask(block); }
  // The answer, if it is there after so many milliseconds at the latest.
  std::optional<Result<FleetQueries::Answer>> answer(int milliseconds) {
    for (int i = 0; i < milliseconds; ++i) {
      fleet_.run_for(0.001);
      flush();
      if (auto answer = queries_->take_answer()) return answer;
    }
    return std::nullopt;
  }
  // A piece of Work ends at the next call: much may come meanwhile.
  void flush() {
    if (working_) {
      std::exchange(working_, {})();
      queries_->worked();
    }
    working_ = queries_->take_work();
    for (FleetQueries::Sending& each : queries_->take_out())
      fleet_.send(each.to, each.lane, std::move(each.message));
  }
  // The lead is killed. The next one knows nothing of its members.
  void kill_lead() {
    fleet_.kill_coordinator_for("c1", from_seconds(0.5));
    working_ = {};
    queries_.emplace(model());
    placed_ = Epoch();
  }
  [[nodiscard]] FleetQueries& queries() { return *queries_; }
  [[nodiscard]] simulation::Fleet* operator->() { return &fleet_; }

 private:
  [[nodiscard]] ModelInParts model() const { return {.shape = served_.shape(), .instances = served_.rows()}; }

  Served& served_;
  const Duration work_;
  std::map<NodeId, std::size_t> answers_;  // by the node that gave them
  FleetWorkload workload_;
  std::optional<FleetQueries> queries_;
  Epoch placed_;                // that the queries were told
  FleetQueries::Work working_;  // under way
  simulation::Fleet fleet_;
};

}  // namespace gossamer::sparse_engine::testing
