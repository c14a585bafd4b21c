# SPDX-License-Identifier: Apache-2.0
"""The text, the windows and the first weights of a run of `gossamer train lm`, without a line of its code.

Written again from docs/protocols/token-file.md, src/learn/tokens/token_windows.h, src/learn/data/sampling_plan.h,
src/base/rng.h, src/exact/normal_numbers.h and src/engines/pipeline/stage/lm_shape.h.
"""

import math
import pathlib
import struct
import tomllib

import numpy

import lm_torch_network as network

SAMPLING_PLAN, STAGE_INIT = 1, 18  # purposes of streams
WORD = 2**64 - 1


def finalised(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
    return x ^ x >> 31


def keyed(x):
    return finalised(x + 0x9E3779B97F4A7C15 & WORD)


def stream(seed, purpose, a, b, count):
    """The first `count` 32-bit numbers of a stream: Philox4x32-10 of the block's number and the stream's name."""
    key = keyed(keyed(seed) ^ purpose << 32 ^ a >> 32)
    keys = numpy.array([key & 0xFFFFFFFF, key >> 32], dtype=numpy.uint64)
    low = numpy.uint64(0xFFFFFFFF)
    numbers = numpy.arange((count + 3) // 4, dtype=numpy.uint64)
    c = [numbers & low, numbers >> numpy.uint64(32), numpy.full_like(numbers, b), numpy.full_like(numbers, a & 0xFFFFFFFF)]
    for _ in range(10):
        first, second = numpy.uint64(0xD2511F53) * c[0], numpy.uint64(0xCD9E8D57) * c[2]
        half = numpy.uint64(32)
        c = [second >> half ^ c[1] ^ keys[0], second & low, first >> half ^ c[3] ^ keys[1], first & low]
        keys = keys + numpy.array([0x9E3779B9, 0xBB67AE85], dtype=numpy.uint64) & low
    return numpy.stack(c, axis=1).ravel()[:count]


class Plan:
    """Which window a sample is: a keyed permutation for each pass, a Feistel network with cycle walking."""

    def __init__(self, seed, windows):
        self.seed, self.windows = seed, windows
        self.left = math.ceil(math.sqrt(windows))
        self.right = -(-windows // self.left)
        self.keys = {}

    def keys_of(self, epoch):
        if epoch not in self.keys:
            words = [int(word) for word in stream(self.seed, SAMPLING_PLAN, epoch, 0, 16)]
            self.keys[epoch] = [words[i] << 32 | words[i + 1] for i in range(0, 16, 2)]
        return self.keys[epoch]

    def window(self, sample):
        keys, x = self.keys_of(sample // self.windows), sample % self.windows
        while True:
            left, right = x % self.left, x // self.left
            for i in range(0, 8, 2):
                left = (left + scaled(finalised(right ^ keys[i]), self.left)) % self.left
                right = (right + scaled(finalised(left ^ keys[i + 1]), self.right)) % self.right
            x = right * self.left + left
            if x < self.windows:
                return x


def scaled(word, bound):
    return (word >> 32) * bound >> 32


def tokens_of(path):
    """All tokens of a token file."""
    data = numpy.memmap(path, mode="r")
    magic, version, width = struct.unpack("<8sII", bytes(data[:16]))
    if (magic, version) != (b"GSMRTOKN", 1):
        raise ValueError(f"{path} is no token file of version 1")
    (count,) = struct.unpack("<Q", bytes(data[-64:-56]))
    return data[16 : 16 + count * width].view(numpy.uint16 if width == 2 else numpy.uint32)


def first_weights(seed, names, shape):
    """(name, numbers in double) of each tensor, in our order. `names` has their shapes."""
    added = network.DEVIATION / math.sqrt(2 * shape["layers"] * shape["applied"])
    seen = {}
    for name, size in names.items():
        part, number = part_of(name, shape["layers"])
        number = number + seen.setdefault(part, 0)
        seen[part] += 1
        count = math.prod(size)
        if len(size) < 2:
            yield name, numpy.full(size, 1.0 if name.endswith("scale") else 0.0)
            continue
        uniform = (stream(seed, STAGE_INIT, part[1], number, count + count % 2).astype(numpy.float64) + 1) / 2**32
        radius = (added if name.endswith(("attention.out", "mlp.out")) else network.DEVIATION) * numpy.sqrt(
            -2 * numpy.log(uniform[::2]))
        angle = 2 * math.pi * uniform[1::2]
        normal = numpy.stack((radius * numpy.cos(angle), radius * numpy.sin(angle)), axis=1)
        yield name, normal.ravel()[:count].reshape(size)


def part_of(name, layers):
    """The part of the model that numbers its tensors by itself, as (word, layer), and the number of its first one."""
    word, rest = name.split(".", 1)
    if word == "layers":
        return (word, int(rest.split(".", 1)[0])), 0
    return (word, layers), 8 if word == "head" else 0


def settings_of(directory):
    """The settings of a run: those of its run.toml, under the names that the peer takes."""
    keys = tomllib.loads((pathlib.Path(directory) / "run.toml").read_text(encoding="utf-8"))
    train, optimizer = keys["train"], keys["optimizer"]
    return {"seed": keys["seed"], "batch": train["batch"], "microbatch": train["microbatch"], "clip": train["clip"],
            "precision": train["precision"], "adamw": optimizer,
            "schedule": {"shape": train["schedule"], "peak": train["lr"], "warmup": train["warmup_steps"],
                         "steps": train["steps"], "floor": train["lr_floor"]}}
