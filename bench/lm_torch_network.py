# SPDX-License-Identifier: Apache-2.0
"""A decoder-only Transformer of PyTorch's own parts, with the tensors that docs/protocols/model.md names.

It is written from that page and the head of src/engines/pipeline/stage/lm_shape.h, for comparisons. A shape is a
dictionary with the keys of "model" in a model.json.
"""

import contextlib
import math

import torch
from torch import nn
from torch.nn import functional

EPSILON = 1e-5
DEVIATION = 0.02


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return functional.rms_norm(x, self.weight.shape, self.weight, EPSILON)


def norm_of(shape):
    if shape["norm"] == "rms":
        return RmsNorm(shape["width"])
    return nn.LayerNorm(shape["width"], eps=EPSILON, bias=shape["biases"] != "none")


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        width = shape["width"]
        self.heads, self.rotary, self.biases = shape["heads"], shape["positions"] == "rotary", shape["biases"]
        self.query_key_value = nn.Linear(width, 3 * width, bias=self.biases == "all")
        if self.biases == "no-key":
            self.query_bias, self.value_bias = (nn.Parameter(torch.zeros(width)) for _ in range(2))
            self.register_buffer("key_bias", torch.zeros(width))
        self.out = nn.Linear(width, width, bias=self.biases != "none")

    def turned(self, x):
        """Rotary positions: the pair of columns (i, i + half) is turned by t / 10000^(i / half) at position t."""
        length, half = x.shape[2], x.shape[3] // 2
        rates = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        angles = torch.outer(torch.arange(length, dtype=torch.float64), rates)
        cosines, sines = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        first, second = x[..., :half], x[..., half:]
        return torch.cat((first * cosines - second * sines, first * sines + second * cosines), dim=-1)

    def forward(self, x):
        windows, length, width = x.shape
        bias = self.query_key_value.bias
        if self.biases == "no-key":
            bias = torch.cat((self.query_bias, self.key_bias, self.value_bias))
        parts = functional.linear(x, self.query_key_value.weight, bias).split(width, dim=2)
        query, key, value = (part.view(windows, length, self.heads, -1).transpose(1, 2) for part in parts)
        if self.rotary:
            query, key = self.turned(query), self.turned(key)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(windows, length, width))


class Mlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        width, hidden, bias = shape["width"], shape["hidden"], shape["biases"] != "none"
        self.gate = nn.Linear(width, hidden, bias=False) if shape["activation"] == "swiglu" else None
        self.inner = nn.Linear(width, hidden, bias=bias)
        self.out = nn.Linear(hidden, width, bias=bias)

    def forward(self, x):
        if self.gate is None:
            return self.out(functional.gelu(self.inner(x), approximate="tanh"))
        return self.out(functional.silu(self.gate(x)) * self.inner(x))


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.attention_norm, self.attention = norm_of(shape), Attention(shape)
        self.mlp_norm, self.mlp = norm_of(shape), Mlp(shape)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class LanguageModel(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape["vocabulary"], shape["width"])
        self.positions = nn.Embedding(shape["context"], shape["width"]) if shape["positions"] == "learned" else None
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape["layers"]))
        self.norm = norm_of(shape)
        self.out = nn.Linear(shape["width"], shape["vocabulary"], bias=False)

    def forward(self, tokens, recompute=None):
        """Scores of the next tokens. `recompute(layer, x)` stands for the call of a layer."""
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions.weight[: tokens.shape[1]]
        for layer in self.layers:
            for _ in range(self.shape["applied"]):
                x = recompute(layer, x) if recompute else layer(x)
        return self.out(self.norm(x))

    def loss_sum(self, tokens, targets, recompute=None):
        scores = self(tokens, recompute)
        return functional.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="sum")

    def draw(self, seed):
        """First weights of the same distributions as ours, by PyTorch's own numbers."""
        torch.manual_seed(seed)
        added = DEVIATION / math.sqrt(2 * self.shape["layers"] * self.shape["applied"])
        with torch.no_grad():
            for name, tensor in self.named().items():
                if tensor.dim() == 2:
                    tensor.normal_(0, added if name.endswith(("attention.out", "mlp.out")) else DEVIATION)
                else:
                    tensor.fill_(1.0 if name.endswith("scale") else 0.0)

    def named(self):
        """Our name of each tensor, and the parameter or a part of it that has the numbers."""
        named = {"embedding.tokens": self.tokens.weight}
        if self.positions is not None:
            named["embedding.positions"] = self.positions.weight
        for number, layer in enumerate(self.layers):
            named |= {f"layers.{number}.{name}": tensor for name, tensor in named_of_layer(layer).items()}
        return {**named, **named_of_norm("head.norm.", self.norm), "head.out": self.out.weight}

    def optimizer(self, options, fused=False):
        """AdamW: matrices decay. `options`: rate, beta1, beta2, epsilon, weight_decay."""
        parameters = list(self.parameters())
        groups = [{"params": [one for one in parameters if one.dim() >= 2], "weight_decay": options["weight_decay"]},
                  {"params": [one for one in parameters if one.dim() < 2], "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=options["rate"], betas=(options["beta1"], options["beta2"]),
                                 eps=options["epsilon"], fused=fused)


def named_of_norm(prefix, norm):
    named = {prefix + "scale": norm.weight}
    if getattr(norm, "bias", None) is not None:
        named[prefix + "shift"] = norm.bias
    return named


def named_of_linear(name, linear):
    return {name: linear.weight, **({} if linear.bias is None else {name + ".bias": linear.bias})}


def named_of_layer(layer):
    attention = layer.attention
    named = {**named_of_norm("attention.norm.", layer.attention_norm),
             "attention.query_key_value": attention.query_key_value.weight}
    if attention.biases == "all":
        parts = attention.query_key_value.bias.chunk(3)
        named |= {f"attention.{part}.bias": bias for part, bias in zip(("query", "key", "value"), parts)}
    if attention.biases == "no-key":
        named |= {"attention.query.bias": attention.query_bias, "attention.value.bias": attention.value_bias}
    named |= named_of_linear("attention.out", attention.out) | named_of_norm("mlp.norm.", layer.mlp_norm)
    if layer.mlp.gate is not None:
        named["mlp.gate"] = layer.mlp.gate.weight
    return named | named_of_linear("mlp.in", layer.mlp.inner) | named_of_linear("mlp.out", layer.mlp.out)


def rate_of(schedule, step):
    """The learning rate of a step, counted from 0. `schedule`: shape, peak, warmup, steps, floor."""
    peak, warmup, floor = schedule["peak"], schedule["warmup"], schedule["floor"]
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    progress = min(1.0, (step - warmup) / max(1, schedule["steps"] - 1 - warmup))
    falling = {"constant": 1.0, "linear": 1 - progress, "cosine": (1 + math.cos(math.pi * progress)) / 2}
    return peak if schedule["shape"] == "constant" else peak * (floor + (1 - floor) * falling[schedule["shape"]])


def train_step(model, optimizer, parts, settings):
    """One step over microbatches, (tokens, targets) each. `settings`: rate, clip (0: any), and "forward", what the
    forward pass runs in.

    Returns the mean loss of a token and the norm of the mean gradient, before it is clipped.
    """
    count = sum(targets.numel() for _, targets in parts)
    optimizer.zero_grad(set_to_none=True)
    total = 0.0
    for tokens, targets in parts:
        with settings.get("forward", contextlib.nullcontext)():
            loss = model.loss_sum(tokens, targets)
        (loss / count).backward()
        total += loss.item()
    norm = nn.utils.clip_grad_norm_(model.parameters(), settings["clip"] or math.inf)
    for group in optimizer.param_groups:
        group["lr"] = settings["rate"]
    optimizer.step()
    return total / count, norm.item()
