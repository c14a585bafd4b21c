# SPDX-License-Identifier: Apache-2.0
"""The network of preset xmc as a user of PyTorch writes it: embedding bag, ReLU, output layer, softmax, Adam.

DenseSoftmax scores all outputs in every step. SampledSoftmax scores the labels of the batch, and on request others that
are drawn evenly. Every one of them gets the logQ correction (Bengio and Senecal, IEEE TNN 2008; for in-batch negatives Yi
et al., RecSys 2019). Its tables have sparse gradients and SparseAdam, so that a step costs what the batch touches.

The target of a record is 1/n on each of its n labels. A batch is (features, feature begins, feature values or None,
labels, label counts), all tensors.
"""

import contextlib

import torch

EMBEDDING_DEVIATION, OUTPUT_DEVIATION = 0.05, 0.01


class Network:
    """The common part of both networks: tables, the hidden layer, the learning rate."""

    def __init__(self, features, outputs, hidden, *, dropout=0.0, sparse, bf16=False):
        self.embedding = torch.nn.EmbeddingBag(features, hidden, mode="sum", sparse=sparse)
        torch.nn.init.normal_(self.embedding.weight, std=EMBEDDING_DEVIATION)
        self.dropout, self.bf16 = dropout, bf16

    def autocast(self):
        return torch.autocast("cpu", dtype=torch.bfloat16) if self.bf16 else contextlib.nullcontext()

    def hidden(self, features, begins, values):
        return torch.relu(self.embedding(features, begins, per_sample_weights=values))

    def step(self, batch, rate):
        """One update with learning rate `rate`."""
        features, begins, values, labels, counts = batch
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        with self.autocast():
            hidden = torch.nn.functional.dropout(self.hidden(features, begins, values), self.dropout)
            loss = self.loss(hidden, labels, counts)
        loss.backward()
        self.optimizer.step()

    def best(self, features, begins, values, k):
        """The k best outputs of each record."""
        with torch.no_grad(), self.autocast():
            hidden = self.hidden(features, begins, values)
            return torch.topk(torch.nn.functional.linear(hidden, *self.output_tables()), k).indices


def softmax_loss(scores, columns, counts):
    """Cross entropy against 1/n on each of a record's n labels, which stand at `columns` of its row of `scores`."""
    rows = torch.repeat_interleave(torch.arange(len(counts)), counts)
    log_p = torch.log_softmax(scores, 1, dtype=torch.float32)
    return -(log_p[rows, columns] / counts[rows]).sum() / len(counts)


class DenseSoftmax(Network):
    """Scores all outputs in every step, with fused Adam over all parameters, and bf16 by autocast."""

    def __init__(self, features, outputs, hidden, **options):
        super().__init__(features, outputs, hidden, sparse=False, **options)
        self.output = torch.nn.Linear(hidden, outputs)
        torch.nn.init.normal_(self.output.weight, std=OUTPUT_DEVIATION)
        torch.nn.init.zeros_(self.output.bias)
        self.optimizer = torch.optim.Adam([*self.embedding.parameters(), *self.output.parameters()], fused=True)

    def output_tables(self):
        return self.output.weight, self.output.bias

    def loss(self, hidden, labels, counts):
        return softmax_loss(self.output(hidden), labels, counts)


class SampledSoftmax(Network):
    """Scores the batch's labels and `sampled` others. `expected`: for each output, how often it occurs in a batch."""

    def __init__(self, features, outputs, hidden, *, expected, sampled=0, **options):
        super().__init__(features, outputs, hidden, sparse=True, **options)
        self.outputs, self.sampled = outputs, sampled
        self.weight = torch.nn.Embedding(outputs, hidden, sparse=True)
        torch.nn.init.normal_(self.weight.weight, std=OUTPUT_DEVIATION)
        self.bias = torch.nn.Embedding(outputs, 1, sparse=True)
        torch.nn.init.zeros_(self.bias.weight)
        absent = torch.exp(-expected) * (1 - sampled / outputs)
        self.log_q = torch.log1p(-absent).clamp(min=-30)
        tables = [self.embedding, self.weight, self.bias]
        self.optimizer = torch.optim.SparseAdam([p for table in tables for p in table.parameters()])

    def output_tables(self):
        return self.weight.weight, self.bias.weight[:, 0]

    def loss(self, hidden, labels, counts):
        drawn = torch.randint(self.outputs, (self.sampled,)) if self.sampled else labels[:0]
        active, columns = torch.unique(torch.cat([labels, drawn]), return_inverse=True)
        shift = self.bias(active)[:, 0] - self.log_q[active]
        scores = torch.nn.functional.linear(hidden, self.weight(active)) + shift
        return softmax_loss(scores, columns[:len(labels)], counts)
