# SPDX-License-Identifier: Apache-2.0
"""What every classifier peer shares: its arguments, its clock, its report.

A peer program is called with one JSON object:

    "train", "test"    tf-idf weighted XMLC text
    "out"              an empty folder
    "kind"             which of the program's ways
    "seed", "threads"  numbers

It reads, trains, saves its model under out/model, ranks the test records into out/ranking.npy (records x 5 labels,
-1: none) and prints one JSON line.
"""

import json
import pathlib
import resource
import sys
import time

import numpy
import records

TOP = 5


class Clock:
    """CPU of this process and its children, and wall time, since it was made."""

    def __init__(self):
        self.cpu, self.wall = cpu_seconds(), time.monotonic()

    def read(self):
        return cpu_seconds() - self.cpu, time.monotonic() - self.wall


def cpu_seconds():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def bytes_under(folder):
    return sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())


def main(train_and_save, rank, load=lambda model: None):
    """train_and_save(arguments, folder) -> model; rank(model, test Records, arguments) -> rows of up to 5 labels.

    Training time includes reading and saving, as a user waits for both. Ranking time has model and test records in
    memory: `load` brings the model there where training leaves it on disk alone.
    """
    arguments = json.loads(sys.argv[1])
    out = pathlib.Path(arguments["out"])
    (out / "model").mkdir(parents=True)
    clock = Clock()
    model = train_and_save(arguments, out / "model")
    train_cpu, train_wall = clock.read()
    load(model)
    test = records.read(arguments["test"])
    clock = Clock()
    rows = rank(model, test, arguments)
    predict_cpu, predict_wall = clock.read()
    ranking = numpy.full((len(test), TOP), -1, dtype=numpy.int64)
    for row, labels in enumerate(rows):
        ranking[row, :min(TOP, len(labels))] = labels[:TOP]
    numpy.save(out / "ranking.npy", ranking)
    print(json.dumps({"train_cpu_s": train_cpu, "train_wall_s": train_wall, "predict_cpu_s": predict_cpu,
                      "predict_wall_s": predict_wall, "model_bytes": bytes_under(out / "model")}))
