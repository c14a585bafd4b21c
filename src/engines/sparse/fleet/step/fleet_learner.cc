// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/step/fleet_learner.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "engines/sparse/fleet/step/found_records.h"
#include "engines/sparse/fleet/step/output_records.h"
#include "engines/sparse/fleet/step/value_bounds.h"

namespace gossamer::sparse_engine {

using sparse::Company;
using sparse::LayerState;
using sparse::NetworkPart;
using sparse::PartitionShare;
using Kind = FleetRound::Kind;

namespace {

bool gathers_outputs(const FleetJob& job) { return job.exchange == ExchangeKind::kDslide; }

// Bytes behind a matrix: the number of scores that will follow, or a wish. A member without columns would
// else need nothing of the others in the last exchange. It could be steps ahead of them.
std::size_t mark_bytes(const FleetJob& job, FleetRound round) {
  const bool last = round.layer + 1 == job.shape.layers();
  if (round.kind == Kind::kHidden) return last && gathers_outputs(job) ? sizeof(std::uint64_t) : 0;
  const bool wished = round.layer == 0 && job.guarded(FleetDefect::kNoBarrier);
  return wished ? 1 : 0;
}

// Bytes of the matrix alone.
std::uint64_t matrix_bytes(const FleetJob& job, std::size_t layer, const NetworkPart& part) {
  const host::Range& columns = columns_of(part, layer);
  return net::encoded_bytes(job.codec,
                            {.rows = job.learner.batch_max, .columns = columns.end - columns.begin});
}

// Bytes in which a member tells its loss shares, or its scores, of which it has `scores` at most.
std::uint64_t share_bytes(const FleetJob& job, std::uint64_t scores) {
  return gathers_outputs(job) ? output_bytes(job, scores) : job.learner.batch_max * sizeof(PartitionShare);
}

std::optional<StepWish> read_wish(const Slices& mark) {
  std::uint8_t wish = 0;
  copy_front(mark, std::as_writable_bytes(std::span(&wish, 1)));
  if (wish > static_cast<std::uint8_t>(StepWish::kHalt)) return std::nullopt;
  return static_cast<StepWish>(wish);
}

Error no_wish() {
  return {.kind = ErrorKind::kBadData,
          .where = "a step",
          .what = "a member asks for what does not exist",
          .expected = "nothing, a checkpoint, or the end",
          .fix = "look whether all nodes run the same version"};
}

Result<void> add_shares(const Slices& told, std::span<PartitionShare> sums) {
  std::vector<PartitionShare> shares(sums.size());
  copy_front(told, std::as_writable_bytes(std::span(shares)));
  if (!within(shares, taken(kMostScore))) return beyond_bounds("a loss share", taken(kMostScore));
  for (std::size_t sample = 0; sample < sums.size(); ++sample)
    sparse::add_share(sums[sample], shares[sample]);
  return {};
}

}  // namespace

std::vector<FleetRound> step_rounds(std::size_t layers) {
  std::vector<FleetRound> rounds;
  for (std::size_t layer = 0; layer < layers; ++layer) rounds.push_back({Kind::kHidden, layer});
  rounds.push_back({Kind::kShares});
  for (std::size_t layer = layers; layer-- > 0;) rounds.push_back({Kind::kGradient, layer});
  rounds.push_back({Kind::kFinish});
  return rounds;
}

std::unique_ptr<sparse::Network> empty_network(const FleetJob& job, NetworkPart part) {
  auto network = std::make_unique<sparse::Network>(job.shape.network, std::move(part), job.moments);
  network->order = job.order;
  return network;
}

Result<std::unique_ptr<sparse::Network>> starting_network(const FleetJob& job, NetworkPart part) {
  if (!job.restore) return initial_network(job, std::move(part));
  auto network = empty_network(job, std::move(part));
  if (auto restored = job.restore(*network); !restored.ok()) return restored.error();
  return network;
}

std::unique_ptr<sparse::Network> initial_network(const FleetJob& job, NetworkPart part) {
  auto network = empty_network(job, std::move(part));
  sparse::initialize(*network, job.init, job.labels.count, job.compute);
  return network;
}

void fill_hidden(const LoggedStep& logged, const PieceCodec& codec, const sparse::NetworkPiece& wanted,
                 sparse::BatchState& state) {
  LayerState& to = state.layers[wanted.layer];
  for (const ColumnPiece& piece : logged.hidden[wanted.layer]) {
    if (piece.columns.begin < wanted.range.end && wanted.range.begin < piece.columns.end)
      codec.copy(piece, to.stride, to.h.span());
  }
}

void set_columns(std::span<const float> sum, std::size_t rows, LayerState& layer) {
  const std::size_t width = layer.own.end - layer.own.begin;
  CHECK(sum.size() == rows * width, sum.size(), rows, width);
  for (std::size_t row = 0; row < rows; ++row)
    std::copy_n(sum.data() + row * width, width, layer.dh.data() + row * layer.stride + layer.own.begin);
}

FleetLearner::FleetLearner(const FleetJob& job, const host::Clock* clock)
    : job_(job), clock_(clock), codec_(job.kernels, job.learner.batch_max) {}

ComputeTime FleetLearner::time_now() const {
  if (clock_ == nullptr) return {};
  return {.took = clock_->now() - Instant{}, .cpu = job_.compute.cpu(), .process_cpu = clock_->process_cpu()};
}

void FleetLearner::timed(FunctionRef<void()> compute) {
  const ComputeTime before = time_now();
  compute();
  const ComputeTime after = time_now();
  part_time_.took = part_time_.took + (after.took - before.took);
  part_time_.cpu = part_time_.cpu + (after.cpu - before.cpu);
  part_time_.process_cpu = part_time_.process_cpu + (after.process_cpu - before.process_cpu);
}

std::uint64_t FleetLearner::most_round_bytes(const FleetJob& job, FleetRound round, const NetworkPart& part) {
  if (round.kind == Kind::kShares)
    return share_bytes(job, most_scores(job, part)) + found_bytes(job, found_limit(job, part));
  if (round.kind == Kind::kFinish) return 0;
  return matrix_bytes(job, round.layer, part) + mark_bytes(job, round);
}

std::vector<std::uint64_t> FleetLearner::round_bytes(StepNumber step, FleetRound round) const {
  std::vector<std::uint64_t> bytes;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    const bool shares = round.kind == Kind::kShares;
    bytes.push_back(shares ? share_bytes(job_, scores(step, rank)) +
                                 found_bytes(job_, found_limit(job_, parts_[rank]))
                           : most_round_bytes(job_, round, parts_[rank]));
  }
  return bytes;
}

void FleetLearner::hold(std::unique_ptr<sparse::Network> network) {
  rows_left_.reset();
  opens_.reset();
  stepping_.clear();
  hashed_.reset();
  network_ = std::move(network);
  if (found_limit(job_, network_->part) > 0) {
    hashed_ = std::make_unique<sparse::HashNegatives>(
        sparse::HashNegatives::Parts{.network = *network_, .kernels = job_.kernels, .compute = job_.compute},
        hash_options(job_, network_->part));
  }
  sparse::LearnerOptions options = job_.learner;
  options.keep_scores = gathers_outputs(job_);
  for (std::size_t i = 0; i <= job_.staleness; ++i) {
    stepping_.push_back(
        {.learner = std::make_unique<sparse::Learner>(sparse::Learner::Parts{.network = *network_,
                                                                             .labels = job_.labels,
                                                                             .kernels = job_.kernels,
                                                                             .compute = job_.compute,
                                                                             .hashed = hashed_.get()},
                                                      options),
         .batch = {}});
  }
}

void FleetLearner::join(std::vector<NetworkPart> parts, std::size_t rank) {
  CHECK(rank < parts.size(), rank, parts.size());
  parts_ = std::move(parts);
  me_ = rank;
}

Result<void> FleetLearner::given_by(std::size_t rank, Result<void> taken) {
  if (!taken.ok()) giver_ = rank;
  return taken;
}

Result<Slices> FleetLearner::round(StepNumber step, FleetRound round, std::span<const Slices> got) {
  giver_.reset();
  const std::size_t layers = job_.shape.layers();
  const bool begins = round.kind == Kind::kHidden && round.layer == 0;
  if (begins)
    begin_step(step);
  else
    open(step);
  switch (round.kind) {
    case Kind::kHidden:
      if (begins) {
        timed([&] { learner(step).embed_ahead(samples_ahead_.view(), step); });
      } else {
        if (auto taken = take_hidden(step, round.layer - 1, got); !taken.ok()) return taken.error();
        timed([&] { learner(step).deepen(round.layer - 1); });
      }
      return give_hidden(step, round);
    case Kind::kShares:
      if (auto taken = take_hidden(step, layers - 1, got); !taken.ok()) return taken.error();
      finish_rows();
      timed([&] { learner(step).score(); });
      return give_shares(step);
    case Kind::kGradient:
      if (round.layer + 1 == layers) {
        if (auto taken = take_shares(step, got); !taken.ok()) return taken.error();
      } else {
        if (auto taken = take_gradient(step, round.layer + 1, got); !taken.ok()) return taken.error();
        timed([&] { learner(step).descend(round.layer); });
      }
      return give_gradient(step, round);
    case Kind::kFinish:
      if (auto taken = take_gradient(step, 0, got); !taken.ok()) return taken.error();
      finish(step);
      return Slices();
  }
  CHECK(false, static_cast<int>(round.kind));
  return Slices();
}

// The learner may still have data that rows of the step before need. open() gives it this step.
void FleetLearner::begin_step(StepNumber step) {
  LoggedStep& logged = log_[step] = {};
  logged.fresh = step == applied_;
  logged.hidden.resize(job_.shape.layers());
  logged.gradients.resize(job_.shape.layers());
  opens_.reset();
  if (!has_read(step)) read(step);
  opens_ = step;
}

void FleetLearner::open(StepNumber step) {
  if (opens_ != step) return;
  finish_rows();
  opens_.reset();
  data::BatchCopy& batch = stepping(step).batch;
  std::swap(batch, samples_ahead_);
  ahead_.reset();
  if (job_.staleness > 0) learner(step).others_changed();
  // kOthers also where no other member is left: the logged dh must not have gone through the activation.
  learner(step).begin(batch.view(), step, {.learning_rate = job_.schedule.learning_rate(step)},
                      Company::kOthers);
  timed([&] { learner(step).embed(); });
}

void FleetLearner::read(StepNumber step) {
  if (opens_) open(*opens_);
  samples_ahead_.take(job_.steps.read(step));
  ahead_ = step;
}

void FleetLearner::list(StepNumber step) {
  open(step);
  timed([&] { learner(step).list(); });
}

void FleetLearner::finish_rows() {
  if (!rows_left_) return;
  timed([&] { learner(*rows_left_).finish_rows(); });
  rows_left_.reset();
}

sparse::Network& FleetLearner::network() {
  finish_rows();
  return *network_;
}

Result<Slices> FleetLearner::give_hidden(StepNumber step, FleetRound round) {
  LayerState& state = round.layer == 0 ? learner(step).ahead() : learner(step).state().layers[round.layer];
  const std::span<float> h = state.h.span();
  const host::Range columns = columns_of(parts_[me_], round.layer);
  const float bound = most_hidden(round.layer);
  if (!within(h.first(rows() * state.stride), state.stride, columns, bound))
    return diverged("a hidden unit", bound);
  const ColumnPiece piece = codec_.encode(job_.codec, h, state.stride, columns);
  // This member goes on with the rounded values, which are what the others see.
  if (job_.codec != net::Codec::kF32) codec_.copy(piece, state.stride, h);
  Slices all = piece.bytes;
  if (mark_bytes(job_, round) > 0) {
    list(step);
    const std::uint64_t most = learner(step).most_scores();
    all.push_back(Slice::copy_of(std::as_bytes(std::span(&most, 1))));
  }
  return all;
}

Result<void> FleetLearner::take_hidden(StepNumber step, std::size_t layer, std::span<const Slices> got) {
  LayerState& state = learner(step).state().layers[layer];
  stepping(step).scores.assign(parts_.size(), 0);
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    SliceReader reader(got[rank]);
    // The log keeps the piece for long. It gets memory of its own, so that the buffer in which it came can be
    // used again.
    const ColumnPiece piece{columns_of(parts_[rank], layer), job_.codec,
                            codec_.contiguous(reader.take(matrix_bytes(job_, layer, parts_[rank])))};
    if (rank != me_) {
      codec_.copy(piece, state.stride, state.h.span());
      const float most = taken(most_hidden(layer));
      if (!within(state.h.span().first(rows() * state.stride), state.stride, piece.columns, most))
        return given_by(rank, beyond_bounds("a hidden unit", most));
    }
    log_[step].hidden[layer].push_back(piece);
    if (reader.left() == 0) continue;
    auto counted = read_score_count(job_, reader.take(reader.left()), parts_[rank]);
    if (!counted.ok()) return given_by(rank, counted.error());
    stepping(step).scores[rank] = *counted;
  }
  return {};
}

Result<Slices> FleetLearner::own_shares(StepNumber step) {
  sparse::Learner& own = learner(step);
  const auto shares = own.state().shares.span().first(rows());
  if (!within(shares, kMostScore)) return diverged("a loss share", kMostScore);
  if (!gathers_outputs(job_)) return Slices{Slice::copy_of(std::as_bytes(shares))};
  for (const sparse::RowScores& one : own.scores()) {
    const auto beyond = [](float score) {
      return sparse::RowScores::scored(score) && !within({&score, 1}, kMostScore);
    };
    if (std::ranges::any_of(one.scores, beyond)) return diverged("a score", kMostScore);
  }
  return write_outputs(job_, own.scores(), own.state().samples, scores(step, me_));
}

Result<Slices> FleetLearner::give_shares(StepNumber step) {
  Result<Slices> own = own_shares(step);
  if (!own.ok()) return own;
  Slices all = *std::move(own);
  if (!hashed_) return all;
  const bool asked = hashed_->begun(step);
  const Slices found =
      write_found(asked ? hashed_->found() : nothing_found(job_), found_limit(job_, parts_[me_]));
  all.insert(all.end(), found.begin(), found.end());
  return all;
}

Result<void> FleetLearner::take_shares(StepNumber step, std::span<const Slices> got) {
  LoggedStep& logged = log_[step];
  logged.sums.resize(rows());
  if (job_.hashed && step.value >= job_.hashed->first_step) logged.found = nothing_found(job_);
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    SliceReader reader(got[rank]);
    const Slices told = reader.take(share_bytes(job_, scores(step, rank)));
    if (gathers_outputs(job_)) {
      if (auto added = given_by(rank, add_outputs(job_, told, parts_[rank], logged.sums)); !added.ok())
        return added;
    } else {
      if (auto added = given_by(rank, add_shares(told, logged.sums)); !added.ok()) return added;
    }
    if (logged.found) {
      const Slices rest = reader.take(reader.left());
      auto added = given_by(
          rank, add_found(job_, rest, {.limit = found_limit(job_, parts_[rank]), .held = parts_[rank].rows},
                          *logged.found));
      if (!added.ok()) return added;
    }
  }
  timed([&] { learner(step).normalise(logged.sums); });
  return {};
}

Result<Slices> FleetLearner::give_gradient(StepNumber step, FleetRound round) {
  const LayerState& state = learner(step).state().layers[round.layer];
  const float most = most_gradient(round.layer, job_.shape.layers());
  if (!within(state.dh.span().first(rows() * state.stride), most)) return diverged("a gradient", most);
  Slices all;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    const ColumnPiece piece =
        codec_.encode(job_.codec, state.dh.span(), state.stride, columns_of(parts_[rank], round.layer));
    for (const Slice& slice : piece.bytes) all.push_back(slice);
    all.push_back(Slice::of(std::string(mark_bytes(job_, round), static_cast<char>(wish_))));
    if (job_.guarded(FleetDefect::kLostLog)) log_[step].gradients[round.layer].push_back(piece);
  }
  return all;
}

// Adds up in the order of ranks, so that the sum is the same each time. A sum that leaves its bound with what
// one member gave is that member's fault.
Result<void> FleetLearner::take_gradient(StepNumber step, std::size_t layer, std::span<const Slices> got) {
  const host::Range columns = columns_of(parts_[me_], layer);
  gradient_.assign(rows() * (columns.end - columns.begin), 0);
  const std::uint64_t bytes = matrix_bytes(job_, layer, parts_[me_]);
  wishes_.assign(got.size(), StepWish::kNothing);
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    SliceReader reader(got[rank]);
    codec_.add({columns, job_.codec, reader.take(bytes)}, columns, gradient_);
    const float most = taken(most_gradient(layer, job_.shape.layers())) * static_cast<float>(rank + 1);
    if (!within(gradient_, most)) return given_by(rank, beyond_bounds("a gradient", most));
    if (reader.left() == 0) continue;
    const auto wish = read_wish(reader.take(1));
    if (!wish) return given_by(rank, no_wish());
    wishes_[rank] = *wish;
  }
  set_columns(gradient_, rows(), learner(step).state().layers[layer]);
  return {};
}

void FleetLearner::finish(StepNumber step) {
  CHECK(step == applied_, step.value, applied_.value);
  finish_rows();
  timed([&] { learner(step).finish_columns(); });
  loss_ = learner(step).loss();
  rows_left_ = step;
  ++applied_;
}

void FleetLearner::tell(Epoch epoch, const engine::SentBytes& sent) const {
  if (!job_.stepped) return;
  const LoggedStep& logged = log_.at(StepNumber(applied_.value - 1));
  job_.stepped({.epoch = epoch,
                .step = StepNumber(applied_.value - 1),
                .rank = me_,
                .members = parts_.size(),
                .loss = loss_,
                .fresh = logged.fresh,
                .sent = sent,
                .found = logged.found ? &*logged.found : nullptr});
}

void FleetLearner::catch_up(std::span<const float> gradient) {
  set_columns(gradient, rows(), learner(applied_).state().first());
  finish(applied_);
  finish_rows();
  wishes_.clear();
}

}  // namespace gossamer::sparse_engine
