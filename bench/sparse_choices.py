# SPDX-License-Identifier: Apache-2.0
"""What a setting is worth, measured on held-out training records: P@1/3/5 of the fusion and of the net alone.

sparse_choices.py [--data DIR] [--set NAME] [--seeds N] [--threads N] [--nodes N] [SETTINGS ...]
SETTINGS is one row of the table: KEY=VALUE pairs separated by commas; the defaults are always the first row.
Every eighth training record is held out; test records are never looked at.
"""

import argparse
import math
import os
import pathlib
import shutil
import sys

import measure
from records import unpack

METRICS = ("P@1", "P@3", "P@5")


def split(train, out):
    """Writes every eighth record to one file, the others to another; returns (training, validation)."""
    paths = out / "choices-train.txt", out / "choices-validation.txt"
    with open(train, encoding="ascii") as lines:
        _, features, labels = next(lines).split()
        records = list(lines)
    parts = [r for i, r in enumerate(records) if i % 8], records[::8]
    for path, part in zip(paths, parts):
        path.write_text(f"{len(part)} {features} {labels}\n" + "".join(part), encoding="ascii")
    return paths


def run(paths, settings, seed, machine, out):
    """Metrics of one run, fused and net alone."""
    directory = out / "choices-run"
    shutil.rmtree(directory, ignore_errors=True)
    threads = ["--threads", str(machine.threads)]
    nodes = ["--nodes", str(machine.nodes)] if machine.nodes else []
    measure.run([measure.binary(), "train", "xmc", f"data.train={paths[0]}", f"seed={seed}", *settings, *threads, *nodes,
                 "--out", str(directory), "--quiet"])
    evaluate = [measure.binary(), "eval", str(directory), "--data", str(paths[1]), *threads, "--json", "--quiet"]
    fused, _ = measure.run(evaluate)
    alone, _ = measure.run([*evaluate, "--net-alone"])
    return [measure.last_json(text)["metrics"][name] for text in (fused, alone) for name in METRICS]


def cells(rows):
    """Mean and, behind the first figure of each group, its standard error over the seeds."""
    texts = []
    for column in range(len(rows[0])):
        values = [row[column] for row in rows]
        mean = sum(values) / len(values)
        text = f"{mean:.2f}"
        if column % len(METRICS) == 0 and len(values) > 1:
            variance = sum((v - mean) ** 2 for v in values) / (len(values) - 1)
            text += f" ± {math.sqrt(variance / len(values)):.2f}"
        texts.append(text)
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("GOSSAMER_DATA", str(measure.ROOT / "../shared/data")))
    parser.add_argument("--set", default="citeulike-t")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=0, help="train by so many processes; 0: by one that is no node")
    parser.add_argument("settings", nargs="*", metavar="SETTINGS")
    arguments = parser.parse_args()
    source = pathlib.Path(arguments.data) / arguments.set / "train.txt.zst"
    if not source.exists():
        sys.exit(f"{source}: no such file; give the data's folder with --data or $GOSSAMER_DATA")
    out = measure.ROOT / "build/bench" / arguments.set
    out.mkdir(parents=True, exist_ok=True)
    paths = split(unpack(source, out / "train.txt"), out)

    names = ["defaults", *arguments.settings]
    results = {name: [] for name in names}
    for seed in range(1, arguments.seeds + 1):
        for name in names:
            settings = [] if name == "defaults" else name.split(",")
            results[name].append(run(paths, settings, seed, arguments, out))
    print("| settings | " + " | ".join(METRICS) + " | " + " | ".join(f"net alone {m}" for m in METRICS) + " |")
    print("|---|" + "---|" * (2 * len(METRICS)))
    for name in names:
        print(f"| {name} | " + " | ".join(cells(results[name])) + " |")
    print(measure.save("sparse_choices", {"machine": measure.machine(), "commit": measure.commit(), "set": arguments.set,
                                          "results": results}))


if __name__ == "__main__":
    main()
