// SPDX-License-Identifier: Apache-2.0
#include "engines/pipeline/torch/torch_layer.h"

#include <utility>

namespace gossamer::pipeline {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kNormEpsilon = 1e-5;

// The linear layer as a node of torch's graph: the input's gradient now, the weight's product later.
struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const TorchLinear* linear,
                            TorchWaiting* waiting) {
    context->save_for_backward({x});
    context->saved_data["linear"] = reinterpret_cast<std::int64_t>(linear);
    context->saved_data["waiting"] = reinterpret_cast<std::int64_t>(waiting);
    return at::linear(x, linear->weight, linear->bias);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto* linear = reinterpret_cast<const TorchLinear*>(context->saved_data["linear"].toInt());
    auto* waiting = reinterpret_cast<TorchWaiting*>(context->saved_data["waiting"].toInt());
    at::Tensor input_gradient = at::mm(gradients[0], linear->weight);
    waiting->product(*linear, context->get_saved_variables()[0].detach(), gradients[0].contiguous());
    return {input_gradient, {}, {}};
  }
};

// Runs one layer; collects the leaves that its graph ends at.
class LayerRun {
 public:
  LayerRun(TorchGraph graph, TorchWaiting* waiting) : graph_(graph), waiting_(waiting) {}

  [[nodiscard]] at::Tensor linear(const at::Tensor& x, const TorchLinear& linear) {
    if (graph_ == TorchGraph::kNone) return at::linear(x, linear.weight, linear.bias);
    return LinearFunction::apply(x, &linear, waiting_);
  }
  [[nodiscard]] at::Tensor norm(const at::Tensor& x, const TorchNorm& norm, LmNorm kind) {
    const at::Tensor scale = leaf(norm.scale, norm.scale_sum);
    const at::Tensor shift = leaf(norm.shift, norm.shift_sum);
    if (kind == LmNorm::kLayer) return at::layer_norm(x, {x.size(1)}, scale, shift, kNormEpsilon);
    const at::Tensor wide = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
    const at::Tensor root = at::rsqrt(wide.square().mean(1, true) + kNormEpsilon);
    return (wide * root).to(x.scalar_type()) * scale;
  }
  [[nodiscard]] at::Tensor attention(const at::Tensor& query_key_value, const TorchContext& context) const;
  // The node of what went from x to y.
  [[nodiscard]] TorchNode node(const at::Tensor& x, const at::Tensor& y) {
    return {
        .input = x, .output = y, .parameters = std::move(parameters_), .parameter_sums = std::move(sums_)};
  }

 private:
  at::Tensor leaf(const at::Tensor& parameter, const at::Tensor& sum) {
    if (!parameter.defined() || graph_ == TorchGraph::kNone) return parameter;
    parameters_.push_back(parameter.detach().requires_grad_());
    sums_.push_back(sum);
    return parameters_.back();
  }

  TorchGraph graph_;
  TorchWaiting* waiting_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> sums_;
};

// Turns each pair of columns (i, i + half) by an angle that grows with the position (Su et al., "RoFormer",
// 2021).
at::Tensor rotated(const at::Tensor& x, const TorchContext& context) {
  const std::vector<at::Tensor> halves = x.chunk(2, 3);
  const at::Tensor& cosines = context.cosines;
  const at::Tensor& sines = context.sines;
  // Heads of two columns would come out in another order, for which attention keeps all pairs of tokens.
  return at::cat({halves[0] * cosines - halves[1] * sines, halves[1] * cosines + halves[0] * sines}, 3)
      .contiguous();
}

at::Tensor LayerRun::attention(const at::Tensor& query_key_value, const TorchContext& context) const {
  const std::int64_t heads = context.shape.heads;
  const std::int64_t columns = context.shape.width / heads;
  const std::vector<at::Tensor> split =
      query_key_value.view({context.windows, context.context, 3, heads, columns}).unbind(2);
  at::Tensor query = split[0].transpose(1, 2);
  at::Tensor key = split[1].transpose(1, 2);
  const at::Tensor value = split[2].transpose(1, 2);
  if (context.shape.positions == LmPositions::kRotary) {
    query = rotated(query, context);
    key = rotated(key, context);
  }
  const at::Tensor mixed = at::scaled_dot_product_attention(query, key, value, /*attn_mask=*/{},
                                                            /*dropout_p=*/0, /*is_causal=*/true);
  return mixed.transpose(1, 2).reshape({context.windows * context.context, context.shape.width});
}

at::Tensor leaf_of(const at::Tensor& x, TorchGraph graph) {
  return graph == TorchGraph::kNone ? x : x.detach().requires_grad_();
}

}  // namespace

void TorchWaiting::add() {
  const at::NoGradGuard no_graph;
  for (const auto& [linear, input, gradient] : products_) {
    const at::Tensor& sum = linear->weight_sum;
    if (sum.scalar_type() == gradient.scalar_type()) {
      sum.addmm_(gradient.t(), input);
    } else {
      sum.add_(at::mm(gradient.t(), input));
    }
    if (linear->bias_sums.empty()) continue;
    const at::Tensor rows = gradient.sum(0, false, sum.scalar_type());
    for (const auto& [bias, from] : linear->bias_sums) bias.add_(rows.narrow(0, from, bias.size(0)));
  }
  for (const auto& [accumulator, gradient] : sums_) accumulator.add_(gradient);
  products_.clear();
  sums_.clear();
}

void TorchWaiting::count(TorchStorages& storages) const {
  for (const Product& product : products_) {
    storages.add(product.input);
    storages.add(product.gradient);
  }
  for (const Sum& sum : sums_) storages.add(sum.gradient);
}

TorchNode run_norm(const TorchNorm& norm, LmNorm kind, const at::Tensor& x, TorchGraph graph) {
  const at::AutoGradMode mode(graph == TorchGraph::kBuild);
  LayerRun run(graph, nullptr);
  const at::Tensor input = leaf_of(x, graph);
  return run.node(input, run.norm(input, norm, kind));
}

TorchNode run_layer(const TorchLayer& layer, const TorchContext& context, const at::Tensor& x,
                    TorchGraph graph, TorchWaiting* waiting) {
  const at::AutoGradMode mode(graph == TorchGraph::kBuild);
  LayerRun run(graph, waiting);
  const LmNorm kind = context.shape.norm;
  const at::Tensor input = leaf_of(x, graph);
  const at::Tensor normed = run.norm(input, layer.attention_norm, kind);
  const at::Tensor mixed = run.attention(run.linear(normed, layer.query_key_value), context);
  const at::Tensor middle = input + run.linear(mixed, layer.attention_out);
  const at::Tensor again = run.norm(middle, layer.mlp_norm, kind);
  at::Tensor hidden = run.linear(again, layer.in);
  hidden = context.shape.activation == LmActivation::kSwiGlu
               ? at::silu(run.linear(again, layer.gate)) * hidden
               : at::gelu(hidden, "tanh");
  return run.node(input, middle + run.linear(hidden, layer.out));
}

at::Tensor run_backward(TorchNode& node, const at::Tensor& gradient, TorchWaiting& waiting) {
  variable_list leaves = {node.input};
  leaves.insert(leaves.end(), node.parameters.begin(), node.parameters.end());
  const variable_list gradients = torch::autograd::grad({node.output}, leaves, {gradient});
  for (std::size_t i = 0; i < node.parameters.size(); ++i)
    waiting.sum(node.parameter_sums[i], gradients[i + 1]);
  node = {};
  return gradients[0];
}

}  // namespace gossamer::pipeline
