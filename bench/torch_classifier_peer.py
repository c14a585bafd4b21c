# SPDX-License-Identifier: Apache-2.0
"""A classifier in PyTorch. Kinds: f32 and bf16 (dense softmax), sampled (in-batch softmax, SparseAdam). See peer.py.

It has the width, batch and most dropout of preset xmc, and ten epochs. The learning rate falls linearly to 0 after a
short rise. "rate" of the arguments sets another peak. Peaks from 3e-3 to 2e-2 were tried on held-out training records:

- bibtex and delicious (170 and 450 steps): 1e-2 or 2e-2 did best; 5e-3 and less cost several points of P@1.
- citeulike-t (800 steps): 5e-3 did best; 1e-2 costs the dense softmax two points and the sampled one a point.
"""

import peer
import records
import torch
from torch_networks import DenseSoftmax, SampledSoftmax

HIDDEN, BATCH, EPOCHS, DROPOUT, WARMUP = 256, 256, 10, 0.4, 50
FEW_STEPS, RATE_OF_FEW, RATE = 700, 1e-2, 5e-3
RANK_BATCH = 512


def gather(begin, rows):
    """Positions of the entries of `rows`, row after row, and how many each has."""
    counts = begin[rows + 1] - begin[rows]
    starts = torch.cumsum(counts, 0) - counts
    return torch.repeat_interleave(begin[rows] - starts, counts) + torch.arange(int(counts.sum())), counts, starts


class Data:
    """Records as tensors."""

    def __init__(self, source):
        self.source = source
        self.begin, self.index, self.value, self.label_begin, self.label = map(torch.from_numpy, (
            source.begin, source.index, source.value, source.label_begin, source.label))

    def features(self, rows):
        at, _, starts = gather(self.begin, rows)
        return self.index[at], starts, self.value[at]

    def batch(self, rows):
        at, counts, _ = gather(self.label_begin, rows)
        return *self.features(rows), self.label[at], counts


def network(kind, data):
    shape = data.source.features, data.source.labels, HIDDEN
    if kind == "sampled":
        count = torch.bincount(data.label, minlength=data.source.labels)
        return SampledSoftmax(*shape, dropout=DROPOUT, expected=count * (BATCH / len(data.source)))
    return DenseSoftmax(*shape, dropout=DROPOUT, bf16=kind == "bf16")


def warm():
    """Runs a step before the clock starts. PyTorch loads half of itself in its first step, which is no training."""
    ids = torch.zeros(1, dtype=torch.int64)
    batch = ids, ids, torch.ones(1), ids, ids + 1
    for net in DenseSoftmax(2, 2, 16), SampledSoftmax(2, 2, 16, expected=torch.ones(2)):
        net.step(batch, 1e-3)


def train(arguments, folder):
    torch.set_num_threads(arguments["threads"])
    torch.manual_seed(arguments["seed"])
    data = Data(records.read(arguments["train"]))
    labelled = torch.nonzero(data.label_begin[1:] > data.label_begin[:-1])[:, 0]
    net = network(arguments["kind"], data)
    steps = EPOCHS * -(-len(labelled) // BATCH)
    peak = arguments.get("rate", RATE_OF_FEW if steps < FEW_STEPS else RATE)
    step = 0
    for _ in range(EPOCHS):
        for rows in labelled[torch.randperm(len(labelled))].split(BATCH):
            net.step(data.batch(rows), peak * min(1.0, (step + 1) / WARMUP) * (1 - step / steps))
            step += 1
    torch.save([net.embedding.weight, *net.output_tables()], folder / "weights.pt")
    return net


def rank(net, test, arguments):
    data = Data(test)
    parts = torch.arange(len(test)).split(RANK_BATCH)
    return torch.cat([net.best(*data.features(rows), peer.TOP) for rows in parts]).tolist()


if __name__ == "__main__":
    warm()
    peer.main(train, rank)
