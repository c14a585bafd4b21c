// SPDX-License-Identifier: Apache-2.0
//
// One layer of a language model on torch's tensors, and the products of weights that wait. Inside this folder
// only: it includes headers of torch. Thread rule: the thread that calls torch.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "engines/pipeline/stage/lm_shape.h"
#include "engines/pipeline/torch/torch_headers.h"

namespace gossamer::pipeline {

// A weight [outputs, inputs] with its bias, as layers compute with them, and their accumulators.
struct TorchLinear {
  struct BiasSum {
    at::Tensor sum;
    std::int64_t from;  // the first output that it belongs to
  };
  at::Tensor weight;
  at::Tensor bias;  // [outputs], undefined: none
  at::Tensor weight_sum;
  std::vector<BiasSum> bias_sums = {};
};

struct TorchNorm {
  at::Tensor scale;
  at::Tensor shift;  // undefined: none
  at::Tensor scale_sum;
  at::Tensor shift_sum;
};

struct TorchLayer {
  TorchNorm attention_norm;
  TorchLinear query_key_value;  // [3 width, width]
  TorchLinear attention_out;
  TorchNorm mlp_norm;
  TorchLinear gate;  // of SwiGLU; else undefined tensors
  TorchLinear in;
  TorchLinear out;
};

// The memory of tensors, that which several of them share once.
class TorchStorages {
 public:
  void add(const at::Tensor& tensor) {
    if (tensor.defined() && seen_.insert(tensor.storage().data()).second) bytes_ += tensor.storage().nbytes();
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  std::set<const void*> seen_;
  std::uint64_t bytes_ = 0;
};

// What will be added to accumulators.
class TorchWaiting {
 public:
  // weight_sum += gradient^T input; bias sums += the sum of the gradient's rows.
  void product(const TorchLinear& linear, at::Tensor input, at::Tensor gradient) {
    products_.push_back({&linear, std::move(input), std::move(gradient)});
  }
  void sum(const at::Tensor& accumulator, at::Tensor gradient) {
    sums_.push_back({accumulator, std::move(gradient)});
  }
  // Forms all products, adds all, and forgets them.
  void add();
  void count(TorchStorages& storages) const;

 private:
  struct Product {
    const TorchLinear* linear;
    at::Tensor input, gradient;
  };
  struct Sum {
    at::Tensor accumulator, gradient;
  };
  std::vector<Product> products_;
  std::vector<Sum> sums_;
};

// What a layer needs to know of the model and the microbatch.
struct TorchContext {
  LmShape shape;
  std::int64_t windows = 1;
  std::int64_t context = 1;  // tokens of each window
  at::Tensor cosines = {};   // of rotary positions, [context, columns of a head / 2]
  at::Tensor sines = {};
};

// A normed or layered value with the graph that leads to it. Without gradients `input` and `parameters` are
// empty.
struct TorchNode {
  at::Tensor input;                             // a leaf of the graph
  at::Tensor output;                            // detached where there is no graph
  std::vector<at::Tensor> parameters = {};      // leaves: scales and shifts
  std::vector<at::Tensor> parameter_sums = {};  // their accumulators
};

// x [tokens, width] through the layer. With a graph, products of the backward pass will be put into
// `waiting`.
enum class TorchGraph { kNone, kBuild };
[[nodiscard]] TorchNode run_layer(const TorchLayer& layer, const TorchContext& context, const at::Tensor& x,
                                  TorchGraph graph, TorchWaiting* waiting);
[[nodiscard]] TorchNode run_norm(const TorchNorm& norm, LmNorm kind, const at::Tensor& x, TorchGraph graph);

// The gradient of node.input from that of node.output. The graph is used up.
[[nodiscard]] at::Tensor run_backward(TorchNode& node, const at::Tensor& gradient, TorchWaiting& waiting);

}  // namespace gossamer::pipeline
