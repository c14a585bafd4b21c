# SPDX-License-Identifier: Apache-2.0
"""Preset xmc against Omikuji, end to end, on real data: P@1/3/5 and CPU seconds to a trained model.

sparse_accuracy.py [--data DIR] [--sets NAME,...] [--seeds N] [--skip-peers] [--write]
DIR holds citeulike-t/ and acl-authors/ with train.txt.zst and test.txt.zst (default $GOSSAMER_DATA or ../shared/data).
"""

import argparse
import math
import os
import pathlib
import subprocess
import sys

import measure

KINDS = {"Omikuji default": "default", "Omikuji Bonsai-like": "bonsai"}


def parse(line):
    labels, _, rest = line.rstrip("\n").partition(" ")
    return labels, [(int(i), float(v)) for i, v in (pair.split(":") for pair in rest.split())]


def unpack(source, target):
    if not target.exists():
        subprocess.run(["zstd", "-dqf", str(source), "-o", str(target)], check=True)
    return target


def weighted(train, test, out):
    """tf-idf copies of both files, as Omikuji needs them: (1 + ln tf) ln(N / df), rows of length 1."""
    paths = out / "train.tfidf.txt", out / "test.tfidf.txt"
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


def ours(train, test, seed, out):
    directory = out / f"run-{seed}"
    subprocess.run(["rm", "-rf", str(directory)], check=True)
    text, cost = measure.run([measure.binary(), "train", "xmc", f"data.train={train}", f"data.test={test}",
                              f"seed={seed}", "--threads", "2", "--out", str(directory), "--json", "--quiet"])
    summary = measure.last_json(text)
    return {"metrics": summary["metrics"], "train_cpu_s": summary["cpu_seconds"],
            "predict_cpu_s": summary["eval_cpu_seconds"], "wall_s": cost["wall_s"],
            "peak_rss_bytes": cost["peak_rss_bytes"]}


def omikuji(paths, kind):
    command = [sys.executable, str(measure.ROOT / "bench/omikuji_peer.py"), *map(str, paths), kind, "2"]
    text, cost = measure.run(command)
    return {**measure.last_json(text), "wall_s": cost["wall_s"], "peak_rss_bytes": cost["peak_rss_bytes"]}


def mean(rows, pick):
    return sum(pick(row) for row in rows) / len(rows)


def table(name, runs):
    base = mean(runs["gossamer xmc"], lambda r: r["train_cpu_s"])
    lines = [f"| {name} | P@1 | P@3 | P@5 | train CPU s | over ours | predict CPU s | peak MB |", "|---|---|---|---|---|---|---|---|"]
    for tool, rows in runs.items():
        precision = " | ".join(f"{mean(rows, lambda r, k=k: r['metrics'][k]):.2f}" for k in ("P@1", "P@3", "P@5"))
        train = mean(rows, lambda r: r["train_cpu_s"])
        predict = mean(rows, lambda r: r["predict_cpu_s"])
        peak = mean(rows, lambda r: r["peak_rss_bytes"]) / 1e6
        lines.append(f"| {tool} ({len(rows)}) | {precision} | {train:.1f} | {train / base:.1f} | {predict:.1f} | {peak:.0f} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("GOSSAMER_DATA", str(measure.ROOT / "../shared/data")))
    parser.add_argument("--sets", default="citeulike-t,acl-authors")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()

    result = {"machine": measure.machine(), "commit": measure.commit(), "runs": {}}
    for name in arguments.sets.split(","):
        source = pathlib.Path(arguments.data) / name
        if not (source / "train.txt.zst").exists():
            sys.exit(f"{source}: no train.txt.zst there; give the data's folder with --data or $GOSSAMER_DATA")
        out = measure.ROOT / "build/bench" / name
        out.mkdir(parents=True, exist_ok=True)
        train = unpack(source / "train.txt.zst", out / "train.txt")
        test = unpack(source / "test.txt.zst", out / "test.txt")
        runs = {"gossamer xmc": []}
        peers = [] if arguments.skip_peers else list(KINDS.items())
        # Alternate, so that a slow minute of a shared machine does not fall on one tool alone.
        for seed in range(1, arguments.seeds + 1):
            runs["gossamer xmc"].append(ours(train, test, seed, out))
            if seed <= len(peers):
                tool, kind = peers[seed - 1]
                runs[tool] = [omikuji(weighted(train, test, out), kind)]
        for tool, kind in peers[arguments.seeds:]:
            runs[tool] = [omikuji(weighted(train, test, out), kind)]
        result["runs"][name] = runs
        lines = table(name, runs)
        print("\n".join(lines), flush=True)
        if arguments.write:
            measure.write_table(f"accuracy-{name}", lines)
    print(measure.save("sparse_accuracy", result))


if __name__ == "__main__":
    main()
