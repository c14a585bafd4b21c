# SPDX-License-Identifier: Apache-2.0
"""Preset next-item on diginetica's click sessions: the whole model, its network alone, past sessions alone.

next_item.py [--data DIR] [--seeds N] [--validation] [--write] [KEY=VALUE ...]
DIR holds sessions/diginetica/*.txt.zst (default $GOSSAMER_DATA or ../shared/data). --validation trains on the first
95 % of the training sessions and measures on every second one of the rest: what settings are chosen on.
"""

import argparse
import os
import pathlib
import subprocess
import sys

import measure

KINDS = {"fused": [], "network alone": ["--net-alone"], "nearest sessions alone": ["--baseline", "nearest"]}
SHOWN = ("P@1", "recall@10", "recall@20", "MRR@20")


def unpack(source):
    return subprocess.run(["zstd", "-dcq", str(source)], check=True, capture_output=True, text=True).stdout


def prepare(source, out, validation):
    """Paths of training and test sessions."""
    lines = unpack(source / "train_sessions.txt.zst").splitlines()
    test = unpack(source / "test_prefix_target.txt.zst").splitlines()
    name = "test"
    if validation:
        cut = len(lines) * 95 // 100
        lines, test, name = lines[:cut], lines[cut::2], "validation"
    paths = out / f"train-{name}.txt", out / f"{name}.txt"
    for path, content in zip(paths, (lines, test)):
        path.write_text("\n".join(content) + "\n", encoding="utf-8")
    return paths


def measured(paths, seed, keys, out):
    directory = out / "run"
    subprocess.run(["rm", "-rf", str(directory)], check=True)
    text, cost = measure.run([measure.binary(), "train", "next-item", f"data.train={paths[0]}", f"seed={seed}", *keys,
                              "--threads", "2", "--out", str(directory), "--json", "--quiet"])
    train_cpu = measure.last_json(text)["cpu_seconds"]
    rows = {}
    for kind, flags in KINDS.items():
        text, _ = measure.run([measure.binary(), "eval", str(directory), "--data", str(paths[1]), *flags,
                               "--threads", "2", "--json", "--quiet"])
        result = measure.last_json(text)
        rows[kind] = {"metrics": result["metrics"], "samples": result["samples"], "train_cpu_s": train_cpu,
                      "predict_cpu_s": result["cpu_seconds"], "peak_rss_bytes": cost["peak_rss_bytes"]}
    return rows


def table(runs):
    lines = ["| diginetica | " + " | ".join(SHOWN) + " | train CPU s | predict CPU s |", "|---|---|---|---|---|---|---|"]
    for kind in KINDS:
        rows = [run[kind] for run in runs]
        metrics = " | ".join(f"{sum(row['metrics'][name] for row in rows) / len(rows):.2f}" for name in SHOWN)
        train = measure.median([row["train_cpu_s"] for row in rows])
        predict = measure.median([row["predict_cpu_s"] for row in rows])
        lines.append(f"| {kind} ({len(rows)}) | {metrics} | {train:.0f} | {predict:.0f} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keys", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--data", default=os.environ.get("GOSSAMER_DATA", str(measure.ROOT / "../shared/data")))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()

    source = pathlib.Path(arguments.data) / "sessions/diginetica"
    if not (source / "train_sessions.txt.zst").exists():
        sys.exit(f"{source}: no train_sessions.txt.zst there; give the data's folder with --data or $GOSSAMER_DATA")
    if arguments.write and (arguments.validation or arguments.keys):
        sys.exit("--write is for the test sessions and the preset as it is")
    out = measure.ROOT / "build/bench/diginetica"
    out.mkdir(parents=True, exist_ok=True)
    paths = prepare(source, out, arguments.validation)
    runs = [measured(paths, seed, arguments.keys, out) for seed in range(1, arguments.seeds + 1)]
    lines = table(runs)
    print("\n".join(lines), flush=True)
    if arguments.write:
        measure.write_table("next-item", lines)
    result = {"machine": measure.machine(), "commit": measure.commit(), "keys": arguments.keys, "runs": runs}
    print(measure.save("next_item", result))


if __name__ == "__main__":
    main()
