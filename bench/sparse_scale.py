# SPDX-License-Identifier: Apache-2.0
"""How far one machine goes: step time against outputs and widths, and whole runs on made-up records.

sparse_scale.py [steps] [widths] [amazon] [amazon-block] [outputs] [--write]
default: all of them; --write updates docs/benchmarks.md

steps    a step with 67,009, 670,091 and 6,700,910 outputs at the same active rows (12 GB of memory)
widths   a step at Amazon-670K's shape with hidden layers from 32 to 1024 units
amazon   a run of 200 steps at Amazon-670K's shape, hidden=1024: 825 million parameters; amazon-block with one second
         moment for 16 weights of both tables
outputs  a run over 10,000,000 outputs, hidden=64, that ends with a test

The made-up records have structure. Every output has features of its own, and a record shows most of them among others
that say nothing.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import measure
import numpy

OUTPUTS = [67_009, 670_091, 6_700_910]
WIDTHS = [32, 64, 96, 128, 256, 512, 1024]
AMAZON = {"records": 490_449, "features": 135_909, "outputs": 670_091, "own": 8, "noise": 40, "labels": 5, "zipf": 0.6}
RUNS = {
    "amazon": {"shape": AMAZON, "settings": ["model.hidden=1024", "train.steps=200"]},
    "amazon-block": {"shape": AMAZON, "settings": ["model.hidden=1024", "train.steps=200", "optimizer.moments=block"]},
    "outputs": {
        "shape": {"records": 1_000_000, "features": 200_000, "outputs": 10_000_000, "own": 8, "noise": 8, "labels": 2, "zipf": 0.8},
        "settings": ["model.hidden=64", "train.batch=1024", "train.epochs=3"],
    },
}
TEST_RECORDS = 2_000


def step(settings):
    text, _ = measure.run([measure.binary(), "bench", "sparse-step", *settings, "--json", "--quiet"])
    return measure.last_json(text)


def ranks(rng, n, zipf, size):
    """Ranks 0..n-1 with density (rank + 1)^-zipf."""
    power = 1 - zipf
    x = (rng.random(size) * (n**power - 1) + 1) ** (1 / power)
    return numpy.minimum(n - 1, x.astype(numpy.int64) - 1)


def hashed(ids, which, below):
    """A number in [0, below) for each id, another one for each `which`."""
    x = ids.astype(numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15) + numpy.uint64((which + 1) * 0x1CE4E5B9)
    x = (x ^ (x >> numpy.uint64(31))) * numpy.uint64(0x94D049BB133111EB)
    return ((x >> numpy.uint64(33)) % numpy.uint64(below)).astype(numpy.int64)


def write_records(path, shape, records, seed):
    """XMLC text: own features of the record's outputs, each shown four times in five, among features of others."""
    rng = numpy.random.default_rng(seed)
    block = 20_000
    with open(path, "w", encoding="ascii") as out:
        out.write(f"{records} {shape['features']} {shape['outputs']}\n")
        for first in range(0, records, block):
            n = min(block, records - first)
            # Frequent outputs lie all over the table, as in real data.
            labels = ranks(rng, shape["outputs"], shape["zipf"], (n, shape["labels"])) * 7_368_787 % shape["outputs"]
            own = numpy.stack([hashed(labels, j, shape["features"]) for j in range(shape["own"])], axis=2).reshape(n, -1)
            other = ranks(rng, shape["features"], 0.5, (n, shape["noise"]))
            own[rng.random(own.shape) < 0.2] = 0
            features = numpy.sort(numpy.concatenate([own, other], axis=1), axis=1)
            for row_labels, row_features in zip(numpy.sort(labels, axis=1).tolist(), features.tolist()):
                words = " ".join(f"{f}:1" for f in dict.fromkeys(row_features))
                out.write(",".join(map(str, dict.fromkeys(row_labels))) + " " + words + "\n")


def train(name):
    """Trains a whole run. Returns what it said it would need, and what it took."""
    run = RUNS[name]
    with tempfile.TemporaryDirectory(prefix="gossamer-scale-") as scratch:
        at = pathlib.Path(scratch)
        write_records(at / "train.txt", run["shape"], run["shape"]["records"], 1)
        write_records(at / "test.txt", run["shape"], TEST_RECORDS, 2)
        command = [measure.binary(), "train", "xmc", f"data.train={at / 'train.txt'}", f"data.test={at / 'test.txt'}",
                   *run["settings"], "checkpoint.every_minutes=0", "--out", str(at / "run"), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr[-2000:]}")
    said = re.search(r"parameters, (.*) of memory", done.stderr)
    return {**run, "summary": measure.last_json(done.stdout), "memory_said": said.group(1) if said else ""}


def steps_table(rounds):
    runs = {n: [] for n in OUTPUTS}
    for _ in range(rounds):
        for n in OUTPUTS:
            runs[n].append(step([f"labels={n}"]))
    lines = ["| outputs | parameters | active rows | CPU ms a step | wall ms a step | peak memory, GB |", "|---|---|---|---|---|---|"]
    for n, rows in runs.items():
        cpu, wall = (measure.median([r[key] for r in rows]) for key in ("cpu_ms_per_step", "wall_ms_per_step"))
        lines.append(f"| {n:,} | {rows[0]['parameters'] / 1e6:.0f} M | {rows[0]['active_rows']:.0f} | {cpu:.1f} | {wall:.1f} | "
                     f"{rows[0]['peak_rss_bytes'] / 1e9:.1f} |")
    return runs, lines


def widths_table(rounds):
    runs = {width: [] for width in WIDTHS}
    for _ in range(rounds):
        for width in WIDTHS:
            runs[width].append(step([f"hidden={width}", "steps=20"]))
    lines = ["| hidden | parameters | CPU ms a step | wall ms a step | peak memory, GB |", "|---|---|---|---|---|"]
    for width, rows in runs.items():
        cpu, wall = (measure.median([r[key] for r in rows]) for key in ("cpu_ms_per_step", "wall_ms_per_step"))
        lines.append(f"| {width} | {rows[0]['parameters'] / 1e6:.0f} M | {cpu:.1f} | {wall:.1f} | {rows[0]['peak_rss_bytes'] / 1e9:.1f} |")
    return runs, lines


def runs_table(results):
    lines = ["| run | outputs | parameters | steps | training s, CPU s | P@1 | memory said | peak memory, GB |", "|---|---|---|---|---|---|---|---|"]
    for name, run in results.items():
        s = run["summary"]
        lines.append(f"| {name} | {run['shape']['outputs']:,} | {s['parameters'] / 1e6:.0f} M | {s['steps']} | "
                     f"{s['load_seconds'] + s['train_seconds']:.0f}, {s['cpu_seconds']:.0f} | {s['metrics']['P@1']:.1f} | {run['memory_said']} | "
                     f"{s['peak_rss_bytes'] / 1e9:.1f} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["steps", "widths", *RUNS, []], default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    parts = arguments.parts or ["steps", "widths", *RUNS]

    result = {"machine": measure.machine(), "commit": measure.commit()}
    tables = {}
    if "steps" in parts:
        result["steps"], tables["scale-steps"] = steps_table(arguments.rounds)
    if "widths" in parts:
        result["widths"], tables["scale-widths"] = widths_table(arguments.rounds)
    trained = {name: train(name) for name in RUNS if name in parts}
    if trained:
        result["runs"], tables["scale-runs"] = trained, runs_table(trained)
    print(measure.save("sparse_scale", result))
    for name, lines in tables.items():
        print("\n".join(lines))
        if arguments.write:
            measure.write_table(name, lines)
    print(json.dumps({"parts": parts}))


if __name__ == "__main__":
    main()
