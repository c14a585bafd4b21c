# SPDX-License-Identifier: Apache-2.0
"""One training step of a dense softmax classifier in PyTorch, timed; prints one JSON line.

torch_step_peer.py '{"features":..,"labels":..,"hidden":..,"batch":..,"nnz":..,"labels_per_row":..,"dtype":"bf16|f32",
"steps":..,"threads":..}'

Embedding bag, ReLU, dense output layer, softmax against 1/labels_per_row on each label, fused Adam over all
parameters: what a user writes first. bf16 is autocast, as PyTorch's own recipes do it.
"""

import contextlib
import json
import resource
import sys
import time

import torch


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    shape = json.loads(sys.argv[1])
    torch.set_num_threads(shape["threads"])
    generator = torch.Generator().manual_seed(1)
    embedding = torch.nn.EmbeddingBag(shape["features"], shape["hidden"], mode="sum")
    output = torch.nn.Linear(shape["hidden"], shape["labels"])
    optimizer = torch.optim.Adam([*embedding.parameters(), *output.parameters()], lr=1e-3, fused=True)
    bf16 = shape["dtype"] == "bf16"

    def step():
        rows = torch.randint(0, shape["features"], (shape["batch"], shape["nnz"]), generator=generator)
        labels = torch.randint(0, shape["labels"], (shape["batch"], shape["labels_per_row"]), generator=generator)
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16) if bf16 else contextlib.nullcontext():
            scores = torch.log_softmax(output(torch.relu(embedding(rows))).float(), dim=1)
            loss = -scores.gather(1, labels).mean()
        loss.backward()
        optimizer.step()

    step()  # the first one pays for memory and code
    wall, cpu = [], []
    for _ in range(shape["steps"]):
        w, c = time.monotonic(), cpu_seconds()
        step()
        wall.append(1e3 * (time.monotonic() - w))
        cpu.append(1e3 * (cpu_seconds() - c))
    wall.sort()
    cpu.sort()
    print(json.dumps({"wall_ms_per_step": wall[len(wall) // 2], "cpu_ms_per_step": cpu[len(cpu) // 2]}))


if __name__ == "__main__":
    main()
