#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what PyTorch computes, for torch_steps_test.cc: tests/torch/record.py (it needs PyPI's torch)

Small models in double train for ten steps: losses, norms of the gradient, some weights at the end. Weights and tokens
follow a rule of integers, so that nothing but the results is recorded. A step has all windows of the text, in
microbatches: their order changes nothing but rounding.
"""

import json
import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import lm_torch_network as network  # noqa: E402  # pylint: disable=wrong-import-position

GOLDEN = ROOT / "tests/golden/torch_steps.json"
STEPS = 10
SMALL = {"vocabulary": 13, "context": 6, "width": 12, "heads": 2, "hidden": 20, "layers": 2, "applied": 1,
         "activation": "gelu", "norm": "layer", "positions": "learned", "biases": "no-key"}
USUAL = {"windows": 4, "microbatch": 4, "clip": 1.0,
         "schedule": {"shape": "cosine", "peak": 0.01, "warmup": 3, "floor": 0.1},
         "adamw": {"beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1}}
LLAMA = {"activation": "swiglu", "norm": "rms", "positions": "rotary", "biases": "none"}
CASES = {
    "as tiny": ({}, {}),
    "as gpt2-small": ({"biases": "all", "heads": 3}, {"clip": 0.5}),
    "as swarm-1b": ({"positions": "rotary", "biases": "none", "applied": 2}, {"microbatch": 3}),
    "gated, rms, rotary": (LLAMA, {"schedule": {"shape": "linear", "peak": 0.02, "warmup": 1, "floor": 0.0}}),
    "gated, layers applied twice": ({**LLAMA, "applied": 2, "biases": "no-key"}, {"clip": 0.0}),
    "rotary with all biases": ({"activation": "swiglu", "positions": "rotary", "biases": "all"},
                               {"adamw": {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-3, "weight_decay": 1.0}}),
    "rms with learned positions": ({"norm": "rms", "biases": "all", "layers": 3, "heads": 1},
                                   {"schedule": {"shape": "constant", "peak": 0.005, "warmup": 0, "floor": 0.1}}),
}


def mixed(number):
    """All bits of a 32-bit number changed, by a rule that every language can follow."""
    for shift, factor in ((16, 0x243F6A89), (13, 0x85A308D3)):
        number = ((number ^ (number >> shift)) * factor) & 0xFFFFFFFF
    return number ^ (number >> 16)


def name_number(name):
    number = 0
    for byte in name.encode("ascii"):
        number = (number * 31 + byte) & 0xFFFFFFFF
    return mixed(number)


def first_weights(name, tensor):
    """Matrices in [-1/2, 1/2); biases and shifts in [-1/8, 1/8); scales in [7/8, 9/8). All are exact."""
    begin = name_number(name)
    halves = [mixed((begin + i) & 0xFFFFFFFF) / 2**32 - 0.5 for i in range(tensor.numel())]
    numbers = torch.tensor(halves, dtype=torch.float64).view(tensor.shape)
    if tensor.dim() == 2:
        return numbers
    return numbers / 4 + (1.0 if name.endswith("scale") else 0.0)


def parts_of(shape, settings):
    windows, context = settings["windows"], shape["context"]
    text = torch.tensor([mixed(i) % shape["vocabulary"] for i in range(windows * context + 1)])
    tokens, targets = (text[at : at + windows * context].view(windows, context) for at in (0, 1))
    return list(zip(tokens.split(settings["microbatch"]), targets.split(settings["microbatch"])))


def recorded(name, shape, settings):
    settings["schedule"]["steps"] = STEPS
    model = network.LanguageModel(shape)
    with torch.no_grad():
        for tensor, parameter in model.named().items():
            parameter.copy_(first_weights(tensor, parameter))
    parts = parts_of(shape, settings)
    optimizer = model.optimizer({**settings["adamw"], "rate": 0.0})
    steps = []
    for step in range(STEPS):
        rate = network.rate_of(settings["schedule"], step)
        loss, norm = network.train_step(model, optimizer, parts, {"rate": rate, "clip": settings["clip"]})
        steps.append({"loss": loss, "norm": norm})
    # The first, a middle and the last number of each tensor. Where positions are learned, a key's bias has no gradient
    # but rounding, and its steps are those of rounding.
    weights = {}
    for tensor, parameter in model.named().items():
        if tensor.endswith(".key.bias") and shape["positions"] == "learned":
            continue
        numbers = parameter.detach().flatten()
        weights[tensor] = [numbers[at].item() for at in (0, len(numbers) // 2, len(numbers) - 1)]
    return {"name": name, "shape": shape, **settings, "steps": steps, "weights": weights}


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    cases = [recorded(name, {**SMALL, **shape}, json.loads(json.dumps({**USUAL, **settings})))
             for name, (shape, settings) in CASES.items()]
    text = json.dumps({"torch": torch.__version__.split("+")[0], "cases": cases}, indent=1)
    GOLDEN.write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
