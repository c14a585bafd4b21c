// SPDX-License-Identifier: Apache-2.0
//
// StageBackend: the weights of one stage, and what computes it. It is the seam between the pipeline engine
// and the library that multiplies matrices. A StageTask takes one microbatch through the stage:
//
//   1. forward_next() until it says that nothing follows; then output(), or loss() of the last stage.
//   2. begin_backward(gradient of the output), then backward_next() likewise; then input_gradient().
//   3. add_next() likewise: it forms the products that are the gradients of the weights, and adds them to the
//      accumulators of the tensors. Where memory is short, it is called between two calls of backward_next():
//      products of layers that are passed need not wait for the others (can_add()).
//
// Each call of a _next() function is one layer of work or less, so that a caller can stop between two. The
// input's gradient is ready before any product is formed: the stage before waits for the former alone. A task
// may be destroyed at any time. Accumulators hold the products that add_next() has added until then, so a
// caller that destroys a task in the middle of step 3 gives up what the accumulators hold.
//
// Weights must not be written while a task lives: its backward pass takes those of its forward pass.
//
// A gradient is that of the loss summed over tokens. Equal bits: the same calls with the same numbers give
// the same bits, in whatever way a task keeps what it needs (Keep), and wherever the model is cut into
// stages.
//
// A model that is one stage also says which token may follow a window (next_scores()).
//
// Errors: those of the library, kFailed; the task can then only be destroyed. Thread rule: one thread at a
// time for a backend and all its tasks. A backend outlives its tasks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace gossamer::pipeline {

// The number of a token in the vocabulary.
using TokenNumber = std::uint32_t;

using Numbers = std::variant<std::span<float>, std::span<double>>;
using ConstNumbers = std::variant<std::span<const float>, std::span<const double>>;

// The layers [first, last) of a model of `layers` layers. The first stage has the embedding beside them, the
// last one the head and the loss.
struct StageCut {
  std::uint32_t first = 0;
  std::uint32_t last = 1;
  std::uint32_t layers = 1;

  [[nodiscard]] bool has_embedding() const { return first == 0; }
  [[nodiscard]] bool has_head() const { return last == layers; }
  bool operator==(const StageCut&) const = default;
};

// One tensor of the stage. Both arrays are rows-first and stay where they are while the backend lives.
struct StageTensor {
  std::string name;  // the same for every cut, and no other tensor of the model has it
  std::vector<std::uint64_t> shape;
  Numbers weights;
  Numbers gradients;  // the accumulator, of the same type and size
};

// Windows of equally many tokens each.
struct Microbatch {
  std::uint32_t windows = 1;
  std::uint32_t context = 1;                  // tokens of a window
  std::span<const TokenNumber> tokens;        // [windows * context], of the first stage; else empty
  std::span<const TokenNumber> targets;       // [windows * context], of the last stage; else empty
  std::optional<ConstNumbers> boundary = {};  // [windows * context, width], of all stages but the first
};

// What a task keeps from forward to backward. What it does not keep is computed again.
enum class Keep {
  kInput,        // of the stage
  kLayerInputs,  // of each layer
  kAll,
};

// The loss of a microbatch, summed over its tokens.
struct LossSum {
  double loss = 0;
  std::uint64_t tokens = 0;
};

class StageTask {
 public:
  StageTask() = default;
  StageTask(const StageTask&) = delete;
  StageTask& operator=(const StageTask&) = delete;
  virtual ~StageTask() = default;

  // True: call again.
  [[nodiscard]] virtual Result<bool> forward_next() = 0;
  // After the forward pass, until the task ends; not of a last stage.
  [[nodiscard]] virtual ConstNumbers output() const = 0;
  // After the forward pass of a last stage.
  [[nodiscard]] virtual LossSum loss() const = 0;

  // `gradient` is that of output(), nothing at a last stage. It is copied.
  [[nodiscard]] virtual Result<void> begin_backward(std::optional<ConstNumbers> gradient) = 0;
  [[nodiscard]] virtual Result<bool> backward_next() = 0;
  // After the backward pass, until the task ends; not of a first stage.
  [[nodiscard]] virtual ConstNumbers input_gradient() const = 0;

  // Whether products wait: a layer is passed backwards, and its products are not added.
  [[nodiscard]] virtual bool can_add() const = 0;
  // Requires can_add(). Last layers first, whenever it is called. False: all products of the task are added.
  [[nodiscard]] virtual Result<bool> add_next() = 0;

  // Gives memory back between the forward and the backward pass. No effect where `keep` is no less.
  virtual void keep_less(Keep keep) = 0;
  // The memory that the task has, but for temporary tensors of a call.
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
};

class StageBackend {
 public:
  StageBackend() = default;
  StageBackend(const StageBackend&) = delete;
  StageBackend& operator=(const StageBackend&) = delete;
  virtual ~StageBackend() = default;

  [[nodiscard]] virtual const StageCut& cut() const = 0;
  // The columns of a boundary.
  [[nodiscard]] virtual std::uint32_t width() const = 0;
  // Tokens are below `vocabulary`, and windows have at most `context` of them. Callers check what peers send.
  [[nodiscard]] virtual std::uint32_t vocabulary() const = 0;
  [[nodiscard]] virtual std::uint32_t context() const = 0;
  // In an order that follows from the cut alone.
  [[nodiscard]] virtual std::span<const StageTensor> tensors() = 0;
  // Copies the microbatch's arrays. Requires those that this stage needs, of the right sizes, and tokens
  // below the vocabulary.
  [[nodiscard]] virtual Result<std::unique_ptr<StageTask>> begin(const Microbatch& microbatch, Keep keep) = 0;
  // The scores of the token behind a window of 1..context() tokens, in order of the vocabulary. The loss of a
  // token is made of the same scores. It goes forward alone, at once, and keeps nothing. Requires the whole
  // model, and tokens below the vocabulary.
  [[nodiscard]] virtual Result<std::vector<double>> next_scores(std::span<const TokenNumber> window) = 0;
  // Weights were written in place: by the optimizer, or from a checkpoint. Requires that no task lives.
  [[nodiscard]] virtual Result<void> weights_changed() = 0;
};

}  // namespace gossamer::pipeline
