// SPDX-License-Identifier: Apache-2.0
#include "commands/serve_fleet/model_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "commands/predict/prediction.h"
#include "commands/run/found_model.h"
#include "commands/serve_fleet/serving_fleet.h"
#include "engines/sparse/model/model_file.h"

namespace gossamer::commands {
namespace {

// Reading parts of a large model takes a while. Nodes from elsewhere come when they like.
constexpr double kStartSeconds = 1800;
constexpr double kUntilTold = 1e8;

struct FleetModel {
  sparse_engine::Model model;  // without its network
  std::unique_ptr<ServingFleet> fleet;
  bool fuses = false;  // with the training records
};

// Starts the nodes of a model, and returns when they are ready.
Result<FleetModel> open_fleet(const run::NodeHost& host, const OpenModel& wanted,
                              sparse_engine::Retrieval retrieval) {
  const ModelNodes& nodes = *wanted.nodes;
  const auto found = find_model(host, wanted.directory);
  if (!found.ok()) return found.error();
  const auto opened = sparse_engine::open_model_header(host.disk, *found);
  if (!opened.ok()) return model_error(host, wanted.directory, opened.error());
  if (retrieval != sparse_engine::Retrieval::kExact) {
    return Error{.kind = ErrorKind::kUsage,
                 .where = "--nodes",
                 .what = "nodes have no hash tables for queries",
                 .got = "--retrieval lsh",
                 .expected = "exact lists",
                 .fix = "leave one of the flags out"};
  }
  const bool fuses = opened->header.instances && !wanted.net_alone;
  auto model = sparse_engine::load_model(host.disk, *found, sparse_engine::Reading::kWithoutNetwork);
  if (!model.ok()) return model_error(host, wanted.directory, model.error());
  const auto threads = static_cast<std::size_t>(host.compute.workers());
  auto fleet = ServingFleet::start(
      host, *opened,
      {.directory = nodes.directory,
       .nodes = nodes.nodes,
       .threads_each = std::max<std::size_t>(1, threads / nodes.nodes),
       .instances = fuses ? sparse_engine::PartInstances::kShare : sparse_engine::PartInstances::kNone,
       .program = nodes.program,
       .program_name = nodes.program_name,
       .start_patience = from_seconds(nodes.join_at ? kUntilTold : kStartSeconds),
       .join_at = nodes.join_at,
       .joined_at = nodes.joined_at,
       .stop = wanted.stop});
  if (!fleet.ok()) return fleet.error();
  return FleetModel{.model = *std::move(model), .fleet = *std::move(fleet), .fuses = fuses};
}

// A session with the nodes that it asks.
class FleetSession final : public QuerySession {
 public:
  FleetSession(FleetModel opened, std::size_t top, std::optional<double> threshold)
      : fleet_(std::move(opened.fleet)),
        session_(PredictSession::create(
            std::move(opened.model), top, threshold,
            [this](const sparse_engine::Model& model) { return fleet_predictor(*fleet_, model); })) {}

  Result<void> answer(std::span<const Query> queries,
                      FunctionRef<void(std::string_view json)> sink) override {
    return session_->answer(queries, sink);
  }
  void answer_each(std::span<const Query> queries, std::size_t top,
                   FunctionRef<void(std::size_t query, const Result<std::string>& answer)> sink) override {
    session_->answer_each(queries, top, sink);
  }
  [[nodiscard]] std::size_t top() const override { return session_->top(); }
  [[nodiscard]] std::uint64_t nothing_known() const override { return session_->nothing_known(); }
  [[nodiscard]] IgnoredKeys ignored_keys() const override { return session_->ignored_keys(); }
  [[nodiscard]] std::optional<Error> ended() override { return fleet_->ended(); }
  [[nodiscard]] std::string describe(const std::string& directory) const override {
    return session_->describe(directory);
  }

 private:
  const std::unique_ptr<ServingFleet> fleet_;
  const std::unique_ptr<PredictSession> session_;  // asks the fleet, so it ends first
};

Result<Scorer> scorer_of(const MeasureModel& wanted) {
  if (wanted.model.net_alone) return Scorer::kNet;
  if (wanted.baseline.empty()) return Scorer::kFused;
  if (wanted.baseline == "nearest") return Scorer::kNearestRows;
  if (wanted.baseline == "frequent") return Scorer::kFrequent;
  return Error{.kind = ErrorKind::kUsage,
               .where = "--baseline",
               .what = "no such baseline",
               .got = "'" + wanted.baseline + "'",
               .expected = "nearest or frequent",
               .fix = "leave it out to measure the model itself"};
}

Error baseline_without_net(std::string where, std::string got) {
  return {.kind = ErrorKind::kUsage,
          .where = std::move(where),
          .what = "baselines do not ask the net",
          .got = std::move(got),
          .expected = "one of the two",
          .fix = "leave one of the flags out"};
}

// Opens the model to measure. With nodes, `fleet` has the network.
Result<sparse_engine::Model> open_measured(const run::NodeHost& host, const MeasureModel& wanted,
                                           sparse_engine::Retrieval retrieval,
                                           std::unique_ptr<ServingFleet>& fleet) {
  if (!wanted.model.nodes) return open_model(host, wanted.model.directory);
  if (!wanted.baseline.empty()) return baseline_without_net("--nodes", "--baseline " + wanted.baseline);
  // Nodes need long to read their parts. A path that is not there is told before.
  const auto there = host.disk.exists(wanted.data);
  if (there.ok() && !*there && !is_read_once(host.disk, wanted.data)) {
    if (const auto missing = find_source(host.disk, wanted.data, std::nullopt); !missing.ok())
      return missing.error();
  }
  auto opened = open_fleet(host, wanted.model, retrieval);
  if (!opened.ok()) return opened.error();
  fleet = std::move(opened->fleet);
  return std::move(opened->model);
}

}  // namespace

Result<std::unique_ptr<QuerySession>> open_session(const run::NodeHost& host, const OpenModel& wanted) {
  using Opened = std::unique_ptr<QuerySession>;
  const auto retrieval = parse_retrieval(wanted.retrieval);
  if (!retrieval.ok()) return retrieval.error();
  if (wanted.nodes) {
    auto opened = open_fleet(host, wanted, *retrieval);
    if (!opened.ok()) return opened.error();
    const auto& fusion = opened->model.fusion;
    if (wanted.threshold && !(opened->fuses ? fusion.calibration : fusion.net_calibration))
      return no_probabilities();
    return Opened(std::make_unique<FleetSession>(*std::move(opened), wanted.top, wanted.threshold));
  }
  auto model = open_model(host, wanted.directory);
  if (!model.ok()) return model.error();
  auto session = PredictSession::create(host, std::move(*model),
                                        {.top = wanted.top,
                                         .scorer = wanted.net_alone ? Scorer::kNet : Scorer::kFused,
                                         .retrieval = *retrieval,
                                         .threshold = wanted.threshold});
  if (!session.ok()) return session.error();
  return Opened(*std::move(session));
}

Result<Report> measure_model(const run::NodeHost& host, const MeasureModel& wanted) {
  const auto scorer = scorer_of(wanted);
  if (!scorer.ok()) return scorer.error();
  if (wanted.model.net_alone && !wanted.baseline.empty())
    return baseline_without_net("--net-alone", "--net-alone with --baseline " + wanted.baseline);
  const auto retrieval = parse_retrieval(wanted.model.retrieval);
  if (!retrieval.ok()) return retrieval.error();
  const bool exact = *retrieval == sparse_engine::Retrieval::kExact;
  if (!exact && !wanted.baseline.empty())
    return baseline_without_net("--retrieval", "lsh with --baseline " + wanted.baseline);
  const Instant begin = host.clock.now();
  std::unique_ptr<ServingFleet> fleet;
  auto model = open_measured(host, wanted, *retrieval, fleet);
  if (!model.ok()) return model.error();
  auto source = find_test(host.disk, wanted.data, *model);
  if (!source.ok()) return source.error();
  const Instant loaded = host.clock.now();
  const EvaluateRequest request{.source = *source,
                                .skip_bad = wanted.skip_bad,
                                .scorer = *scorer,
                                .retrieval = exact ? *retrieval : sparse_engine::Retrieval::kHashedMeasured,
                                .none_seen = EvaluateRequest::NoneSeen::kRefused};
  const auto predictor = fleet ? fleet_predictor(*fleet, *model) : nullptr;
  const auto metrics =
      predictor ? evaluate_model(host, *model, *predictor, request) : evaluate_model(host, *model, request);
  if (!metrics.ok()) return metrics.error();
  const double seconds = (host.clock.now() - loaded).seconds();
  const double rate = seconds > 0 ? static_cast<double>((*metrics).samples) / seconds : 0;
  return Report{.json = fmt::format("{{\"metrics\":{},\"samples\":{},\"samples_without_labels\":{},"
                                    "\"samples_nothing_known\":{},\"labels\":{},\"unseen_labels\":{},"
                                    "\"samples_per_second\":{},\"load_seconds\":{},"
                                    "\"eval_seconds\":{},\"cpu_seconds\":{},\"peak_rss_bytes\":{}}}",
                                    metrics_json(*metrics), (*metrics).samples, (*metrics).without_labels,
                                    (*metrics).nothing_known, (*metrics).labels, (*metrics).unseen_labels,
                                    rate, (loaded - begin).seconds(), seconds,
                                    host.clock.process_cpu().seconds(), host.compute.peak_rss_bytes()),
                .text = fmt::format("{}\n{:.0f} records a second\n", metrics_text(*metrics), rate)};
}

}  // namespace gossamer::commands
