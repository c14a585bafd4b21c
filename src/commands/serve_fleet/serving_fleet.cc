// SPDX-License-Identifier: Apache-2.0
#include "commands/serve_fleet/serving_fleet.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "commands/serve_fleet/query_desk.h"
#include "commands/serve_fleet/serving_job.h"
#include "engines/sparse/fleet/fleet_workload.h"
#include "engines/sparse/predict/fusion.h"
#include "engines/sparse/predict/row_search.h"
#include "host/api/compute.h"
#include "host/api/files.h"
#include "node/coordinator_node.h"
#include "node/node_processes.h"
#include "node/run_configuration.h"

namespace gossamer::commands {
namespace {

using Found = sparse_engine::FleetQueries::Answer;

constexpr Duration kLookEvery{50'000'000};
// How long members may take to leave. They hold nothing that is not on the disk.
constexpr Duration kLeaveTime{3'000'000'000};

// The lead's side, on the loop thread. Work that takes long is done aside.
class QueryCompanion final : public node::Companion {
 public:
  QueryCompanion(const ServingLead& serving, QueryDesk& desk,
                 const std::unique_ptr<node::NodeProcesses>& nodes, node::Aside aside)
      : aside_(std::move(aside)),
        queries_(serving.shape, serving.instances ? serving.instances->rows : 0),
        desk_(desk),
        nodes_(nodes) {}

  void connect(net::Links* links) override { links_ = links; }
  void on(net::Arrived arrived, Instant now) override {
    links_->consumed(arrived.receipt, now);
    if (arrived.message.channel != sparse_engine::kQueryChannel) return;
    queries_.on(arrived.from, arrived.message);
    const QueryDesk::Ready ready{.members = queries_.members(), .whole = queries_.whole()};
    if (ready != shown_) desk_.shows(ready);
    shown_ = ready;
    go_on(now);
  }
  void tick(Instant now) override {
    if (const auto asked = desk_.take_question()) {
      number_ = asked->number;
      queries_.ask({.rows = {asked->begin, asked->index, asked->value},
                    .labels = asked->labels,
                    .compared = asked->compared,
                    .neighbours = asked->neighbours});
    }
    go_on(now);
    if (now < next_look_) return;
    next_look_ = now + kLookEvery;
    if (nodes_ == nullptr) return;
    if (desk_.ending()) return nodes_->end_within(kLeaveTime);
    if (failed_) return;
    auto good = nodes_->look(queries_.whole());
    failed_ = !good.ok();
    if (failed_) desk_.fails(good.error());
  }
  [[nodiscard]] std::optional<Instant> next_wakeup() const override { return next_look_; }
  [[nodiscard]] std::optional<std::string> over() const override {
    return desk_.ending() ? std::optional<std::string>("there are no more queries") : std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> take_remarks() override { return {}; }

 private:
  void go_on(Instant now) {
    if (links_ != nullptr) {
      for (sparse_engine::FleetQueries::Sending& each : queries_.take_out())
        static_cast<void>(links_->send(each.to, each.lane, std::move(each.message), now));
    }
    if (auto answer = queries_.take_answer())
      desk_.gives(QueryDesk::Answer{.number = number_, .found = *std::move(answer)});
    auto work = queries_.take_work();
    if (!work) return;
    aside_(std::move(work), [this](Instant then) {
      queries_.worked();
      go_on(then);
    });
  }

  const node::Aside aside_;
  sparse_engine::FleetQueries queries_;
  QueryDesk& desk_;
  const std::unique_ptr<node::NodeProcesses>& nodes_;  // null until they are started
  net::Links* links_ = nullptr;
  Instant next_look_;
  std::uint64_t number_ = 0;  // of the block under way
  QueryDesk::Ready shown_;
  bool failed_ = false;  // a node has failed
};

// Leads the nodes, from their start to their end.
Result<void> lead(const run::NodeHost& host, const ServingFleet::Options& options, const ServingLead& serving,
                  QueryDesk& desk) {
  const std::uint64_t shards = serving.shape.shards();
  sparse_engine::FleetWorkload workload(serving.shape,
                                        {.shard_bytes = serving.bytes / shards + 1, .copies = 0});
  std::unique_ptr<node::NodeProcesses> nodes;
  node::Post wake;
  node::CoordinatorOptions leading{
      .directory = options.directory + "/nodes/coordinator",
      .state = options.directory + "/nodes/state",
      .listen = options.join_at.value_or(host::Endpoint{.host = "127.0.0.1", .port = 0}),
      .first_members = options.nodes,
      .configuration = node::run_configuration_bytes(
          {.engine = options.engine, .program = options.program_name, .own = serving.configuration}),
      .program = options.program_name,
      .report = {.log = {.level = options.join_at ? node::LogLevel::kInfo : node::LogLevel::kError}},
      .make_companion = [&](const node::Aside& aside, const node::Post& post) {
        wake = post;
        return std::make_unique<QueryCompanion>(serving, desk, nodes, aside);
      }};
  auto node = node::CoordinatorNode::start(host, std::move(leading), workload);
  if (!node.ok()) return node.error();
  auto token = (*node)->new_token("for this lead's nodes");
  if (!token.ok()) return token.error();
  if (!options.join_at) {
    auto started = node::NodeProcesses::start(host, {.run = options.directory,
                                                     .nodes = options.nodes,
                                                     .threads_each = options.threads_each,
                                                     .program = options.program,
                                                     .at = (*node)->address(),
                                                     .token = *token,
                                                     .starts_again = true});
    if (!started.ok()) return started.error();
    nodes = *std::move(started);
  }
  desk.leads({.at = (*node)->address(), .token = *token, .wake = wake});
  std::optional<Instant> leave_until;
  auto done = (*node)->run([&] {
    if (!desk.ending()) return false;
    if (nodes != nullptr) return nodes->all_ended();
    if (!leave_until) leave_until = host.clock.now() + kLeaveTime;
    return host.clock.now() >= *leave_until;
  });
  // The lead may have ended by itself, and can still be woken.
  if (!done.ok()) desk.fails(done.error());
  desk.closes();
  desk.wait_for_end();
  return {};
}

// Begins the name of a directory that is not locked yet. Other processes do not look at such names.
constexpr char kUnnamed = '.';

// Removes what killed processes have left.
void remove_left_over(host::Disk& disk, const std::string& parent) {
  const auto names = disk.list(parent);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (name.front() == kUnnamed) continue;
    const auto lock = disk.lock(parent + "/" + name);
    if (lock.ok()) static_cast<void>(disk.remove_all(parent + "/" + name));
  }
}

// Makes the directory, whatever a process of the same number has left there, and holds its lock.
Result<std::unique_ptr<host::DirectoryLock>> take_fresh(host::Disk& disk, const std::string& directory) {
  const std::string parent = host::parent(directory);
  remove_left_over(disk, parent);
  const std::string unnamed = parent + "/" + kUnnamed + directory.substr(parent.size() + 1);
  for (const std::string& old : {unnamed, directory}) {
    if (auto removed = disk.remove_all(old); !removed.ok()) return removed.error();
  }
  if (auto made = disk.make_directories(unnamed); !made.ok()) return made.error();
  auto lock = disk.lock(unnamed);
  if (!lock.ok()) return lock;
  if (auto named = disk.rename(unnamed, directory); !named.ok()) return named.error();
  return lock;
}

}  // namespace

ServingFleet::ServingFleet(const run::NodeHost& host, Options options)
    : host_(host), options_(std::move(options)) {}

Result<std::unique_ptr<ServingFleet>> ServingFleet::start(const run::NodeHost& host,
                                                          const sparse_engine::OpenedModel& model,
                                                          Options options) {
  std::unique_ptr<ServingFleet> fleet(new ServingFleet(host, std::move(options)));
  const Options& own = fleet->options_;
  auto lock = take_fresh(host.disk, own.directory);
  if (!lock.ok()) return lock.error();
  fleet->lock_ = *std::move(lock);
  if (auto made = host.disk.make_directories(own.directory + "/nodes/coordinator"); !made.ok())
    return made.error();
  fleet->lead_ = std::make_unique<host::SerialThread>();
  fleet->lead_->give(
      [&host, &own, &desk = fleet->desk_, serving = prepare_serving(model, own.nodes, own.instances)] {
        if (const auto led = lead(host, own, serving, desk); !led.ok()) desk.fails(led.error());
      });
  const QueryDesk::Patience patience{.time = own.start_patience, .stop = own.stop};
  const auto led = fleet->desk_.wait_until_led(host.clock, patience);
  if (!led.ok()) return led.error();
  if (own.joined_at) {
    if (auto told = own.joined_at(led->at, led->token); !told.ok()) return told.error();
  }
  if (auto whole = fleet->desk_.wait_until_whole(host.clock, patience); !whole.ok()) return whole.error();
  return fleet;
}

ServingFleet::~ServingFleet() {
  desk_.end();
  lead_.reset();
  if (lock_ != nullptr) static_cast<void>(host_.disk.remove_all(options_.directory));
}

Result<Found> ServingFleet::ask(const sparse_engine::FleetQueries::Block& block) {
  const data::SparseRows& rows = block.rows;
  AskedBlock asked{.number = ++asked_,
                   .begin = {rows.begin.begin(), rows.begin.end()},
                   .index = {rows.index.begin(), rows.index.end()},
                   .value = {rows.value.begin(), rows.value.end()},
                   .labels = block.labels,
                   .compared = {block.compared.begin(), block.compared.end()},
                   .neighbours = block.neighbours};
  return desk_.ask(std::move(asked), host_.clock, {.time = options_.patience});
}

namespace {

class FleetPredictor final : public sparse_engine::Predictor {
 public:
  FleetPredictor(ServingFleet& fleet, const sparse_engine::Model& model)
      : fleet_(fleet),
        model_(model),
        parts_(fleet.fuses() ? sparse_engine::PredictParts() : sparse_engine::kNetAlone),
        comparison_(text::comparison_weighting(model.weighting, model.neighbours)),
        fusion_(model.fusion, parts_, sparse_engine::Fusion::Sources()) {}

  Result<void> predict(const data::SparseRows& queries, std::size_t top_k,
                       sparse_engine::PredictionBlock& out) override {
    CHECK(top_k >= 1 && !out.with_terms, top_k);
    out.top_k = top_k;
    out.count.assign(queries.rows(), 0);
    out.entries.assign(queries.rows() * top_k, {});
    out.terms.clear();
    for (std::size_t first = 0; first < queries.rows(); first += sparse_engine::kQueryBlock) {
      const std::size_t end = std::min(first + sparse_engine::kQueryBlock, queries.rows());
      if (auto answered = answer(queries, {first, end}, out); !answered.ok()) return answered;
    }
    return {};
  }

 private:
  // Answers a range of queries. When they have too many labels to rank together, they are asked in halves.
  // The answer to a query does not depend on the others.
  Result<void> answer(const data::SparseRows& queries, const host::Range& range,
                      sparse_engine::PredictionBlock& out) {
    weigh(queries, range.begin, range.end - range.begin);
    auto found = fleet_.ask({.rows = {begin_, index_, value_},
                             .labels = candidates(out.top_k),
                             .compared = compared_,
                             .neighbours = fleet_.fuses() ? model_.fusion.neighbours : 0});
    if (!found.ok() && found.error().kind == ErrorKind::kRefused && range.end - range.begin > 1) {
      const std::size_t middle = range.begin + (range.end - range.begin) / 2;
      auto half = answer(queries, {range.begin, middle}, out);
      return half.ok() ? answer(queries, {middle, range.end}, out) : half;
    }
    if (!found.ok()) return found.error();
    for (std::size_t q = 0; q < found->net.size(); ++q) {
      const auto mine = std::span(out.entries).subspan((range.begin + q) * out.top_k, out.top_k);
      out.count[range.begin + q] = static_cast<std::uint32_t>(rank(*found, q, mine));
    }
    return {};
  }
  // The number of candidates: as many as one process looks at.
  [[nodiscard]] std::size_t candidates(std::size_t top_k) const {
    const std::size_t wished = model_.fusion.candidates;
    return std::min(fleet_.fuses() ? wished : std::max(wished, top_k), model_.network.shape.labels);
  }
  std::size_t rank(const Found& found, std::size_t q, std::span<sparse_engine::Scored> out) {
    if (found.fused) return found.fused->rank(fusion_, model_.fusion, q, found.net[q], out);
    return fusion_.rank({.net = found.net[q]}, out.size(), out);
  }
  // Weighs queries [first, first + count) in two ways: as the network sees them, and
  // as training rows are compared.
  void weigh(const data::SparseRows& queries, std::size_t first, std::size_t count) {
    begin_.assign(1, 0);
    index_.clear();
    value_.clear();
    compared_.clear();
    for (std::size_t q = first; q < first + count; ++q) {
      const data::SparseRow query = queries.row(q);
      index_.insert(index_.end(), query.index.begin(), query.index.end());
      const std::size_t at = value_.size();
      value_.resize(index_.size());
      model_.weighting.apply(query, std::span(value_).subspan(at));
      begin_.push_back(static_cast<std::uint32_t>(index_.size()));
      if (!fleet_.fuses()) continue;
      compared_.resize(index_.size());
      comparison_.apply(query, std::span(compared_).subspan(at));
    }
  }

  ServingFleet& fleet_;
  const sparse_engine::Model& model_;
  const sparse_engine::PredictParts parts_;
  const text::FeatureWeighting comparison_;
  sparse_engine::Fusion fusion_;
  std::vector<std::uint32_t> begin_;
  std::vector<std::uint32_t> index_;
  std::vector<float> value_;
  std::vector<float> compared_;
};

}  // namespace

std::unique_ptr<sparse_engine::Predictor> fleet_predictor(ServingFleet& fleet,
                                                          const sparse_engine::Model& model) {
  return std::make_unique<FleetPredictor>(fleet, model);
}

}  // namespace gossamer::commands
