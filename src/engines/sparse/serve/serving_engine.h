// SPDX-License-Identifier: Apache-2.0
//
// ServingEngine: a member's side of serving by several nodes (docs/protocols/sparse-serving.md). It holds the
// part of a model that the view gives it, and answers the lead's questions. When the view changes it reads
// the pieces that it lacks. Nothing can be lost, as everything is in the model directory.
//
// Thread rule: the loop thread; reading and computing are Work.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/ids.h"
#include "base/result.h"
#include "cluster/control/member_process.h"
#include "engines/run/member_engine.h"
#include "engines/sparse/fleet/step/layout.h"
#include "engines/sparse/model/model_part.h"
#include "engines/sparse/serve/lead_questions.h"
#include "host/api/compute.h"
#include "kernels/kernels.h"
#include "learn/sparse/network/network.h"

namespace gossamer::sparse_engine {

// The model that a run serves, as a member has it. Called on the thread that works.
struct ServingJob {
  FleetShape shape;
  kernels::Activation activation;
  const kernels::Kernels& kernels;  // borrowed for the job's life
  host::Compute& compute;
  // Loads this part of the network. If members share out training rows, it loads their rows of it, too.
  std::function<Result<ModelPart>(const sparse::NetworkPart& part)> load;
  // An answer has at most so many bytes of labels of training rows, or it has the labels of a single row.
  std::uint64_t most_label_bytes = kMostLabelBytes;
};

// Counters of this process, over all its lives.
struct ServingCounters {
  std::uint64_t parts_loaded = 0;
  std::uint64_t rounds = 0;
  std::uint64_t queries = 0;
  template <class Visitor>
  void describe(Visitor&& v) const {
    v("gossamer_serving_parts_loaded_total", "parts", "Parts of the model read.", parts_loaded);
    v("gossamer_serving_rounds_total", "rounds", "Questions answered.", rounds);
    v("gossamer_serving_queries_total", "queries", "Queries in them.", queries);
  }
};

class ServingEngine final : public engine::MemberEngine {
 public:
  using MakeJob = std::function<Result<std::shared_ptr<const ServingJob>>(const std::string& configuration)>;
  // The process outlives the engine.
  ServingEngine(cluster::MemberProcess& process, MakeJob make_job);
  ~ServingEngine() override;

  void tick(Instant now) override;
  [[nodiscard]] std::optional<Instant> next_wakeup() const override { return std::nullopt; }
  [[nodiscard]] Work take_work() override;
  void worked(Instant now) override;
  [[nodiscard]] std::vector<CounterSample> counters() const override { return read(counters_); }

 private:
  enum class Doing { kNothing, kPreparing, kLoading, kAnswering };
  struct Bench;

  void begin(const cluster::LifeBegun& event, Instant now) override;
  void end() override {}
  void freeze(Instant now) override;
  void install(Instant now) override;
  void arrived(const net::Arrived& event, Instant now) override;
  void next(Instant now);
  void load();
  void answer();

  const MakeJob make_job_;
  std::string configuration_;
  std::shared_ptr<const ServingJob> job_;  // nothing until it is prepared
  const std::shared_ptr<Bench> bench_;     // for the Work, and for worked()
  Doing doing_ = Doing::kNothing;
  Work wanted_;

  Epoch installed_;                          // in this life
  std::optional<sparse::NetworkPart> part_;  // the part that the view gave
  std::optional<Pieces> held_;               // the pieces that are loaded; nothing: none are
  LeadQuestions questions_;
  ServingCounters counters_;
};

}  // namespace gossamer::sparse_engine
