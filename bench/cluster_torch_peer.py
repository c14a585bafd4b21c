# SPDX-License-Identifier: Apache-2.0
"""Trains a classifier on several nodes with PyTorch over gloo, for cluster.py. Writes a line a step to OUT/RANK.steps.

cluster_torch_peer.py '{"data": FOLDER, "out": FOLDER, "kind": "f32|bf16|sparse", "hidden":.., "batch":.., "steps":..,
"rate":.., "world":.., "rank":.., "shares":.., "address":.., "test": FOLDER or null, "weights": FILE or nothing}'

The networks are those of torch_networks.py. Each of `world` nodes has batch/world samples of a step.
f32     all outputs, DistributedDataParallel
bf16    the same, gradients summed in bf16 by DDP's compress hook; autocast to bf16 where the CPU multiplies it (PyTorch
        is six times slower with it where not)
sparse  in-batch softmax with sparse gradients and SparseAdam. A node's negatives are the labels of its own samples:
        least to compute and to send. Its gradient rows are summed, and all nodes get all of them with two all-gathers
        of gloo, one of counts and one of everything else. (DDP itself does it with three for each of three tables.)

A process alone (world 1) can train as `shares` nodes would. With "test" it prints P@1 on that folder after the last step.
"""

import json
import os
import pathlib
import sys

import numpy
import records
import torch
import torch.distributed
from torch_classifier_peer import WARMUP, Data
from torch_networks import DenseSoftmax, SampledSoftmax
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

PORT = 7500
RANK_BATCH = 512


def load(folder):
    """The records that cluster_runs.save_arrays() has put there."""
    arrays = {path.stem: numpy.load(path) for path in pathlib.Path(folder).glob("*.npy")}
    return records.Records(*map(int, arrays.pop("shape")), **arrays)


class Dense:
    """Trains all outputs. DDP sums the gradients."""

    def __init__(self, options, data):
        bf16 = options["kind"] == "bf16"
        self.net = DenseSoftmax(data.source.features, data.source.labels, options["hidden"], bf16=bf16 and multiplies_bf16())
        self.model = Module(self.net)
        if options["world"] > 1:
            self.model = torch.nn.parallel.DistributedDataParallel(self.model, gradient_as_bucket_view=True)
            if bf16:
                self.model.register_comm_hook(None, compressed)

    def step(self, shares, rate):
        batch, = shares
        for group in self.net.optimizer.param_groups:
            group["lr"] = rate
        self.net.optimizer.zero_grad()
        self.model(*batch).backward()
        self.net.optimizer.step()


def multiplies_bf16():
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    return "avx512_bf16" in flags or "amx_bf16" in flags


class Module(torch.nn.Module):
    """The loss of a network, as DDP wants it."""

    def __init__(self, net):
        super().__init__()
        self.net, self.embedding, self.output = net, net.embedding, net.output

    def forward(self, features, begins, values, labels, counts):
        with self.net.autocast():
            return self.net.loss(self.net.hidden(features, begins, values), labels, counts)


def compressed(state, bucket: torch.distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """DDP's hook under another name. DDP refuses its own hook with gloo, but gloo can sum bf16."""
    return default_hooks.bf16_compress_hook(state, bucket)


class Sparse:
    """Trains the rows that a batch touches. Every node gets the gradients of all nodes."""

    def __init__(self, options, data):
        self.world = options["world"]
        # Labels are expected among a node's own samples.
        own = options["batch"] / options["shares"]
        count = torch.bincount(data.label, minlength=data.source.labels)
        self.net = SampledSoftmax(data.source.features, data.source.labels, options["hidden"],
                                  expected=count * (own / len(data.source)))
        self.tables = [self.net.embedding.weight, self.net.weight.weight, self.net.bias.weight]

    def step(self, shares, rate):
        for group in self.net.optimizer.param_groups:
            group["lr"] = rate
        self.net.optimizer.zero_grad()
        for features, begins, values, labels, counts in shares:
            self.net.loss(self.net.hidden(features, begins, values), labels, counts).backward()
        # Label and bias rows have the same numbers, so biases travel as one more column.
        embedding, weight, bias = (table.grad.coalesce() for table in self.tables)
        own = [(embedding.indices()[0], embedding.values()),
               (weight.indices()[0], torch.cat([weight.values(), bias.values()], 1))]
        (features, embedded), (labels, scored) = own if self.world == 1 else exchange(own, self.world)
        nodes = self.world * len(shares)
        for table, rows, values in zip(self.tables, (features, labels, labels), (embedded, scored[:, :-1], scored[:, -1:])):
            table.grad = torch.sparse_coo_tensor(rows[None], values / nodes, table.shape, check_invariants=False)
        self.net.optimizer.step()


def exchange(parts, world):
    """The rows and values of all nodes, one after the other, for each of `parts`' tables."""
    counts = torch.tensor([len(rows) for rows, _ in parts])
    all_counts = [torch.empty_like(counts) for _ in range(world)]
    torch.distributed.all_gather(all_counts, counts)
    flat = torch.cat([piece for rows, values in parts for piece in (rows.to(torch.int32).view(torch.float32), values.ravel())])
    widths = [1 + values.shape[1] for _, values in parts]
    sizes = [sum(int(count) * width for count, width in zip(one, widths)) for one in all_counts]
    given = torch.nn.functional.pad(flat, (0, max(sizes) - len(flat)))
    got = [torch.empty_like(given) for _ in range(world)]
    torch.distributed.all_gather(got, given)
    found = [([], []) for _ in parts]
    for one, counted in zip(got, all_counts):
        begin = 0
        for (rows, values), count, width in zip(found, counted.tolist(), widths):
            rows.append(one[begin:begin + count].view(torch.int32).long())
            values.append(one[begin + count:begin + count * width].view(count, width - 1))
            begin += count * width
    return [(torch.cat(rows), torch.cat(values)) for rows, values in found]


def batches(data, options):
    """The batches of this node for each step: one, or as many as the nodes that it stands for."""
    batch, size = options["batch"], options["batch"] // options["shares"]
    own = range(options["rank"], options["rank"] + 1) if options["world"] > 1 else range(options["shares"])
    for epoch in range(options["steps"]):
        order = torch.from_numpy(numpy.random.default_rng(epoch).permutation(len(data.source)))
        for begin in range(0, len(order) - batch + 1, batch):
            yield [data.batch(order[begin + node * size:begin + (node + 1) * size]) for node in own]


def precision(net, folder):
    """P@1 in percent on the records in a folder."""
    test = Data(load(folder))
    hits = 0
    for rows in torch.arange(len(test.source)).split(RANK_BATCH):
        best = net.best(*test.features(rows), 1)[:, 0].tolist()
        hits += sum(label in test.source.truth(row) for row, label in zip(rows.tolist(), best))
    return 100 * hits / len(test.source)


def main():
    options = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if options["world"] > 1:
        torch.distributed.init_process_group("gloo", init_method=f"tcp://{options['address']}:{PORT}",
                                             rank=options["rank"], world_size=options["world"])
    data = Data(load(options["data"]))
    trainer = (Sparse if options["kind"] == "sparse" else Dense)(options, data)
    with open(pathlib.Path(options["out"]) / f"{options['rank']}.steps", "w", encoding="ascii", buffering=1) as out:
        for step, shares in zip(range(options["steps"]), batches(data, options)):
            rate = options["rate"] * min(1.0, (step + 1) / WARMUP) * (1 - step / options["steps"])
            trainer.step(shares, rate)
            print(0, step, options["rank"], options["world"], 0, file=out)
    if "weights" in options:
        torch.save([trainer.net.embedding.weight.detach(), *(table.detach() for table in trainer.net.output_tables())],
                   options["weights"])
    if options["test"]:
        print(json.dumps({"P@1": precision(trainer.net, options["test"])}))


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "eth0")
    main()
