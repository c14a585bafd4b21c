// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/fleet_learner.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"

namespace gossamer::engine {

using sparse::Company;
using sparse::LayerState;
using sparse::NetworkPart;
using sparse::PartitionShare;
using Kind = FleetRound::Kind;

namespace {

// Who has no columns would need nothing of the others in the last exchange, and be steps ahead of them.
std::size_t mark_bytes(const FleetJob& job, FleetRound round) {
  const bool marked = round.kind == Kind::kGradient && round.layer == 0;
  return marked && job.defect != FleetDefect::kNoBarrier ? 1 : 0;
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

std::unique_ptr<sparse::Network> initial_network(const FleetJob& job, NetworkPart part) {
  auto network = empty_network(job, std::move(part));
  sparse::initialize(*network, job.init, job.labels.count, job.compute);
  return network;
}

void fill_hidden(const LoggedStep& logged, const PieceCodec& codec, sparse::BatchState& state) {
  for (std::size_t layer = 0; layer < state.layers.size(); ++layer) {
    LayerState& to = state.layers[layer];
    for (const ColumnPiece& piece : logged.hidden[layer]) codec.copy(piece, to.stride, to.h.span());
  }
}

void set_columns(std::span<const float> sum, std::size_t rows, LayerState& layer) {
  const std::size_t width = layer.own.end - layer.own.begin;
  CHECK(sum.size() == rows * width, sum.size(), rows, width);
  for (std::size_t row = 0; row < rows; ++row) {
    std::copy_n(sum.data() + row * width, width, layer.dh.data() + row * layer.stride + layer.own.begin);
  }
}

FleetLearner::FleetLearner(const FleetJob& job) : job_(job), codec_(job.kernels, job.learner.batch_max) {}

std::uint64_t FleetLearner::round_bytes(const FleetJob& job, FleetRound round, const NetworkPart& part) {
  const std::uint64_t rows = job.learner.batch_max;
  if (round.kind == Kind::kShares) return rows * sizeof(PartitionShare);
  if (round.kind == Kind::kFinish) return 0;
  const host::Range& columns = columns_of(part, round.layer);
  return net::encoded_bytes(job.codec, {.rows = rows, .columns = columns.end - columns.begin}) +
         mark_bytes(job, round);
}

void FleetLearner::hold(std::unique_ptr<sparse::Network> network) {
  learner_.reset();
  network_ = std::move(network);
  learner_ = std::make_unique<sparse::Learner>(
      sparse::Learner::Parts{
          .network = *network_, .labels = job_.labels, .kernels = job_.kernels, .compute = job_.compute},
      job_.learner);
}

void FleetLearner::join(std::vector<NetworkPart> parts, std::size_t rank) {
  CHECK(rank < parts.size(), rank, parts.size());
  parts_ = std::move(parts);
  me_ = rank;
}

Slices FleetLearner::round(FleetRound round, std::span<const Slices> got) {
  const std::size_t layers = job_.shape.layers();
  switch (round.kind) {
    case Kind::kHidden:
      if (round.layer == 0) {
        begin_step();
      } else {
        take_hidden(round.layer - 1, got);
        learner_->deepen(round.layer - 1);
      }
      return give_hidden(round.layer);
    case Kind::kShares:
      take_hidden(layers - 1, got);
      learner_->score();
      return give_shares();
    case Kind::kGradient:
      if (round.layer + 1 == layers) {
        take_shares(got);
      } else {
        take_gradient(round.layer + 1, got);
        learner_->descend(round.layer);
      }
      return give_gradient(round.layer);
    case Kind::kFinish:
      take_gradient(0, got);
      finish();
      return {};
  }
  CHECK(false, static_cast<int>(round.kind));
  return {};
}

void FleetLearner::begin_step() {
  LoggedStep& logged = log_[applied_] = {};
  logged.hidden.resize(job_.shape.layers());
  logged.gradients.resize(job_.shape.layers());
  const data::Batch batch = job_.steps.read(applied_);
  learner_->begin(batch, applied_, {.learning_rate = job_.schedule.learning_rate(applied_)});
  learner_->embed();
}

Slices FleetLearner::give_hidden(std::size_t layer) {
  LayerState& state = learner_->state().layers[layer];
  const ColumnPiece piece =
      codec_.encode(job_.codec, state.h.span(), state.stride, columns_of(parts_[me_], layer));
  // This member goes on with what the others see.
  if (job_.codec != net::Codec::kF32) codec_.copy(piece, state.stride, state.h.span());
  return piece.bytes;
}

void FleetLearner::take_hidden(std::size_t layer, std::span<const Slices> got) {
  LayerState& state = learner_->state().layers[layer];
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    const ColumnPiece piece{columns_of(parts_[rank], layer), job_.codec, got[rank]};
    if (rank != me_) codec_.copy(piece, state.stride, state.h.span());
    log_[applied_].hidden[layer].push_back(piece);
  }
}

Slices FleetLearner::give_shares() {
  const auto bytes = std::as_bytes(std::span(learner_->state().shares.data(), rows()));
  return {Slice::copy_of(bytes)};
}

void FleetLearner::take_shares(std::span<const Slices> got) {
  std::vector<PartitionShare>& sums = log_[applied_].sums;
  sums.assign(rows(), {});
  std::vector<PartitionShare> shares(rows());
  for (const Slices& one : got) {
    copy_front(one, std::as_writable_bytes(std::span(shares)));
    for (std::size_t sample = 0; sample < rows(); ++sample) sparse::add_share(sums[sample], shares[sample]);
  }
  // Also where nobody else is left: what is logged of dh must not have gone through the activation.
  learner_->normalise(sums, Company::kOthers);
}

Slices FleetLearner::give_gradient(std::size_t layer) {
  const LayerState& state = learner_->state().layers[layer];
  Slices all;
  for (const NetworkPart& part : parts_) {
    ColumnPiece piece = codec_.encode(job_.codec, state.dh.span(), state.stride, columns_of(part, layer));
    for (const Slice& slice : piece.bytes) all.push_back(slice);
    all.push_back(Slice::of(std::string(mark_bytes(job_, {Kind::kGradient, layer}), '\0')));
    if (job_.defect != FleetDefect::kLostLog) log_[applied_].gradients[layer].push_back(std::move(piece));
  }
  return all;
}

// In the order of ranks.
void FleetLearner::take_gradient(std::size_t layer, std::span<const Slices> got) {
  const host::Range columns = columns_of(parts_[me_], layer);
  std::vector<float> sum(rows() * (columns.end - columns.begin));
  const std::size_t bytes =
      net::encoded_bytes(job_.codec, {.rows = rows(), .columns = columns.end - columns.begin});
  for (const Slices& one : got) codec_.add({columns, job_.codec, SliceReader(one).take(bytes)}, columns, sum);
  set_columns(sum, rows(), learner_->state().layers[layer]);
}

void FleetLearner::finish() {
  loss_ = learner_->finish().loss;
  ++applied_;
}

void FleetLearner::tell(Epoch epoch) const {
  if (!job_.stepped) return;
  job_.stepped({.epoch = epoch,
                .step = StepNumber(applied_.value - 1),
                .rank = me_,
                .members = parts_.size(),
                .loss = loss_});
}

void FleetLearner::catch_up(std::span<const std::vector<float>> gradients) {
  const auto logged = log_.find(applied_);
  CHECK(logged != log_.end(), applied_.value);
  const data::Batch batch = job_.steps.read(applied_);
  learner_->begin(batch, applied_, {.learning_rate = job_.schedule.learning_rate(applied_)});
  learner_->embed();
  for (std::size_t layer = 0; layer + 1 < job_.shape.layers(); ++layer) {
    fill_hidden(logged->second, codec_, learner_->state());
    learner_->deepen(layer);
  }
  fill_hidden(logged->second, codec_, learner_->state());
  learner_->score();
  learner_->normalise(logged->second.sums, Company::kOthers);
  for (std::size_t layer = job_.shape.layers(); layer-- > 0;) {
    set_columns(gradients[layer], rows(), learner_->state().layers[layer]);
    if (layer > 0) learner_->descend(layer - 1);
  }
  loss_ = learner_->finish().loss;
  ++applied_;
}

}  // namespace gossamer::engine
