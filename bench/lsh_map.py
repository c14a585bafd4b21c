# SPDX-License-Identifier: Apache-2.0
"""Where hash tables pay: as negatives and as retrieval, over 10^4..10^7 outputs and on real data.

lsh_map.py [--data DIR] [--set NAME ...] [--outputs N ...] [--records N] [--negatives KIND ...]
Prints two Markdown tables and writes build/bench/lsh_map.json. One run a row: differences of less than a point are noise.
Made-up records have a known structure. Each label has 12 features among 20,000, and shares four of them with the 20 labels
of its group. A record of label l has seven of l's features and one at random, so that wrong labels of the same group are
the hard ones. Labels are drawn with density 1/rank: some are seen often, and most of 10^6 and more never.
"""

import argparse
import os
import pathlib
import random
import shutil
import sys

import measure
from records import unpack

FEATURES = 20_000
GROUP = 20
COMMON = 4
OWN = 8
TAKEN = 7
FOUND = 1024
NEGATIVES = {
    "in-batch": [],
    "uniform": ["train.negatives=uniform", f"train.sampled={FOUND}"],
    "frequency": ["train.negatives=frequency", f"train.sampled={FOUND}"],
    "lsh": ["train.negatives=lsh", f"train.sampled={FOUND}"],
    "hard, last half": [f"train.hard_negatives={FOUND}", "train.hard_after=0.5"],
}


def features_of(label):
    """The label's features, those of its group first."""
    group = random.Random(f"group {label // GROUP}")
    own = random.Random(f"label {label}")
    return [group.randrange(FEATURES) for _ in range(COMMON)] + [own.randrange(FEATURES) for _ in range(OWN)]


def write_records(path, records, labels, seed):
    """XMLC text of one label a record."""
    draw = random.Random(seed)
    with open(path, "w", encoding="ascii") as out:
        out.write(f"{records} {FEATURES} {labels}\n")
        for _ in range(records):
            label = int(labels ** draw.random()) - 1
            taken = set(draw.sample(features_of(label), TAKEN)) | {draw.randrange(FEATURES)}
            out.write(f"{label} " + " ".join(f"{feature}:1" for feature in sorted(taken)) + "\n")


def head(path, out, count):
    """The first `count` records of a file."""
    with open(path, encoding="ascii") as lines:
        _, features, labels = next(lines).split()
        part = [line for _, line in zip(range(count), lines)]
    out.write_text(f"{len(part)} {features} {labels}\n" + "".join(part), encoding="ascii")
    return len(part)


def train(preset, paths, settings, out):
    """The summary of one run; its directory is out / "run"."""
    shutil.rmtree(out / "run", ignore_errors=True)
    text, cost = measure.run([measure.binary(), "train", preset, f"data.train={paths[0]}", f"data.test={paths[1]}",
                              "predict.instances=false", "predict.held_out=0", "checkpoint.every_minutes=0", *settings, "--threads", "1",
                              "--out", str(out / "run"), "--json", "--quiet"])
    summary = measure.last_json(text)
    return {"P@1": summary["metrics"]["P@1"], "P@5": summary["metrics"]["P@5"], "PSP@5": summary["metrics"]["PSP@5"],
            "cpu_ms_per_step": 1000 * (summary["cpu_seconds"] - summary["eval_cpu_seconds"]) / summary["steps"],
            "cpu_s": summary["cpu_seconds"], "peak_rss_bytes": cost["peak_rss_bytes"]}


def retrieval(paths, out):
    """P@1 of both ways to find labels, the fraction found, and CPU ms a query, from the difference of two test sets."""
    small = out / "small.txt"
    large = out / "large.txt"
    counts = head(paths[1], small, 500), head(paths[1], large, 4000)
    result = {}
    cpu = {}
    for way in ("exact", "lsh"):
        seconds = []
        for path in (small, large):
            text, _ = measure.run([measure.binary(), "eval", str(out / "run"), "--data", str(path), "--net-alone",
                                   "--retrieval", way, "--threads", "1", "--json", "--quiet"])
            answer = measure.last_json(text)
            seconds.append(answer["cpu_seconds"])
        cpu[way] = 1000 * (seconds[1] - seconds[0]) / (counts[1] - counts[0])
        result[way] = answer["metrics"]
    # With lsh the exact search runs beside it, to compare.
    return {"exact_ms": cpu["exact"], "lsh_ms": cpu["lsh"] - cpu["exact"], "exact_P@1": result["exact"]["P@1"],
            "lsh_P@1": result["lsh"]["P@1"], "found@10": result["lsh"]["retrieval@10"],
            "found@100": result["lsh"]["retrieval@100"]}


def measure_set(name, paths, common, out, negatives_kinds):
    """All rows of one data set."""
    rows = {}
    for negatives in negatives_kinds:
        if negatives == "slide":
            rows[negatives] = train("slide", paths, [], out)
        else:
            rows[negatives] = train("xmc", paths, [*common, "loss.logq=exact", *NEGATIVES[negatives]], out)
        print(name, negatives, rows[negatives], file=sys.stderr)
        if negatives == "in-batch":
            found = retrieval(paths, out)
            print(name, found, file=sys.stderr)
    return {"negatives": rows, "retrieval": found}


def tables(results):
    """The two tables as Markdown."""
    lines = ["| data | negatives | P@1 | P@5 | PSP@5 | CPU ms a step | training CPU s |", "|---|---|---|---|---|---|---|"]
    for name, result in results.items():
        for negatives, r in result["negatives"].items():
            lines.append(f"| {name} | {negatives} | {r['P@1']:.1f} | {r['P@5']:.1f} | {r['PSP@5']:.1f} "
                         f"| {r['cpu_ms_per_step']:.1f} | {r['cpu_s']:.0f} |")
    lines += ["", "| data | exact: ms | P@1 | lsh: ms | P@1 | of the exact 10 | of the exact 100 |", "|---|---|---|---|---|---|---|"]
    for name, result in results.items():
        r = result["retrieval"]
        lines.append(f"| {name} | {r['exact_ms']:.3f} | {r['exact_P@1']:.1f} | {r['lsh_ms']:.3f} | {r['lsh_P@1']:.1f} "
                     f"| {r['found@10']:.0f} % | {r['found@100']:.0f} % |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("GOSSAMER_DATA", str(measure.ROOT / "../shared/data")))
    parser.add_argument("--set", nargs="*", default=["citeulike-t", "acl-authors"])
    parser.add_argument("--outputs", nargs="*", type=int, default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--negatives", nargs="*", choices=[*NEGATIVES, "slide"], default=list(NEGATIVES),
                        help="in-batch is needed and comes first; slide is the preset, which takes long")
    arguments = parser.parse_args()
    out = measure.ROOT / "build/bench/lsh_map"
    out.mkdir(parents=True, exist_ok=True)
    results = {}
    kinds = ["in-batch", *(kind for kind in arguments.negatives if kind != "in-batch")]

    def keep(name, result):
        results[name] = result
        measure.save("lsh_map", {"machine": measure.machine(), "commit": measure.commit(), "results": results})

    for name in arguments.set:
        source = pathlib.Path(arguments.data) / name
        if not (source / "train.txt.zst").exists():
            sys.exit(f"{source}: no such data; give the data's folder with --data or $GOSSAMER_DATA")
        paths = [unpack(source / f"{part}.txt.zst", out / f"{name}-{part}.txt") for part in ("train", "test")]
        keep(name, measure_set(name, paths, [], out, kinds))
    for labels in arguments.outputs:
        paths = [out / "train.txt", out / "test.txt"]
        write_records(paths[0], arguments.records, labels, 1)
        write_records(paths[1], 4000, labels, 2)
        hidden = 64 if labels < 10**7 else 32
        keep(f"{labels:,} outputs, H = {hidden}",
             measure_set(f"{labels}", paths, [f"model.hidden={hidden}", "model.dropout=0", "train.epochs=3"], out, kinds))
    shutil.rmtree(out)
    print("\n".join(tables(results)))


if __name__ == "__main__":
    main()
