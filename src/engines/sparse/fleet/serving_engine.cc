// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/serving_engine.h"

#include <fmt/format.h>
#include <gossamer/sparse_serving.pb.h>

#include <span>
#include <utility>
#include <variant>

#include "base/aligned_array.h"
#include "base/check.h"
#include "engines/sparse/fleet/fleet_queries.h"
#include "engines/sparse/fleet/label_lists.h"
#include "engines/sparse/fleet/query_rows.h"

namespace gossamer::engine {
namespace {

constexpr std::uint64_t kBulkBytes = 1ULL << 20;

std::size_t width_of(const host::Range& range) { return range.end - range.begin; }

Error wrong_question(std::string_view what) {
  return {.kind = ErrorKind::kBadData,
          .where = "serving",
          .what = "the lead asked what cannot be answered",
          .got = std::string(what),
          .expected = "a question about the network that this node was told of",
          .fix = "look whether all nodes run the same version"};
}

}  // namespace

struct ServingEngine::Question {
  Epoch epoch;
  sparse_serving::Question asked;
  Slices payload;
};

// What the work uses. The loop thread looks at it between two pieces of work alone.
struct ServingEngine::Bench {
  Result<std::shared_ptr<const ServingJob>> job = std::shared_ptr<const ServingJob>();
  std::optional<sparse::Network> network;
  std::unique_ptr<PartScorer> scorer;  // of it
  Result<void> done;
  net::Message answer;

  void load(const ServingJob& its_job, const sparse::NetworkPart& part) {
    scorer.reset();
    network.reset();
    auto loaded = its_job.load(part);
    done = loaded.ok() ? Result<void>() : loaded.error();
    if (!loaded.ok()) return;
    network = *std::move(loaded);
    scorer = std::make_unique<PartScorer>(*network, its_job.activation, its_job.kernels, its_job.compute);
  }
  [[nodiscard]] Result<std::vector<std::byte>> answer_to(const ServingJob& its_job, const Question& question);
  [[nodiscard]] std::vector<std::byte> columns(const FleetShape& shape, const sparse_serving::Question& asked,
                                               const AlignedArray<float>& out) const;
  [[nodiscard]] std::vector<std::byte> lists(const FleetShape& shape, const sparse_serving::Question& asked,
                                             const AlignedArray<float>& in);
};

std::vector<std::byte> ServingEngine::Bench::columns(const FleetShape& shape,
                                                     const sparse_serving::Question& asked,
                                                     const AlignedArray<float>& out) const {
  const host::Range own = columns_of(network->part, asked.layer());
  const std::size_t stride = hidden_stride(shape, asked.layer());
  std::vector<std::byte> bytes;
  bytes.reserve(asked.queries() * width_of(own) * sizeof(float));
  for (std::size_t q = 0; q < asked.queries(); ++q) {
    const auto row = std::as_bytes(out.span().subspan(q * stride + own.begin, width_of(own)));
    bytes.insert(bytes.end(), row.begin(), row.end());
  }
  return bytes;
}

std::vector<std::byte> ServingEngine::Bench::lists(const FleetShape& shape,
                                                   const sparse_serving::Question& asked,
                                                   const AlignedArray<float>& in) {
  const std::size_t k = list_limit(network->part.rows, asked.labels());
  std::vector<std::byte> bytes;
  if (k == 0) return bytes;
  scorer->search({in.data(), hidden_stride(shape, shape.layers() - 1), asked.queries()}, k);
  bytes.reserve(list_bytes(asked.queries(), k));
  std::vector<Scored> list;
  for (std::size_t q = 0; q < asked.queries(); ++q) {
    list.clear();
    scorer->found(q, list);
    append_list(list, k, bytes);
  }
  return bytes;
}

Result<std::vector<std::byte>> ServingEngine::Bench::answer_to(const ServingJob& its_job,
                                                               const Question& question) {
  const sparse_serving::Question& asked = question.asked;
  const FleetShape& shape = its_job.shape;
  const std::size_t layer = asked.layer();
  const std::size_t queries = asked.queries();
  if (queries < 1 || queries > kQueryBlock || layer > shape.layers())
    return wrong_question(fmt::format("layer {} for {} queries", layer, queries));
  if (layer == shape.layers() && (asked.labels() < 1 || asked.labels() > shape.network.labels))
    return wrong_question(fmt::format("{} labels", asked.labels()));
  AlignedArray<float> out(layer < shape.layers() ? queries * hidden_stride(shape, layer) : 0);
  if (layer == 0) {
    const auto given = read_query_rows(question.payload, queries, shape.network.features);
    if (!given) return wrong_question("queries that do not fit");
    scorer->embed(given->view(), {out.data(), hidden_stride(shape, 0)});
    return columns(shape, asked, out);
  }
  const std::size_t stride = hidden_stride(shape, layer - 1);
  AlignedArray<float> in(queries * stride);
  if (total_bytes(question.payload) != in.span().size_bytes())
    return wrong_question("a hidden layer of another size");
  copy_front(question.payload, std::as_writable_bytes(in.span()));
  if (layer == shape.layers()) return lists(shape, asked, in);
  scorer->deepen(layer, queries, {in.data(), stride}, {out.data(), hidden_stride(shape, layer)});
  return columns(shape, asked, out);
}

ServingEngine::ServingEngine(cluster::MemberProcess& process, MakeJob make_job)
    : process_(process), make_job_(std::move(make_job)), bench_(std::make_shared<Bench>()) {}

ServingEngine::~ServingEngine() = default;

// In the batch of a life's end, events that came before it are told when there is no member any more.
void ServingEngine::on(const cluster::ProcessEvent& event, Instant now) {
  const bool alive = process_.member() != nullptr && !failure_;
  if (alive || std::holds_alternative<cluster::LifeEnded>(event) ||
      std::holds_alternative<cluster::LifeBegun>(event))
    std::visit([&](const auto& one) { on_one(one, now); }, event);
}

void ServingEngine::on_one(const cluster::LifeBegun& event, Instant now) {
  alive_ = false;
  if (process_.member() == nullptr) return;
  if (failure_) return process_.member()->leave(failure_->message(), now);
  if (leaving_) return process_.member()->leave(*leaving_, now);
  alive_ = true;
  installed_ = told_ = Epoch();
  part_.reset();
  question_.reset();
  configuration_ = event.configuration;
  if (job_ != nullptr) return process_.member()->ready(now);
  next(now);
}

void ServingEngine::on_one(const cluster::MemberEvent& event, Instant now) {
  if (const auto* const stop = std::get_if<cluster::StopRequested>(&event))
    return process_.member()->leave(stop->reason, now);
  if (!alive_) return;
  const auto* const view = std::get_if<cluster::ViewChanged>(&event);
  if (view != nullptr && view->freeze) return rest(now);
  if (std::holds_alternative<cluster::ViewInstalled>(event) && job_ != nullptr) go_on(now);
}

void ServingEngine::on_one(const net::Arrived& event, Instant now) {
  process_.links()->consumed(event.receipt, now);
  if (!alive_ || event.message.channel != kQueryChannel || event.from != process_.member()->coordinator())
    return;
  sparse_serving::Body body;
  if (!body.ParseFromString(event.message.body) || !body.has_question()) return;
  question_ = std::make_unique<Question>(Question{.epoch = Epoch(body.question().epoch()),
                                                  .asked = std::move(*body.mutable_question()),
                                                  .payload = event.message.payload});
  next(now);
}

void ServingEngine::drain(const std::string& reason, Instant now) {
  leaving_ = reason;
  if (process_.member() != nullptr) process_.member()->drain(reason, now);
}

// What it was given it need not have read yet: there is nothing that only it has.
void ServingEngine::rest(Instant now) {
  sparse_fleet::Report report;
  if (part_) write_part(*part_, *report.mutable_part());
  process_.member()->frozen(report.SerializeAsString(), {}, now);
}

void ServingEngine::go_on(Instant now) {
  cluster::Member& member = *process_.member();
  if (Epoch(member.installed().epoch()) <= installed_) return;
  const auto layout = read_layout(member.installed().decision(), job_->shape);
  if (!layout.ok()) return fail(layout.error(), now);
  const auto rank = layout->rank_of(member.self().node);
  if (!rank) return;
  installed_ = Epoch(member.installed().epoch());
  part_ = layout->members[*rank].after;
  if (leaving_ && holds_nothing(*part_)) return member.leave(*leaving_, now);
  next(now);
}

// What is to be done next, if there is anything and nothing is under way.
void ServingEngine::next(Instant now) {
  if (doing_ != Doing::kNothing || failure_ || !alive_) return;
  if (job_ == nullptr) {
    doing_ = Doing::kPreparing;
    wanted_ = [bench = bench_, make = make_job_, configuration = configuration_] {
      bench->job = make(configuration);
    };
    return;
  }
  if (!part_) return;
  if (held_ != pieces_of(job_->shape, *part_)) return load();
  if (told_ < installed_) tell_ready(now);
  if (question_ != nullptr && question_->epoch < installed_) question_.reset();
  if (question_ != nullptr && question_->epoch == installed_) answer();
}

void ServingEngine::load() {
  doing_ = Doing::kLoading;
  held_.reset();
  wanted_ = [bench = bench_, job = job_, part = *part_] { bench->load(*job, part); };
}

void ServingEngine::answer() {
  doing_ = Doing::kAnswering;
  ++counters_.rounds;
  counters_.queries += question_->asked.queries();
  wanted_ = [bench = bench_, job = job_, question = std::shared_ptr<Question>(std::move(question_))] {
    auto answered = bench->answer_to(*job, *question);
    bench->done = answered.ok() ? Result<void>() : answered.error();
    if (!answered.ok()) return;
    sparse_serving::Body body;
    body.mutable_answer()->set_number(question->asked.number());
    bench->answer = {.channel = kQueryChannel,
                     .body = body.SerializeAsString(),
                     .payload = {Slice::of(*std::move(answered))}};
  };
}

cluster::Engine::Work ServingEngine::take_work() { return std::exchange(wanted_, {}); }

void ServingEngine::worked(Instant now) {
  const Doing done = std::exchange(doing_, Doing::kNothing);
  if (failure_) return;
  if (done == Doing::kPreparing) {
    if (!bench_->job.ok()) return fail(bench_->job.error(), now);
    job_ = *bench_->job;
    if (alive_ && process_.member() != nullptr) process_.member()->ready(now);
    return;
  }
  if (!bench_->done.ok()) return fail(bench_->done.error(), now);
  if (done == Doing::kLoading) {
    ++counters_.parts_loaded;
    held_ = pieces_of(job_->shape, bench_->network->part);
  }
  if (!alive_ || process_.member() == nullptr) return;
  if (done == Doing::kAnswering) send(std::move(bench_->answer), now);
  next(now);
}

void ServingEngine::tell_ready(Instant now) {
  told_ = installed_;
  sparse_serving::Body body;
  body.mutable_ready()->set_epoch(installed_.value);
  write_part(*part_, *body.mutable_ready()->mutable_part());
  send({.channel = kQueryChannel, .body = body.SerializeAsString(), .payload = {}}, now);
}

// To the lead. What a link that is gone does not take, nobody waits for.
void ServingEngine::send(net::Message message, Instant now) {
  if (process_.links() == nullptr) return;
  const host::Lane lane = net::counted_bytes(message) > kBulkBytes ? host::Lane::kBulk : host::Lane::kControl;
  static_cast<void>(process_.links()->send(process_.member()->coordinator(), lane, std::move(message), now));
}

void ServingEngine::fail(Error error, Instant now) {
  failure_ = std::move(error);
  if (process_.member() != nullptr) process_.member()->leave(failure_->message(), now);
}

}  // namespace gossamer::engine
