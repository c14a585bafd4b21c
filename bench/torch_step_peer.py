# SPDX-License-Identifier: Apache-2.0
"""Times a training step of a classifier in PyTorch on made-up records, and prints one JSON line.

torch_step_peer.py '{"features":..,"labels":..,"hidden":..,"batch":..,"nnz":..,"labels_per_row":..,"label_zipf":..,
"feature_zipf":..,"kind":"f32|bf16|sampled","sampled":..,"steps":..,"warmup":..,"threads":..}'

The networks are those of torch_networks.py. f32 and bf16 score all outputs; sampled scores the batch's labels and
`sampled` others. Records are drawn as `gossamer bench sparse-step` draws them, before the clock starts. Times are
medians of the steps.
"""

import json
import sys

import numpy
import peer
import torch
from torch_networks import DenseSoftmax, SampledSoftmax

TRAINING_RECORDS = 490_449  # Amazon-670K's: they set how often a label occurs


class Zipf:
    """Ids 0..n-1; rank r is drawn with a density of (r + 1)^-skew, and frequent ids lie all over."""

    def __init__(self, n, skew, rng):
        self.n, self.power, self.ids = n, 1 - skew, rng.permutation(n)

    def draw_distinct(self, rng, rows, columns):
        drawn = numpy.empty((rows, columns), dtype=numpy.int64)
        for row in drawn:
            found = []
            while len(found) < columns:
                x = (rng.random(2 * columns) * (self.n**self.power - 1) + 1) ** (1 / self.power)
                found = list(dict.fromkeys([*found, *numpy.minimum(self.n - 1, x.astype(numpy.int64) - 1).tolist()]))
            row[:] = found[:columns]
        return self.ids[drawn]

    def share(self):
        """The fraction of the draws that give each id."""
        ranks = numpy.arange(1, self.n + 2, dtype=numpy.float64) ** self.power
        by_id = numpy.empty(self.n)
        by_id[self.ids] = numpy.diff(ranks) / (ranks[-1] - 1)
        return by_id


def made_up(shape, labels, features, rng):
    """A batch as torch_networks takes it. The features of a record have unit length together."""
    batch, nnz, per_row = shape["batch"], shape["nnz"], shape["labels_per_row"]
    return (torch.from_numpy(features.draw_distinct(rng, batch, nnz).ravel()), torch.arange(0, batch * nnz, nnz),
            torch.full((batch * nnz,), nnz**-0.5), torch.from_numpy(labels.draw_distinct(rng, batch, per_row).ravel()),
            torch.full((batch,), per_row))


def network(shape, labels):
    size = shape["features"], shape["labels"], shape["hidden"]
    if shape["kind"] != "sampled":
        return DenseSoftmax(*size, bf16=shape["kind"] == "bf16")
    count = numpy.clip(numpy.round(labels.share() * TRAINING_RECORDS * shape["labels_per_row"]), 1, TRAINING_RECORDS)
    expected = torch.from_numpy(count * (shape["batch"] / TRAINING_RECORDS)).float()
    return SampledSoftmax(*size, expected=expected, sampled=shape["sampled"])


def main():
    shape = json.loads(sys.argv[1])
    torch.set_num_threads(shape["threads"])
    torch.manual_seed(1)
    rng = numpy.random.default_rng(1)
    labels = Zipf(shape["labels"], shape["label_zipf"], rng)
    features = Zipf(shape["features"], shape["feature_zipf"], rng)
    net = network(shape, labels)
    batches = [made_up(shape, labels, features, rng) for _ in range(shape["warmup"] + shape["steps"])]
    for batch in batches[:shape["warmup"]]:  # the first ones pay for memory and code
        net.step(batch, 1e-3)
    cost = []
    for batch in batches[shape["warmup"]:]:
        clock = peer.Clock()
        net.step(batch, 1e-3)
        cost.append(clock.read())
    cpu, wall = (1e3 * float(numpy.median([step[i] for step in cost])) for i in (0, 1))
    print(json.dumps({"wall_ms_per_step": wall, "cpu_ms_per_step": cpu, "steps": len(cost),
                      "label_rows": numpy.mean([len(batch[3].unique()) for batch in batches])}))


if __name__ == "__main__":
    main()
