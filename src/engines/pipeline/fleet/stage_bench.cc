// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/fleet/stage_bench.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/aligned_array.h"
#include "base/check.h"
#include "base/digest.h"
#include "engines/pipeline/stage/stage_state.h"
#include "exact/floating_modes.h"
#include "exact/step_factors.h"

namespace gossamer::pipeline {
namespace {

std::span<std::byte> bytes_of(const Numbers& numbers) {
  return std::visit([](auto all) { return std::as_writable_bytes(all); }, numbers);
}

ConstNumbers constant(const Numbers& numbers) {
  return std::visit([]<class T>(std::span<T> all) -> ConstNumbers { return std::span<const T>(all); },
                    numbers);
}

template <class T>
Slice slice_of(std::shared_ptr<AlignedArray<T>> array) {
  const auto bytes = std::as_bytes(std::as_const(*array).span());
  return {std::move(array), bytes};
}

}  // namespace

StageBench::StageBench(const PipelineJob& job, std::unique_ptr<StageBackend> backend)
    : job_(job),
      backend_(std::move(backend)),
      optimizer_(std::make_unique<StageOptimizer>(*backend_, job.adamw)),
      is_f64_(std::holds_alternative<std::span<double>>(backend_->tensors().front().weights)) {}

Result<std::unique_ptr<StageBench>> StageBench::make(const PipelineJob& job, const StageCut& cut) {
  auto backend = job.make_stage(cut);
  if (!backend.ok()) return backend.error();
  return std::unique_ptr<StageBench>(new StageBench(job, std::move(*backend)));
}

void StageBench::begin_attempt(StepNumber step, bool exact) {
  kept_.clear();
  kept_bytes_ = 0;
  optimizer_->clear_gradients();
  step_ = step;
  exact_ = exact;
  loss_ = 0;
  tokens_ = 0;
  sent_zeros_ = false;
}

BoundaryShape StageBench::shape_of(std::uint64_t microbatch) const {
  return {.is_f64 = is_f64_,
          .codec = exact_ ? net::Codec::kF32 : job_.codec,
          .tokens = job_.tokens_of(microbatch),
          .width = backend_->width()};
}

std::uint64_t StageBench::gradient_payload(std::uint64_t microbatch) const {
  return boundary_bytes(shape_of(microbatch));
}

std::uint64_t StageBench::boundary_payload(std::uint64_t microbatch) const {
  return gradient_payload(microbatch) + 2 * sizeof(TokenNumber) * job_.tokens_of(microbatch);
}

Result<std::string_view> StageBench::begin(std::uint64_t microbatch, const Slices& sent) {
  const std::size_t count = job_.tokens_of(microbatch);
  auto words = std::make_shared<AlignedArray<TokenNumber>>(2 * count);
  const std::span<TokenNumber> tokens = words->span().first(count);
  const std::span<TokenNumber> targets = words->span().subspan(count);
  std::optional<ReadBoundary> boundary;
  if (backend_->cut().has_embedding()) {
    const SampleId first(step_.value * job_.batch + microbatch * job_.microbatch);
    if (auto done = job_.read(first, job_.windows_of(microbatch), tokens, targets); !done.ok())
      return done.error();
  } else {
    if (total_bytes(sent) != boundary_payload(microbatch))
      return std::string_view("a boundary of another size");
    SliceReader reader(sent);
    boundary = ReadBoundary::read(shape_of(microbatch), reader.take(gradient_payload(microbatch)));
    if (!boundary) return std::string_view("a boundary with a number that is not finite");
    reader.read(std::as_writable_bytes(words->span()));
    const auto is_known = [&](TokenNumber one) { return one < backend_->vocabulary(); };
    if (!std::ranges::all_of(words->span(), is_known))
      return std::string_view("a token beyond the vocabulary");
  }
  const StageCut& cut = backend_->cut();
  auto task = backend_->begin({.windows = job_.windows_of(microbatch),
                               .context = job_.context,
                               .tokens = cut.has_embedding() ? tokens : std::span<TokenNumber>(),
                               .targets = cut.has_head() ? targets : std::span<TokenNumber>(),
                               .boundary = boundary ? std::optional(boundary->numbers()) : std::nullopt},
                              Keep::kAll);
  if (!task.ok()) return task.error();
  kept_[microbatch] = {.task = std::move(*task), .tokens = slice_of(std::move(words))};
  return std::string_view{};
}

void StageBench::count(Kept& one) {
  kept_bytes_ -= one.bytes;
  one.bytes = one.task->bytes();
  kept_bytes_ += one.bytes;
}

// Graphs are kept, newest first; else the inputs of layers; else the stage's input.
void StageBench::keep_less() {
  for (const Keep keep : {Keep::kLayerInputs, Keep::kInput}) {
    for (auto& [microbatch, one] : kept_) {
      if (!is_short()) return;
      if (!one.waits) continue;
      one.task->keep_less(keep);
      count(one);
    }
  }
}

// Numbers that are not finite stay here: others get zeros, and the record says so.
Slice StageBench::written(std::uint64_t microbatch, ConstNumbers numbers) {
  WrittenBoundary boundary = write_boundary(shape_of(microbatch), numbers);
  sent_zeros_ = sent_zeros_ || boundary.zeros;
  return std::move(boundary.bytes);
}

Result<StageBench::Piece> StageBench::forward(std::uint64_t microbatch, const Slices& sent) {
  if (!kept_.contains(microbatch)) {
    const auto objection = begin(microbatch, sent);
    if (!objection.ok()) return objection.error();
    if (!objection->empty()) return Piece{.objection = *objection};
  }
  Kept& one = kept_.at(microbatch);
  const Result<bool> more = one.task->forward_next();
  if (!more.ok()) return more.error();
  if (*more) return Piece{.more = true};
  const bool goes_on = !backend_->cut().has_head();
  Piece piece;
  if (goes_on) piece.given = {written(microbatch, one.task->output()), one.tokens};
  one.waits = goes_on;
  count(one);
  keep_less();
  return piece;
}

Result<std::string_view> StageBench::begin_backward(Kept& one, std::uint64_t microbatch, const Slices& sent) {
  std::optional<ReadBoundary> gradient;
  if (!backend_->cut().has_head()) {
    gradient = ReadBoundary::read(shape_of(microbatch), sent);
    if (!gradient) return std::string_view("a gradient of another size, or with a number that is not finite");
  }
  one.waits = false;
  one.goes_back = true;
  const auto begun = one.task->begin_backward(gradient ? std::optional(gradient->numbers()) : std::nullopt);
  if (!begun.ok()) return begun.error();
  return std::string_view{};
}

Result<StageBench::Piece> StageBench::backward(std::uint64_t microbatch, const Slices& sent) {
  Kept& one = kept_.at(microbatch);
  if (!one.goes_back) {
    const auto objection = begin_backward(one, microbatch, sent);
    if (!objection.ok()) return objection.error();
    if (!objection->empty()) return Piece{.objection = *objection};
  }
  const Result<bool> more = one.task->backward_next();
  if (!more.ok()) return more.error();
  count(one);
  Piece piece{.more = *more};
  if (!*more && !backend_->cut().has_embedding())
    piece.given = {written(microbatch, one.task->input_gradient())};
  return piece;
}

Result<bool> StageBench::add_next(std::uint64_t microbatch) {
  const auto found = kept_.find(microbatch);
  Kept& one = found->second;
  const Result<bool> more = one.task->can_add() ? one.task->add_next() : Result<bool>(false);
  if (!more.ok()) return more;
  count(one);
  if (*more) return true;
  if (backend_->cut().has_head()) loss_ += one.task->loss().loss;
  tokens_ += job_.tokens_of(microbatch);
  kept_bytes_ -= one.bytes;
  kept_.erase(found);
  return false;
}

std::uint64_t StageBench::gradient_numbers() const {
  std::uint64_t numbers = 0;
  for (const StageTensor& tensor : backend_->tensors())
    numbers += std::visit([](auto all) { return all.size(); }, tensor.gradients);
  return numbers;
}

cluster::SumNumbers StageBench::sum_numbers() const {
  if (is_f64_) return cluster::SumNumbers::kF64;
  return job_.rounds_sums && !exact_ ? cluster::SumNumbers::kBf16 : cluster::SumNumbers::kF32;
}

Slices StageBench::contribution() {
  const cluster::SumNumbers numbers = sum_numbers();
  auto all = std::make_shared<AlignedArray<std::byte>>(gradient_numbers() * number_bytes(numbers));
  const net::Codec codec = numbers == cluster::SumNumbers::kBf16 ? net::Codec::kBf16 : net::Codec::kF32;
  const auto is_good = [&](const StageTensor& one) { return are_finite(constant(one.gradients), codec); };
  if (std::ranges::all_of(backend_->tensors(), is_good)) {
    std::span<std::byte> left = all->span();
    for (const StageTensor& tensor : backend_->tensors()) {
      const std::span<std::byte> part = bytes_of(tensor.gradients);
      std::ranges::copy(part, left.begin());
      left = left.subspan(part.size());
    }
  } else {
    sent_zeros_ = true;
  }
  return cluster::as_sent(numbers, {slice_of(std::move(all))});
}

StageSum StageBench::take_sum(const std::optional<Slices>& sum) {
  const exact::FloatingModes modes;
  std::optional<SliceReader> reader;
  if (sum) reader.emplace(*sum);
  Digest digest;
  for (const StageTensor& tensor : backend_->tensors()) {
    const std::span<std::byte> part = bytes_of(tensor.gradients);
    if (reader) reader->read(part);
    digest.add(part);
  }
  return {.hash = digest.value(),
          .squared_norm = optimizer_->squared_norm(),
          .loss = loss_,
          .tokens = tokens_,
          .not_finite = static_cast<std::uint8_t>(sent_zeros_ ? kSentZeros : 0)};
}

void StageBench::begin_update(StepNumber step, double total, bool skipped) {
  const exact::FloatingModes modes;
  const auto tokens = static_cast<double>(job_.tokens());
  updates_ = !skipped;
  if (skipped) return optimizer_->clear_gradients();
  const double norm = std::sqrt(total) / tokens;
  optimizer_->begin_step({.step = step.value,
                          .rate = exact::learning_rate(job_.schedule, step.value),
                          .gradient_scale = exact::clip_factor(norm, job_.clip) / tokens});
}

Result<bool> StageBench::update_next() {
  if (!updates_) return false;
  if (optimizer_->apply_next()) return true;
  updates_ = false;
  if (auto changed = backend_->weights_changed(); !changed.ok()) return changed.error();
  return false;
}

std::vector<tensors::NamedTensor> StageBench::state() { return stage_state(*backend_, *optimizer_); }

Result<void> StageBench::state_changed() {
  optimizer_->state_changed();
  return backend_->weights_changed();
}

}  // namespace gossamer::pipeline
