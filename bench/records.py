# SPDX-License-Identifier: Apache-2.0
"""XMLC text: unpacked, tf-idf weighted, and as arrays. Standard library and numpy."""

import dataclasses
import math
import pathlib
import subprocess

import numpy


@dataclasses.dataclass
class Records:
    """Rows of two sparse matrices: features with values, and labels."""

    features: int
    labels: int
    begin: numpy.ndarray  # features of row i: index[begin[i]:begin[i + 1]], with value
    index: numpy.ndarray
    value: numpy.ndarray
    label_begin: numpy.ndarray
    label: numpy.ndarray

    def __len__(self):
        return len(self.begin) - 1

    def truth(self, row):
        return self.label[self.label_begin[row]:self.label_begin[row + 1]]


def unpack(source, target):
    """Path of the unpacked copy of `source`, made when it is not there."""
    if not target.exists():
        subprocess.run(["zstd", "-dqf", str(source), "-o", str(target)], check=True)
    return target


def offsets(counts):
    return numpy.concatenate([[0], numpy.cumsum(counts, dtype=numpy.int64)])


def numbers(texts, separator):
    """All numbers of `texts`, which are joined by `separator`."""
    joined = separator.join(text for text in texts if text)
    return numpy.fromstring(joined, sep=separator) if joined else numpy.zeros(0)


def read(path):
    """The records of a file of XMLC text, whose first line holds points, features and labels."""
    with open(path, encoding="ascii") as lines:
        _, features, labels = map(int, next(lines).split())
        parts = [line.rstrip("\n").partition(" ") for line in lines]
    pairs = numbers([rest.replace(":", " ") for _, _, rest in parts], " ")
    return Records(features, labels, offsets([rest.count(":") for _, _, rest in parts]),
                   pairs[0::2].astype(numpy.int64), pairs[1::2].astype(numpy.float32),
                   offsets([head.count(",") + 1 if head else 0 for head, _, _ in parts]),
                   numbers([head for head, _, _ in parts], ",").astype(numpy.int64))


def parse(line):
    labels, _, rest = line.rstrip("\n").partition(" ")
    return labels, [(int(i), float(v)) for i, v in (pair.split(":") for pair in rest.split())]


def weighted(train, test, out):
    """tf-idf copies of both files, for tools that take values as they are: (1 + ln tf) ln(N / df), rows of length 1."""
    paths = pathlib.Path(out) / "train.tfidf.txt", pathlib.Path(out) / "test.tfidf.txt"
    if all(path.exists() for path in paths):
        return paths
    with open(train, encoding="ascii") as lines:
        header = next(lines)
        records = [parse(line) for line in lines]
    document_frequency = {}
    for _, features in records:
        for index, _ in features:
            document_frequency[index] = document_frequency.get(index, 0) + 1
    idf = {index: math.log(len(records) / n) for index, n in document_frequency.items()}
    with open(test, encoding="ascii") as lines:
        test_header = next(lines)
        test_records = [parse(line) for line in lines]
    for path, head, rows in ((paths[0], header, records), (paths[1], test_header, test_records)):
        with open(path, "w", encoding="ascii") as file:
            file.write(head)
            for labels, features in rows:
                values = [(i, (1 + math.log(v)) * idf.get(i, 0.0)) for i, v in features]
                norm = math.sqrt(sum(v * v for _, v in values)) or 1.0
                file.write(labels + " " + " ".join(f"{i}:{v / norm:.5g}" for i, v in values if v > 0) + "\n")
    return paths
