// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/torch/torch_stage.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "engines/pipeline/stage/lm_activations.h"
#include "engines/pipeline/torch/torch_weights.h"
#include "exact/exact_math.h"

namespace gossamer::pipeline {
namespace {

Error torch_failed(const std::exception& failure) {
  // The first line says what failed; the others are torch's own stack.
  std::string words = failure.what();
  words = words.substr(0, words.find('\n'));
  return {.what = "torch cannot compute a stage", .got = std::move(words)};
}

// Calls, and makes an error of each exception of torch. `function` returns a Result.
template <class Function>
auto guarded(Function&& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::exception& failure) {
    return torch_failed(failure);
  }
}

ConstNumbers numbers_of(const at::Tensor& tensor) {
  const auto size = static_cast<std::size_t>(tensor.numel());
  if (tensor.scalar_type() == at::kDouble) return std::span(tensor.const_data_ptr<double>(), size);
  return std::span(tensor.const_data_ptr<float>(), size);
}

at::Tensor copy_of(const ConstNumbers& numbers, std::int64_t width, at::ScalarType wide) {
  return std::visit(
      [&]<class T>(std::span<const T> from) {
        const auto rows = static_cast<std::int64_t>(from.size()) / width;
        at::Tensor copy = at::empty({rows, width}, wide);
        CHECK(copy.nbytes() == from.size_bytes(), copy.nbytes(), from.size_bytes());
        std::copy(from.begin(), from.end(), copy.mutable_data_ptr<T>());
        return copy;
      },
      numbers);
}

at::Tensor copy_of(std::span<const TokenNumber> tokens) {
  at::Tensor copy = at::empty({static_cast<std::int64_t>(tokens.size())}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), copy.mutable_data_ptr<std::int64_t>());
  return copy;
}

class TorchStage final : public StageBackend {
 public:
  explicit TorchStage(const TorchStageOptions& options) : options_(options), weights_(options) {}

  [[nodiscard]] const StageCut& cut() const override { return options_.cut; }
  [[nodiscard]] std::uint32_t width() const override { return options_.shape.width; }
  [[nodiscard]] std::uint32_t vocabulary() const override { return options_.shape.vocabulary; }
  [[nodiscard]] std::uint32_t context() const override { return options_.shape.context; }
  [[nodiscard]] std::span<const StageTensor> tensors() override { return weights_.tensors(); }
  [[nodiscard]] Result<std::unique_ptr<StageTask>> begin(const Microbatch& microbatch, Keep keep) override;
  [[nodiscard]] Result<std::vector<double>> next_scores(std::span<const TokenNumber> window) override;
  [[nodiscard]] Result<void> weights_changed() override {
    CHECK(tasks_ == 0, tasks_);
    return guarded([this]() -> Result<void> {
      weights_.refresh();
      return {};
    });
  }

  [[nodiscard]] const LmShape& shape() const { return options_.shape; }
  [[nodiscard]] Precision precision() const { return options_.precision; }
  [[nodiscard]] const TorchWeights& weights() const { return weights_; }
  [[nodiscard]] TorchContext context_of(const Microbatch& microbatch) const;
  // What the first layer takes.
  [[nodiscard]] at::Tensor embedded(const at::Tensor& tokens, const TorchContext& context) const;
  [[nodiscard]] bool knows(std::span<const TokenNumber> tokens) const {
    return std::ranges::all_of(tokens, [&](TokenNumber token) { return token < options_.shape.vocabulary; });
  }
  // Counts the tasks that live.
  void task_begins() { ++tasks_; }
  void task_ends() { --tasks_; }

 private:
  TorchStageOptions options_;
  TorchWeights weights_;
  std::size_t tasks_ = 0;
};

// The angle of position t in the pair of columns i is t / 10000^(2 i / columns).
TorchContext TorchStage::context_of(const Microbatch& microbatch) const {
  TorchContext context{.shape = options_.shape, .windows = microbatch.windows, .context = microbatch.context};
  if (context.shape.positions != LmPositions::kRotary) return context;
  const std::int64_t half = context.shape.width / context.shape.heads / 2;
  const at::Tensor cosines = at::empty({context.context, half}, at::kDouble);
  const at::Tensor sines = at::empty({context.context, half}, at::kDouble);
  constexpr double kPi = 3.14159265358979323846;
  for (std::int64_t i = 0; i < half; ++i) {
    const double rate = std::pow(10'000.0, -static_cast<double>(i) / static_cast<double>(half)) / (2 * kPi);
    for (std::int64_t t = 0; t < context.context; ++t) {
      const double turns = static_cast<double>(t) * rate;
      cosines.mutable_data_ptr<double>()[t * half + i] = exact::cosine(turns);
      sines.mutable_data_ptr<double>()[t * half + i] = exact::sine(turns);
    }
  }
  context.cosines = cosines.to(weights_.layer_type());
  context.sines = sines.to(weights_.layer_type());
  return context;
}

at::Tensor TorchStage::embedded(const at::Tensor& tokens, const TorchContext& context) const {
  const at::NoGradGuard no_graph;
  at::Tensor x = at::embedding(weights_.tokens().weight, tokens);
  const at::Tensor& positions = weights_.positions().weight;
  if (!positions.defined()) return x;
  return (x.view({context.windows, context.context, -1}) + positions.narrow(0, 0, context.context))
      .view(x.sizes());
}

Result<std::vector<double>> TorchStage::next_scores(std::span<const TokenNumber> window) {
  const LmShape& shape = options_.shape;
  CHECK(cut().has_embedding() && cut().has_head() && knows(window));
  CHECK(!window.empty() && window.size() <= shape.context, window.size());
  return guarded([&]() -> Result<std::vector<double>> {
    const at::NoGradGuard no_graph;
    const TorchContext context =
        context_of({.context = static_cast<std::uint32_t>(window.size()), .tokens = window, .targets = {}});
    at::Tensor x = embedded(copy_of(window), context);
    for (std::uint32_t piece = 0; piece < shape.layers * shape.applied; ++piece)
      x = run_layer(weights_.layer(piece / shape.applied), context, x, TorchGraph::kNone, nullptr).output;
    const at::Tensor last = x.narrow(0, x.size(0) - 1, 1);
    const at::Tensor normed = run_norm(weights_.head_norm(), shape.norm, last, TorchGraph::kNone).output;
    const at::Tensor scores =
        at::linear(normed, weights_.head().weight).to(weights_.wide_type()).to(at::kDouble).contiguous();
    const double* numbers = scores.const_data_ptr<double>();
    return std::vector<double>(numbers, numbers + shape.vocabulary);
  });
}

// A microbatch goes through pieces: each layer as often as it is applied, then the head, where the stage has
// it.
class TorchTask final : public StageTask {
 public:
  TorchTask(TorchStage& stage, const Microbatch& microbatch, Keep keep);

  [[nodiscard]] Result<bool> forward_next() override;
  [[nodiscard]] ConstNumbers output() const override;
  [[nodiscard]] LossSum loss() const override;
  [[nodiscard]] Result<void> begin_backward(std::optional<ConstNumbers> gradient) override;
  [[nodiscard]] Result<bool> backward_next() override;
  [[nodiscard]] ConstNumbers input_gradient() const override;
  [[nodiscard]] bool can_add() const override { return phase_ != Phase::kFailed && added_ < passed_; }
  [[nodiscard]] Result<bool> add_next() override;
  void keep_less(Keep keep) override;
  [[nodiscard]] std::uint64_t bytes() const override;

 private:
  enum class Phase { kForward, kBetween, kAgain, kBackward, kPassed, kFailed };

  // The head, while some tokens are scored and others are not. Without gradient their tensors are undefined.
  struct Scores {
    at::Tensor normed;  // input of the head
    at::Tensor gradients, normed_gradient;
    std::int64_t from = 0;  // the first token that has no score
    double loss = 0;
  };
  // One layer, applied once.
  struct Piece {
    at::Tensor input;  // without graph
    TorchNode node;    // with graph; empty if it is not kept
    TorchWaiting waiting;
  };

  [[nodiscard]] const TorchLayer& layer(std::size_t piece) const {
    return stage_.weights().layer(piece / stage_.shape().applied);
  }
  // The result of `work`, or its failure, which ends the task.
  template <class Work>
  [[nodiscard]] auto step(Work&& work) -> decltype(work()) {
    auto done = guarded(std::forward<Work>(work));
    if (!done.ok()) phase_ = Phase::kFailed;
    return done;
  }
  [[nodiscard]] std::size_t heads() const { return stage_.cut().has_head() ? 1 : 0; }
  void forward_piece(std::size_t k, TorchGraph graph);
  void begin_scores(bool with_gradient);
  // Scores some of the tokens. True: some are left.
  [[nodiscard]] bool score_next(bool with_gradient);
  void backward_head();
  void backward_piece(std::size_t k);
  void add_embedding();
  void drop_what_is_not_kept();

  // Counts this task as long as it lives, also one whose constructor ends with an exception.
  struct Counted {
    explicit Counted(TorchStage& stage) : of(stage) { of.task_begins(); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { of.task_ends(); }
    TorchStage& of;
  };

  TorchStage& stage_;
  const Counted counted_{stage_};
  Keep keep_;
  TorchContext context_;
  at::Tensor tokens_, targets_;  // undefined where the stage needs none
  Phase phase_ = Phase::kForward;
  std::size_t done_ = 0;    // pieces forward
  std::size_t passed_ = 0;  // pieces backward, the head among them
  std::size_t added_ = 0;   // likewise, whose products are added
  std::vector<Piece> pieces_;
  at::Tensor last_;      // the output of the last piece, in the type of layers
  at::Tensor output_;    // the same in the type of boundaries
  at::Tensor gradient_;  // of the input of the piece that comes last backwards
  at::Tensor input_gradient_;
  TorchNode head_node_;
  at::Tensor normed_gradient_;
  TorchWaiting head_waiting_;
  std::optional<Scores> scores_;
  LossSum loss_;
};

TorchTask::TorchTask(TorchStage& stage, const Microbatch& microbatch, Keep keep)
    : stage_(stage), keep_(keep), context_(stage.context_of(microbatch)) {
  const StageCut& cut = stage.cut();
  const std::size_t count = std::size_t{microbatch.windows} * microbatch.context;
  CHECK(count > 0 && microbatch.context <= stage.shape().context, count, microbatch.context);
  const auto fits = [&](std::span<const TokenNumber> numbers, bool needed) {
    return numbers.size() == (needed ? count : 0) && stage.knows(numbers);
  };
  CHECK(fits(microbatch.tokens, cut.has_embedding()) && fits(microbatch.targets, cut.has_head()));
  CHECK(microbatch.boundary.has_value() != cut.has_embedding());
  pieces_.resize(std::size_t{cut.last - cut.first} * stage.shape().applied);
  if (cut.has_embedding()) tokens_ = copy_of(microbatch.tokens);
  if (cut.has_head()) targets_ = copy_of(microbatch.targets);
  if (!microbatch.boundary.has_value()) return;
  const at::Tensor boundary = copy_of(*microbatch.boundary, stage.width(), stage.weights().wide_type());
  CHECK(static_cast<std::size_t>(boundary.size(0)) == count, boundary.size(0), count);
  pieces_.front().input = boundary.to(stage.weights().layer_type());
}

void TorchTask::forward_piece(std::size_t k, TorchGraph graph) {
  Piece& piece = pieces_[k];
  piece.node = run_layer(layer(k), context_, piece.input, graph, &piece.waiting);
  const at::Tensor output = piece.node.output.detach();
  if (graph == TorchGraph::kNone) piece.node = {};
  (k + 1 < pieces_.size() ? pieces_[k + 1].input : last_) = output;
}

void TorchTask::begin_scores(bool with_gradient) {
  const TorchWeights& weights = stage_.weights();
  head_node_ = run_norm(weights.head_norm(), stage_.shape().norm, last_,
                        with_gradient ? TorchGraph::kBuild : TorchGraph::kNone);
  scores_.emplace();
  scores_->normed = head_node_.output.detach();
  if (!with_gradient) return;
  const std::int64_t tokens = scores_->normed.size(0);
  const auto words = static_cast<std::int64_t>(stage_.shape().vocabulary);
  scores_->gradients = at::empty({tokens, words}, weights.layer_type());
  scores_->normed_gradient = at::empty_like(scores_->normed);
}

// A gradient is softmax(scores) - one_hot(target).
bool TorchTask::score_next(bool with_gradient) {
  const at::NoGradGuard no_graph;
  if (!scores_.has_value()) begin_scores(with_gradient);
  Scores& part = *scores_;
  const TorchLinear& head = stage_.weights().head();
  const std::uint64_t at_once = std::max<std::uint64_t>(1, kScoresAtOnce / stage_.shape().vocabulary);
  const std::int64_t count = std::min(static_cast<std::int64_t>(at_once), part.normed.size(0) - part.from);
  const at::Tensor targets = targets_.narrow(0, part.from, count).unsqueeze(1);
  const at::Tensor scores =
      at::linear(part.normed.narrow(0, part.from, count), head.weight).to(stage_.weights().wide_type());
  at::Tensor likelihoods = at::log_softmax(scores, 1);
  part.loss -= likelihoods.gather(1, targets).sum(at::kDouble).item<double>();
  if (with_gradient) {
    likelihoods.exp_();
    likelihoods.scatter_add_(1, targets, at::full_like(targets, -1, likelihoods.options()));
    at::Tensor gradients = part.gradients.narrow(0, part.from, count);
    gradients.copy_(likelihoods);
    at::Tensor normed_gradient = part.normed_gradient.narrow(0, part.from, count);
    at::mm_out(normed_gradient, gradients, head.weight);
  }
  part.from += count;
  if (part.from < part.normed.size(0)) return true;
  loss_ = {.loss = part.loss, .tokens = static_cast<std::uint64_t>(targets_.size(0))};
  if (with_gradient) {
    normed_gradient_ = part.normed_gradient;
    head_waiting_.product(head, part.normed, part.gradients);
  }
  scores_.reset();
  return false;
}

void TorchTask::drop_what_is_not_kept() {
  for (std::size_t k = 0; k < pieces_.size(); ++k) {
    if (keep_ != Keep::kAll) pieces_[k].node = {};
    if (keep_ == Keep::kInput && k > 0) pieces_[k].input.reset();
  }
  if (keep_ == Keep::kAll) return;
  head_node_ = {};
  head_waiting_ = {};
  normed_gradient_.reset();
}

Result<bool> TorchTask::forward_next() {
  CHECK(phase_ == Phase::kForward);
  return step([&]() -> Result<bool> {
    if (done_ < pieces_.size()) {
      if (done_ == 0 && stage_.cut().has_embedding())
        pieces_.front().input = stage_.embedded(tokens_, context_);
      forward_piece(done_, keep_ == Keep::kAll ? TorchGraph::kBuild : TorchGraph::kNone);
      ++done_;
      if (keep_ == Keep::kInput && done_ > 1) pieces_[done_ - 1].input.reset();
      if (done_ < pieces_.size() || stage_.cut().has_head()) return true;
    } else if (score_next(keep_ == Keep::kAll)) {
      return true;
    }
    if (!stage_.cut().has_head()) output_ = last_.to(stage_.weights().wide_type()).contiguous();
    phase_ = Phase::kBetween;
    drop_what_is_not_kept();
    return false;
  });
}

ConstNumbers TorchTask::output() const {
  CHECK(output_.defined());
  return numbers_of(output_);
}

LossSum TorchTask::loss() const {
  CHECK(phase_ != Phase::kForward && stage_.cut().has_head());
  return loss_;
}

void TorchTask::keep_less(Keep keep) {
  CHECK(phase_ == Phase::kBetween);
  keep_ = std::min(keep_, keep);
  drop_what_is_not_kept();
}

Result<void> TorchTask::begin_backward(std::optional<ConstNumbers> gradient) {
  CHECK(phase_ == Phase::kBetween && gradient.has_value() != stage_.cut().has_head());
  return step([&]() -> Result<void> {
    const at::ScalarType wide = stage_.weights().wide_type();
    if (gradient.has_value()) {
      gradient_ = copy_of(*gradient, stage_.width(), wide).to(stage_.weights().layer_type());
      CHECK(gradient_.sizes() == last_.sizes(), gradient_.size(0), last_.size(0));
    }
    done_ = 0;
    const bool inputs_are_there = keep_ != Keep::kInput || pieces_.size() == 1;
    phase_ = inputs_are_there ? Phase::kBackward : Phase::kAgain;
    return {};
  });
}

void TorchTask::backward_head() {
  gradient_ = run_backward(head_node_, normed_gradient_, head_waiting_);
  normed_gradient_.reset();
}

void TorchTask::backward_piece(std::size_t k) {
  Piece& piece = pieces_[k];
  if (!piece.node.output.defined())
    piece.node = run_layer(layer(k), context_, piece.input, TorchGraph::kBuild, &piece.waiting);
  gradient_ = run_backward(piece.node, gradient_, piece.waiting);
  piece.input.reset();
}

Result<bool> TorchTask::backward_next() {
  CHECK(phase_ == Phase::kAgain || phase_ == Phase::kBackward);
  return step([&]() -> Result<bool> {
    if (phase_ == Phase::kAgain) {
      // The last piece goes forward again in its backward call, with its graph.
      forward_piece(done_++, TorchGraph::kNone);
      if (done_ + 1 == pieces_.size()) phase_ = Phase::kBackward;
      return true;
    }
    if (passed_ < heads()) {
      if (!normed_gradient_.defined() && score_next(true)) return true;
      backward_head();
    } else {
      backward_piece(pieces_.size() - 1 - (passed_ - heads()));
    }
    if (++passed_ < pieces_.size() + heads()) return true;
    if (!stage_.cut().has_embedding())
      input_gradient_ = gradient_.to(stage_.weights().wide_type()).contiguous();
    phase_ = Phase::kPassed;
    return false;
  });
}

ConstNumbers TorchTask::input_gradient() const {
  CHECK(input_gradient_.defined());
  return numbers_of(input_gradient_);
}

void TorchTask::add_embedding() {
  const at::NoGradGuard no_graph;
  const at::Tensor& tokens = stage_.weights().tokens().weight_sum;
  const at::Tensor gradient = gradient_.to(tokens.scalar_type());
  tokens.index_add_(0, tokens_, gradient);
  const at::Tensor& positions = stage_.weights().positions().weight_sum;
  if (!positions.defined()) return;
  positions.narrow(0, 0, context_.context)
      .add_(gradient.view({context_.windows, context_.context, -1}).sum(0));
}

Result<bool> TorchTask::add_next() {
  CHECK(can_add());
  return step([&]() -> Result<bool> {
    if (added_ < heads()) {
      head_waiting_.add();
    } else {
      pieces_[pieces_.size() - 1 - (added_ - heads())].waiting.add();
    }
    if (++added_ < pieces_.size() + heads()) return true;
    if (stage_.cut().has_embedding()) add_embedding();
    return false;
  });
}

std::uint64_t TorchTask::bytes() const {
  const LmShape& shape = stage_.shape();
  const auto tokens = static_cast<std::uint64_t>(context_.windows * context_.context);
  TorchStorages storages;
  std::uint64_t graphs = 0;
  for (const Piece& piece : pieces_) {
    storages.add(piece.input);
    storages.add(piece.node.output);
    piece.waiting.count(storages);
    if (piece.node.output.defined()) graphs += layer_graph_bytes(shape, stage_.precision(), tokens);
  }
  if (!head_node_.parameters.empty()) graphs += head_graph_bytes(shape, stage_.precision(), tokens);
  head_waiting_.count(storages);
  if (scores_.has_value()) {
    storages.add(scores_->gradients);
    storages.add(scores_->normed_gradient);
  }
  for (const at::Tensor* tensor : {&tokens_, &targets_, &context_.cosines, &context_.sines, &last_, &output_,
                                   &gradient_, &input_gradient_, &normed_gradient_, &head_node_.output})
    storages.add(*tensor);
  return graphs + storages.bytes();
}

Result<std::unique_ptr<StageTask>> TorchStage::begin(const Microbatch& microbatch, Keep keep) {
  return guarded([&]() -> Result<std::unique_ptr<StageTask>> {
    return std::unique_ptr<StageTask>(std::make_unique<TorchTask>(*this, microbatch, keep));
  });
}

}  // namespace

Result<std::unique_ptr<StageBackend>> make_torch_stage(const TorchStageOptions& options) {
  if (const Result<void> good = check_shape(options.shape); !good.ok()) return good.error();
  return guarded([&]() -> Result<std::unique_ptr<StageBackend>> {
    at::set_num_threads(options.threads);
    return std::unique_ptr<StageBackend>(std::make_unique<TorchStage>(options));
  });
}

}  // namespace gossamer::pipeline
