// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/serve/serving_engine.h"

#include <utility>

#include "engines/sparse/fleet/step/layout_message.h"
#include "engines/sparse/serve/part_answers.h"

namespace gossamer::sparse_engine {

// Data that the Work uses. The loop thread looks at it only between two pieces of Work.
struct ServingEngine::Bench {
  Result<std::shared_ptr<const ServingJob>> job = std::shared_ptr<const ServingJob>();
  std::unique_ptr<const sparse::Network> network;
  std::unique_ptr<PartAnswers> part;
  Result<void> done;
  net::Message answer;

  void load(const ServingJob& its_job, const sparse::NetworkPart& wanted) {
    part.reset();
    network.reset();
    auto loaded = its_job.load(wanted);
    done = loaded.ok() ? Result<void>() : loaded.error();
    if (!loaded.ok()) return;
    network = std::make_unique<const sparse::Network>(std::move(loaded->network));
    part = std::make_unique<PartAnswers>(PartAnswers::Options{.shape = its_job.shape,
                                                              .activation = its_job.activation,
                                                              .kernels = its_job.kernels,
                                                              .compute = its_job.compute,
                                                              .most_label_bytes = its_job.most_label_bytes},
                                         *network, std::move(loaded->instances));
  }
};

ServingEngine::ServingEngine(cluster::MemberProcess& process, MakeJob make_job)
    : MemberEngine(process),
      make_job_(std::move(make_job)),
      bench_(std::make_shared<Bench>()),
      questions_(process) {}

ServingEngine::~ServingEngine() = default;

void ServingEngine::begin(const cluster::LifeBegun& event, Instant now) {
  installed_ = Epoch();
  part_.reset();
  questions_.begin_life();
  configuration_ = event.configuration;
  if (job_ != nullptr) return member().ready(now);
  next(now);
}

void ServingEngine::arrived(const net::Arrived& event, Instant now) {
  questions_.on(event);
  next(now);
}

// Reports the part that the member was given, even if it has not read it yet. All of it is in the model
// directory.
void ServingEngine::freeze(Instant now) {
  sparse_fleet::Report report;
  if (part_) write_part(*part_, *report.mutable_part());
  member().frozen(report.SerializeAsString(), {}, now);
}

void ServingEngine::install(Instant now) {
  if (job_ == nullptr || Epoch(member().installed().epoch()) <= installed_) return;
  const auto layout = read_layout(member().installed().decision(), job_->shape);
  if (!layout.ok()) return fail(layout.error(), now);
  const auto rank = layout->rank_of(member().self().node);
  if (!rank) return;
  installed_ = Epoch(member().installed().epoch());
  part_ = layout->members[*rank].after;
  if (leaving() && holds_nothing(*part_)) return member().leave(*leaving(), now);
  next(now);
}

// Begins what is to be done next. Does nothing if nothing is to be done, or something is under way.
void ServingEngine::next(Instant now) {
  if (doing_ != Doing::kNothing || !lives()) return;
  if (job_ == nullptr) {
    doing_ = Doing::kPreparing;
    wanted_ = [bench = bench_, make = make_job_, configuration = configuration_] {
      bench->job = make(configuration);
    };
    return;
  }
  if (!part_) return;
  if (held_ != pieces_of(job_->shape, *part_)) return load();
  if (!questions_.is_open() || questions_.epoch() < installed_) questions_.open(installed_, *part_, now);
  answer();
}

void ServingEngine::load() {
  doing_ = Doing::kLoading;
  questions_.close();
  held_.reset();
  wanted_ = [bench = bench_, job = job_, part = *part_] { bench->load(*job, part); };
}

void ServingEngine::answer() {
  auto question = questions_.take();
  if (question == nullptr) return;
  doing_ = Doing::kAnswering;
  ++counters_.rounds;
  counters_.queries += question->asked.queries();
  wanted_ = [bench = bench_, question = std::move(question)] {
    auto answered = LeadQuestions::answer(*bench->part, *question);
    bench->done = answered.ok() ? Result<void>() : answered.error();
    if (answered.ok()) bench->answer = *std::move(answered);
  };
}

void ServingEngine::tick(Instant now) {
  if (lives()) questions_.tick(now);
}

cluster::Engine::Work ServingEngine::take_work() { return std::exchange(wanted_, {}); }

void ServingEngine::worked(Instant now) {
  const Doing done = std::exchange(doing_, Doing::kNothing);
  if (failure()) return;
  if (done == Doing::kPreparing) {
    if (!bench_->job.ok()) return fail(bench_->job.error(), now);
    job_ = *bench_->job;
    if (lives()) member().ready(now);
    return;
  }
  if (!bench_->done.ok()) return fail(bench_->done.error(), now);
  if (done == Doing::kLoading) {
    ++counters_.parts_loaded;
    held_ = pieces_of(job_->shape, bench_->part->part());
  }
  if (!lives()) return;
  if (done == Doing::kAnswering) questions_.give(std::move(bench_->answer), now);
  next(now);
}

}  // namespace gossamer::sparse_engine
