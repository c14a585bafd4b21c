# SPDX-License-Identifier: Apache-2.0
"""Trains a language model in PyTorch over the windows of a run of ours, and prints one JSON line.

lm_torch_peer.py '{"train":..,"test":..,"shape":{..},"settings":{..},"threads":..,"weights":"ours|own","steps":..}'

"train" and "test" (may be null) are token files. The settings are those of lm_run.settings_of(). "weights" are drawn by
PyTorch (own), or are those that our run begins with, from its seed (ours). "steps" end the run before its schedule does.
Windows are read before the clock starts. bf16 is autocast, as PyTorch's page on it says; parameters are then f32.
"""

import json
import sys
import time

import lm_run
import lm_torch_network as network
import numpy
import torch

TYPES = {"f32": torch.float32, "bf16": torch.float32, "f64": torch.float64}


def microbatches(tokens, shape, settings, steps):
    """The parts of each step, (tokens, targets) each."""
    context, batch = shape["context"], settings["batch"]
    plan = lm_run.Plan(settings["seed"], (len(tokens) - 1) // context)
    for step in range(steps):
        begins = [plan.window(sample) * context for sample in range(step * batch, (step + 1) * batch)]
        rows = torch.from_numpy(numpy.stack([tokens[at : at + context + 1] for at in begins]).astype(numpy.int64))
        yield [(part[:, :-1].contiguous(), part[:, 1:].contiguous()) for part in rows.split(settings["microbatch"])]


def held_out(model, tokens, settings):
    """The mean loss of all tokens but the first, in windows as long as those of training."""
    context, total = model.shape["context"], 0.0
    targets = len(tokens) - 1
    text = torch.from_numpy(tokens.astype(numpy.int64))
    whole = targets // context * context
    rows = [(text[:whole].view(-1, context), text[1 : whole + 1].view(-1, context)),
            (text[whole:-1].view(1, -1), text[whole + 1 :].view(1, -1))]
    with torch.no_grad(), precision(settings):
        for inputs, behind in rows:
            for some in range(0, len(inputs), settings["microbatch"]):
                part = slice(some, some + settings["microbatch"])
                if inputs[part].numel():
                    total += model.loss_sum(inputs[part], behind[part]).item()
    return total / targets


def precision(settings):
    return torch.autocast("cpu", torch.bfloat16, enabled=settings["precision"] == "bf16")


def model_of(arguments):
    shape, settings = arguments["shape"], arguments["settings"]
    model = network.LanguageModel(shape).to(TYPES[settings["precision"]])
    if arguments["weights"] == "own":
        model.draw(settings["seed"])
        return model
    named = model.named()
    sizes = {name: tuple(tensor.shape) for name, tensor in named.items()}
    with torch.no_grad():
        for name, numbers in lm_run.first_weights(settings["seed"], sizes, shape):
            named[name].copy_(torch.from_numpy(numbers))
    return model


def main():
    arguments = json.loads(sys.argv[1])
    settings, steps = arguments["settings"], arguments["steps"]
    torch.set_num_threads(arguments["threads"])
    model = model_of(arguments)
    optimizer = model.optimizer({**settings["adamw"], "rate": 0.0}, fused=True)
    parts = list(microbatches(lm_run.tokens_of(arguments["train"]), arguments["shape"], settings, steps))
    losses, seconds = [], []
    for step in range(steps):
        begin = time.monotonic()
        rate = network.rate_of(settings["schedule"], step)
        loss, _ = network.train_step(model, optimizer, parts[step],
                                     {"rate": rate, "clip": settings["clip"], "forward": lambda: precision(settings)})
        seconds.append(time.monotonic() - begin)
        losses.append(loss)
    result = {"torch": torch.__version__, "losses": losses, "seconds": seconds}
    if arguments["test"]:
        result["test_loss"] = held_out(model, lm_run.tokens_of(arguments["test"]), settings)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
