// SPDX-License-Identifier: Apache-2.0
#include "engines/sparse/fleet/recovery/recovery.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "engines/sparse/fleet/step/found_records.h"
#include "engines/sparse/fleet/step/value_bounds.h"

namespace gossamer::sparse_engine {

using host::Range;
using sparse::NetworkPart;
using sparse::NetworkPiece;
using sparse::PartitionShare;
using Kind = RecoveryStage::Kind;

namespace {

std::size_t size_of(const Range& range) { return range.end - range.begin; }

// One byte of a logged step: whether the step began when all before it were applied.
constexpr std::uint64_t kFreshBytes = 1;

// Bytes behind all that a member gives another one. A member that needs nothing would else run through all
// stages, and its gifts would heap up with those that wait for somebody slow. Not each stage has the byte:
// two members that do not reach each other hold up only those that need something of them, until a stage with
// it.
std::uint64_t mark_bytes(RecoveryStage stage) {
  constexpr std::size_t kEvery = 4;
  const bool apart = stage.kind == Kind::kGradients && stage.layer % kEvery == kEvery - 1;
  return stage.kind == Kind::kDone || apart ? 1 : 0;
}

std::uint64_t logged_bytes(const FleetJob& job) {
  std::uint64_t bytes = sizeof(PartitionShare);
  for (std::size_t layer = 0; layer < job.shape.layers(); ++layer)
    bytes += job.shape.width(layer) * sizeof(float);
  return bytes * job.learner.batch_max + found_bytes(job, most_found(job)) + kFreshBytes;
}

Slice slice_of(std::vector<float> values) {
  auto owner = std::make_shared<std::vector<float>>(std::move(values));
  const auto bytes = std::as_bytes(std::span(*owner));
  return {std::move(owner), bytes};
}

Range common(const Range& a, const Range& b) {
  const Range both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.begin < both.end ? both : Range{};
}

// Moves the rows from one network to the other. Both have places for all rows; those of `to` are empty.
void take_rows(sparse::Network& to, sparse::Network& from) {
  to.output = std::move(from.output);
  to.bias = std::move(from.bias);
  to.bias_moment1 = std::move(from.bias_moment1);
  to.bias_moment2 = std::move(from.bias_moment2);
}

}  // namespace

std::vector<RecoveryStage> recovery_stages(const RecoveryPlan& plan, std::size_t layers) {
  std::vector<RecoveryStage> stages;
  if (!plan.without_log.empty()) stages.push_back({Kind::kLogs});
  if (std::ranges::any_of(plan.fetches, [](const auto& one) { return one.from != one.to; }))
    stages.push_back({Kind::kCopies});
  for (std::size_t layer = layers; layer-- > 0;) {
    const auto of_layer = [&](const RecoveryPlan::Want& want) { return want.layer == layer; };
    if (std::ranges::any_of(plan.wants, of_layer)) stages.push_back({Kind::kGradients, layer});
  }
  if (plan.snapshot) stages.push_back({Kind::kSnapshot});
  stages.push_back({Kind::kFinish});
  if (!plan.moves.empty()) stages.push_back({Kind::kDone});
  return stages;
}

std::uint64_t stage_bytes(const FleetJob& job, const RecoveryPlan& plan, RecoveryStage stage,
                          std::size_t from, std::size_t to) {
  std::uint64_t bytes = mark_bytes(stage);
  if (stage.kind == Kind::kLogs && from == plan.log_donor && std::ranges::count(plan.without_log, to) != 0)
    bytes += (plan.resume.value - plan.base.value) * logged_bytes(job);
  if (stage.kind == Kind::kCopies) {
    for (const RecoveryPlan::Fetch& fetch : plan.fetches) {
      if (fetch.from != from || fetch.to != to || from == to) continue;
      bytes += sparse::piece_bytes(job.shape.network, job.moments, piece_of(job.shape, fetch.piece));
    }
  }
  if (stage.kind == Kind::kGradients) {
    for (const RecoveryPlan::Want& want : plan.wants) {
      if (want.rank != to || want.layer != stage.layer) continue;
      bytes += (plan.resume.value - want.begin.value) * job.learner.batch_max * size_of(want.columns) *
               sizeof(float);
    }
  }
  return bytes;
}

Recovery::Recovery(FleetLearner& learner, const Vault& vault, const Layout& layout, std::size_t rank)
    : learner_(learner),
      vault_(vault),
      job_(learner.job()),
      layout_(layout),
      plan_(plan_recovery(layout, learner.job().shape)),
      me_(rank),
      layers_(learner.job().shape.layers()) {
  CHECK(rank < layout_.members.size(), rank, layout_.members.size());
}

Result<Slices> Recovery::stage(RecoveryStage stage, std::span<const Slices> got) {
  if (before_) {
    if (auto taken = take(*before_, got); !taken.ok()) return taken.error();
  }
  before_ = stage;
  switch (stage.kind) {
    case Kind::kLogs: return marked(stage, give_logs());
    case Kind::kCopies: return marked(stage, give_copies());
    case Kind::kGradients: replay_above(stage.layer); return marked(stage, give_gradients(stage.layer));
    case Kind::kSnapshot:
      replay_above(0);
      catch_up();
      return Slices();
    case Kind::kFinish:
      replay_above(0);
      catch_up();
      finish();
      return Slices();
    case Kind::kDone: return marked(stage, {});
  }
  CHECK(false, static_cast<int>(stage.kind));
  return Slices();
}

Slices Recovery::marked(RecoveryStage stage, Slices given) const {
  SliceReader reader(std::move(given));
  Slices all;
  for (std::size_t rank = 0; rank < layout_.members.size(); ++rank) {
    Slices part = reader.take(stage_bytes(job_, plan_, stage, me_, rank) - mark_bytes(stage));
    all.insert(all.end(), part.begin(), part.end());
    if (mark_bytes(stage) > 0) all.push_back(Slice::of(std::string(mark_bytes(stage), '\0')));
  }
  return all;
}

Result<void> Recovery::take(RecoveryStage stage, std::span<const Slices> got) {
  switch (stage.kind) {
    case Kind::kLogs: return take_log(got[plan_.log_donor]);
    case Kind::kCopies: return take_copies(got);
    case Kind::kGradients: return take_gradients(stage.layer, got);
    case Kind::kSnapshot:
    case Kind::kFinish: break;
    case Kind::kDone: CHECK(false, "nothing comes after it");
  }
  return {};
}

Error Recovery::wrong(std::size_t rank, std::string_view what, float most) {
  giver_ = rank;
  return beyond_bounds(what, most);
}

// The log stays as it was unless all of it is good.
Result<void> Recovery::take_log(const Slices& bytes) {
  if (total_bytes(bytes) == 0) return {};
  SliceReader reader(bytes);
  const std::size_t rows = learner_.rows();
  const sparse::HeldRows all(job_.shape.network.labels, job_.shape.shard_shift);
  StepLog log;
  for (StepNumber step = plan_.base; step < plan_.resume; ++step) {
    LoggedStep& logged = log[step];
    logged.gradients.resize(layers_);
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      const std::size_t width = job_.shape.width(layer);
      logged.hidden.push_back({{.columns = {0, width},
                                .codec = net::Codec::kF32,
                                .bytes = reader.take(rows * width * sizeof(float))}});
      std::vector<float> values(rows * width);
      copy_front(logged.hidden.back().front().bytes, std::as_writable_bytes(std::span(values)));
      if (const float most = taken(most_hidden(layer)); !within(values, most))
        return wrong(plan_.log_donor, "a hidden unit", most);
    }
    logged.sums.resize(rows);
    copy_front(reader.take(rows * sizeof(PartitionShare)), std::as_writable_bytes(std::span(logged.sums)));
    if (!are_sums(logged.sums)) return wrong(plan_.log_donor, "a partition sum", taken(kMostScore));
    std::uint8_t fresh = 0;
    copy_front(reader.take(kFreshBytes), std::as_writable_bytes(std::span(&fresh, 1)));
    logged.fresh = fresh != 0;
    if (!job_.hashed) continue;
    const Slices found = reader.take(found_bytes(job_, most_found(job_)));
    if (step.value < job_.hashed->first_step) continue;
    logged.found = nothing_found(job_);
    auto added = add_found(job_, found, {.limit = most_found(job_), .held = all}, *logged.found);
    if (!added.ok()) {
      giver_ = plan_.log_donor;
      return added;
    }
  }
  for (auto& [step, logged] : log) learner_.log()[step] = std::move(logged);
  return {};
}

Slices Recovery::give_logs() const {
  Slices all;
  if (me_ != plan_.log_donor) return all;
  Slices whole;
  const std::size_t rows = learner_.rows();
  for (StepNumber step = plan_.base; step < plan_.resume; ++step) {
    const LoggedStep& logged = learner_.log().at(step);
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      const std::size_t width = job_.shape.width(layer);
      std::vector<float> matrix(rows * width);
      for (const ColumnPiece& piece : logged.hidden[layer]) learner_.codec().copy(piece, width, matrix);
      whole.push_back(slice_of(std::move(matrix)));
    }
    whole.push_back(Slice::copy_of(std::as_bytes(std::span(logged.sums))));
    whole.push_back(Slice::of(std::string(kFreshBytes, logged.fresh ? '\1' : '\0')));
    if (!job_.hashed) continue;
    for (Slice& slice : write_found(logged.found ? *logged.found : nothing_found(job_), most_found(job_)))
      whole.push_back(std::move(slice));
  }
  for (std::size_t i = 0; i < plan_.without_log.size(); ++i) {
    reached(job_.probes, FleetProbe::kLogSent);
    if (job_.hashed) reached(job_.probes, FleetProbe::kFoundSent);
    if (job_.codec != net::Codec::kF32) reached(job_.probes, FleetProbe::kLogRounded);
    all.insert(all.end(), whole.begin(), whole.end());
  }
  return all;
}

Slices Recovery::give_copies() const {
  Slices all;
  for (std::size_t to = 0; to < layout_.members.size(); ++to) {
    for (const RecoveryPlan::Fetch& fetch : plan_.fetches) {
      if (fetch.from == me_ && fetch.to == to && to != me_)
        all.push_back(Slice::copy_of(vault_.bytes(fetch.piece)));
    }
  }
  return all;
}

Result<void> Recovery::take_copies(std::span<const Slices> got) {
  for (std::size_t from = 0; from < got.size(); ++from) {
    SliceReader reader(got[from]);
    for (const RecoveryPlan::Fetch& fetch : plan_.fetches) {
      if (fetch.from != from || fetch.to != me_ || from == me_) continue;
      const sparse::NetworkPiece piece = piece_of(job_.shape, fetch.piece);
      const Slices& copy = copies_[fetch.piece] =
          reader.take(sparse::piece_bytes(job_.shape.network, job_.moments, piece));
      if (const auto fault = fault_of(job_, copy, piece, plan_.base)) {
        giver_ = from;
        return beyond_bounds(*fault);
      }
    }
  }
  return {};
}

// Loads the copies of the last snapshot. They leave out initial values.
void Recovery::load_copies(sparse::Network& network) {
  for (const RecoveryPlan::Fetch& fetch : plan_.fetches) {
    if (fetch.to != me_ || !pieces_of(job_.shape, network.part).contains(fetch.piece)) continue;
    const sparse::NetworkPiece piece = piece_of(job_.shape, fetch.piece);
    reached(job_.probes, fetch.from == me_ ? FleetProbe::kOwnCopy : FleetProbe::kOthersCopy);
    if (fetch.from == me_) {
      sparse::load_updated_rows(network, piece, vault_.bytes(fetch.piece));
      continue;
    }
    std::vector<std::byte> bytes(sparse::piece_bytes(job_.shape.network, job_.moments, piece));
    copy_front(copies_.at(fetch.piece), bytes);
    sparse::load_updated_rows(network, piece, bytes);
  }
}

PieceSources Recovery::sources() const {
  PieceSources sources;
  // A recovery that was cut short may have left a piece with both its giver and its getter. The one of higher
  // rank counts, as in the plan.
  Pieces of_later;
  for (std::size_t rank = me_ + 1; rank < layout_.members.size(); ++rank) {
    if (layout_.members[rank].before) of_later.merge(pieces_of(job_.shape, *layout_.members[rank].before));
  }
  if (learner_.holds()) {
    for (const PieceId& piece : pieces_of(job_.shape, learner_.network().part)) {
      if (!of_later.contains(piece)) sources[piece] = &learner_.network();
    }
  }
  for (const Patch& patch : patches_) {
    for (const PieceId& piece : pieces_of(job_.shape, patch.network->part))
      sources[piece] = patch.network.get();
  }
  return sources;
}

// Computes anew every lost piece above a hidden layer.
void Recovery::replay_above(std::size_t layer) {
  if (patches_.empty()) make_patches();
  const bool finishing = before_->kind != Kind::kGradients;
  for (Patch& patch : patches_) {
    if (!patch.replayed && (finishing || patch.piece.layer > layer)) replay(patch);
  }
}

void Recovery::add_logged(StepNumber step, const RecoveryPlan::Want& want, std::span<float> out) const {
  const auto logged = learner_.log().find(step);
  if (logged != learner_.log().end()) {
    for (const ColumnPiece& piece : logged->second.gradients[want.layer]) {
      if (piece.codec != net::Codec::kF32) reached(job_.probes, FleetProbe::kAddedRounded);
      learner_.codec().add(piece, want.columns, out);
    }
  }
  const auto added = added_.find(step);
  if (added == added_.end()) return;
  for (const ColumnPiece& piece : added->second[want.layer]) learner_.codec().add(piece, want.columns, out);
}

Slices Recovery::give_gradients(std::size_t layer) const {
  Slices all;
  for (std::size_t rank = 0; rank < layout_.members.size(); ++rank) {
    for (const RecoveryPlan::Want& want : plan_.wants) {
      if (want.rank != rank || want.layer != layer) continue;
      for (StepNumber step = want.begin; step < plan_.resume; ++step) {
        std::vector<float> matrix(learner_.rows() * size_of(want.columns));
        add_logged(step, want, matrix);
        all.push_back(slice_of(std::move(matrix)));
      }
    }
  }
  return all;
}

// Adds up in the order of ranks, so that the sum is the same each time.
Result<void> Recovery::take_gradients(std::size_t layer, std::span<const Slices> got) {
  std::vector<SliceReader> readers(got.begin(), got.end());
  for (const RecoveryPlan::Want& want : plan_.wants) {
    if (want.rank != me_ || want.layer != layer) continue;
    Sum& sum = sums_.emplace_back();
    sum.want = want;
    const std::size_t rows = learner_.rows();
    for (StepNumber step = want.begin; step < plan_.resume; ++step) {
      std::vector<float>& matrix = sum.steps.emplace_back(rows * size_of(want.columns));
      for (std::size_t rank = 0; rank < readers.size(); ++rank) {
        const Slices bytes = readers[rank].take(matrix.size() * sizeof(float));
        learner_.codec().add({want.columns, net::Codec::kF32, bytes}, want.columns, matrix);
        const float most = taken(most_gradient(layer, layers_)) * static_cast<float>(rank + 1);
        if (!within(matrix, most)) return wrong(rank, "a gradient", most);
      }
    }
  }
  return {};
}

void Recovery::catch_up() {
  if (!plan_.behind[me_] || learner_.applied() == plan_.resume) return;
  if (!job_.guarded(FleetDefect::kNoCatchUp)) return learner_.set_applied(plan_.resume);
  const Range columns = columns_of(learner_.network().part, 0);
  // The gradient of its own columns. Another want of this member is for lost columns.
  std::vector<float> gradient;
  if (size_of(columns) > 0) gradient = sum_of(0, columns).steps.front();
  reached(job_.probes, FleetProbe::kCaughtUp);
  learner_.catch_up(gradient);
  if (job_.guarded(FleetDefect::kApplyTwice)) return;
  learner_.set_applied(StepNumber(plan_.resume.value - 1));
  learner_.catch_up(gradient);
}

// A network of the vault's copies after a snapshot. Rows that no step has changed are not in the copies.
std::unique_ptr<sparse::Network> Recovery::loaded(NetworkPart part) const {
  auto network = empty_network(job_, std::move(part));
  for (const PieceId& piece : pieces_of(job_.shape, network->part)) {
    if (vault_.has(piece))
      sparse::load_updated_rows(*network, piece_of(job_.shape, piece), vault_.bytes(piece));
  }
  sparse::initialize(*network, job_.init, job_.labels.count, job_.compute);
  return network;
}

// The snapshot before has given each member a copy of the pieces that move to it.
void Recovery::take_moved() {
  NetworkPart rows = no_part(job_.shape);
  bool any = false;
  for (const RecoveryPlan::Move& move : plan_.moves) {
    if (move.to != me_) continue;
    reached(job_.probes, FleetProbe::kMoved);
    if (move.piece.layer == layers_) {
      rows.rows.add(move.piece.range.begin >> job_.shape.shard_shift);
      any = true;
    } else {
      patches_.push_back(
          {.piece = move.piece, .network = loaded(part_of(job_.shape, move.piece)), .replayed = true});
    }
  }
  if (any)
    patches_.push_back(
        {.piece = {.layer = layers_, .range = {}}, .network = loaded(std::move(rows)), .replayed = true});
}

// Takes over the pieces that stay with this member. `before` is worth nothing afterwards.
void Recovery::take_over(sparse::Network& network, sparse::Network& before) const {
  const NetworkPart& after = network.part;
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    const Range stays = common(columns_of(before.part, layer), columns_of(after, layer));
    if (size_of(stays) > 0) sparse::copy_piece(network, before, {.layer = layer, .range = stays});
  }
  const auto had = shards_of(before.part);
  const auto has = shards_of(after);
  // A row has the same place in every part. So if no row is given away, nothing need be copied.
  if (std::ranges::includes(has, had)) {
    reached(job_.probes, FleetProbe::kRowsStay);
    return take_rows(network, before);
  }
  reached(job_.probes, FleetProbe::kRowsGiven);
  for (const std::size_t shard : has) {
    if (had.contains(shard))
      sparse::copy_piece(network, before, {.layer = layers_, .range = after.rows.rows_of(shard)});
  }
}

std::unique_ptr<sparse::Network> Recovery::put_together() {
  const NetworkPart& after = layout_.members[me_].after;
  auto network = empty_network(job_, after);
  if (learner_.holds()) take_over(*network, learner_.network());
  bool has_rows = learner_.holds();
  for (Patch& patch : patches_) {
    if (patch.piece.layer < layers_) {
      sparse::copy_piece(*network, *patch.network, patch.piece);
    } else if (!std::exchange(has_rows, true)) {
      // So a member that begins has its rows once in memory, not twice.
      take_rows(*network, *patch.network);
    } else {
      for (const std::size_t shard : shards_of(patch.network->part))
        sparse::copy_piece(*network, *patch.network, {.layer = layers_, .range = after.rows.rows_of(shard)});
    }
    patch.network.reset();
  }
  patches_.clear();
  return network;
}

void Recovery::finish() {
  for (auto& [step, pieces] : added_) {
    const auto logged = learner_.log().find(step);
    const bool forgotten = logged == learner_.log().end();  // a snapshot has been made since
    reached(job_.probes, forgotten ? FleetProbe::kNotLoggedAnew : FleetProbe::kLoggedAnew);
    if (forgotten || !job_.guarded(FleetDefect::kForgetRecomputed)) continue;
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      for (ColumnPiece& piece : pieces[layer]) logged->second.gradients[layer].push_back(std::move(piece));
    }
  }
  const auto empty = [this](const NetworkPart& part) { return pieces_of(job_.shape, part).empty(); };
  const NetworkPart& after = layout_.members[me_].after;
  if (plan_.behind[me_] && empty(after)) reached(job_.probes, FleetProbe::kBehindForGood);
  if (size_of(columns_of(after, 0)) == 0 && !empty(after)) reached(job_.probes, FleetProbe::kNoColumns);
  take_moved();
  learner_.hold(put_together());
  learner_.set_applied(plan_.resume);
  std::vector<NetworkPart> parts;
  for (const LayoutMember& member : layout_.members) parts.push_back(member.after);
  learner_.join(std::move(parts), me_);
}

}  // namespace gossamer::sparse_engine
