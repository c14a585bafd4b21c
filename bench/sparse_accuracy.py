# SPDX-License-Identifier: Apache-2.0
"""Preset xmc against what people would pick instead, end to end, on real data: P@k, PSP@k, CPU, memory, model size.

sparse_accuracy.py [--data DIR] [--sets NAME,...] [--tools NAME,...] [--seeds N] [--peer-seeds N] [--limit SECONDS]
                   [--table] [--write]
DIR holds citeulike-t/, acl-authors/, mulan/bibtex/ and mulan/delicious/ with train.txt.zst and test.txt.zst (default
$GOSSAMER_DATA or ../shared/data). Each run replaces the row of its set, tool and seed in
build/bench/sparse_accuracy.json at once, so that parts can be run again alone. --table measures nothing. A tool that
fails, or takes longer than --limit, is shown as such.
"""

import argparse
import json
import os
import pathlib
import shutil
import sys
import time

import measure
import numpy
import ranking_metrics
import records
from peer import bytes_under

THREADS = 2
RESULT = measure.ROOT / "build/bench/sparse_accuracy.json"
SETS = {"citeulike-t": "citeulike-t", "acl-authors": "acl-authors", "bibtex": "mulan/bibtex", "delicious": "mulan/delicious"}
# name: (how tables call it, program, kind)
PEERS = {
    "omikuji": ("Omikuji default", "omikuji_peer.py", "default"),
    "omikuji-bonsai": ("Omikuji Bonsai-like", "omikuji_peer.py", "bonsai"),
    "napkinxc": ("napkinXC PLT", "napkinxc_peer.py", "plt"),
    "torch-f32": ("PyTorch dense softmax, f32", "torch_classifier_peer.py", "f32"),
    "torch-bf16": ("PyTorch dense softmax, bf16", "torch_classifier_peer.py", "bf16"),
    "torch-sampled": ("PyTorch in-batch softmax, SparseAdam", "torch_classifier_peer.py", "sampled"),
    "knn": ("scikit-learn kNN, cosine", "sklearn_peer.py", "knn"),
    "sgd": ("scikit-learn SGD, one-vs-rest", "sklearn_peer.py", "sgd"),
}
OURS, NET = "gossamer", "gossamer-net"  # one run makes both rows
TITLES = {OURS: "gossamer xmc", NET: "gossamer xmc, its network alone", **{name: peer[0] for name, peer in PEERS.items()}}
MOST_LABELS = {"sgd": 1000}  # a classifier a label: infeasible beyond
METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")


def ours(files, seed, out):
    """Rows of the whole model and of its network alone."""
    directory = out / "run"
    shutil.rmtree(directory, ignore_errors=True)
    text, cost = measure.run([measure.binary(), "train", "xmc", f"data.train={files['train']}", f"data.test={files['test']}",
                              f"seed={seed}", "--threads", str(THREADS), "--out", str(directory), "--json", "--quiet"])
    summary = measure.last_json(text)
    common = {"train_cpu_s": summary["cpu_seconds"], "train_wall_s": summary["load_seconds"] + summary["train_seconds"],
              "wall_s": cost["wall_s"], "peak_rss_bytes": cost["peak_rss_bytes"],
              "model_bytes": bytes_under(directory / "model")}
    text, _ = measure.run([measure.binary(), "eval", str(directory), "--data", str(files["test"]), "--net-alone",
                           "--threads", str(THREADS), "--json", "--quiet"])
    alone = measure.last_json(text)
    whole = {"metrics": summary["metrics"], "predict_cpu_s": summary["eval_cpu_seconds"],
             "predict_wall_s": summary["eval_seconds"]}
    net = {"metrics": alone["metrics"], "predict_cpu_s": alone["cpu_seconds"], "predict_wall_s": alone["eval_seconds"]}
    return {OURS: {**whole, **common}, NET: {**net, **common}}


def peer(tool, files, seed, out, limit_s):
    """The row of a peer; {"failed": why} when there is none."""
    _, program, kind = PEERS[tool]
    train = records.read(files["train"])
    if train.labels > MOST_LABELS.get(tool, train.labels):
        return {"failed": f"not run: {train.labels:,} classifiers"}
    scratch = out / f"peer-{tool}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    weighted = records.weighted(files["train"], files["test"], out)
    arguments = {"train": str(weighted[0]), "test": str(weighted[1]), "out": str(scratch), "kind": kind, "seed": seed,
                 "threads": THREADS}
    environment = measure.torch_environment if tool.startswith("torch") else measure.peer_environment
    try:
        text, cost = measure.run([sys.executable, str(measure.ROOT / "bench" / program), json.dumps(arguments)],
                                 env=environment(THREADS), limit_s=limit_s)
    except measure.Failed as failure:
        return {"failed": str(failure)}
    ranking = numpy.load(scratch / "ranking.npy")
    shutil.rmtree(scratch)
    return {**measure.last_json(text), "wall_s": cost["wall_s"], "peak_rss_bytes": cost["peak_rss_bytes"],
            "metrics": ranking_metrics.metrics(ranking, train, records.read(files["test"]))}


def order(tools, seeds, peer_seeds):
    """(tool, seed) pairs, with ours spread among the peers, so that a slow minute of the machine hits more than one."""
    peers = [(tool, seed) for seed in range(1, peer_seeds + 1) for tool in tools if tool in PEERS]
    if OURS not in tools:
        return peers
    return [pair for seed in range(1, seeds + 1) for pair in [(OURS, seed), *peers[seed - 1::seeds]]]


def saved():
    return json.loads(RESULT.read_text())["rows"] if RESULT.exists() else []


def keep(new):
    """Puts rows into the result file in place of those of the same set, tool and seed."""
    def key(row):
        return row["set"], row["tool"], row["seed"]
    replaced = {key(row) for row in new}
    rows = [row for row in saved() if key(row) not in replaced] + new
    places = {tool: place for place, tool in enumerate(TITLES)}
    rows.sort(key=lambda row: (row["set"], places[row["tool"]], row["seed"]))
    measure.save("sparse_accuracy", {"rows": rows})


def mean(rows, pick):
    return sum(pick(row) for row in rows) / len(rows)


def table(name, rows):
    """Lines of the table of a set. A tool that was measured in another call than ours has a star."""
    base = [row for row in rows if row["tool"] == OURS]
    calls = {row["call"] for row in base}
    cpu = mean(base, lambda r: r["train_cpu_s"]) if base else None
    columns = [name, *METRICS, "train CPU s", "over ours", "train wall s", "predict CPU s", "peak MB", "model MB"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for tool, title in TITLES.items():
        mine = [row for row in rows if row["tool"] == tool]
        done = [row for row in mine if "failed" not in row]
        star = "" if calls & {row["call"] for row in mine} else "*"
        if mine and not done:
            why = measure.cell(mine[0]["failed"])
            lines.append(f"| {title}{star} | {why if why.startswith('not run') else 'failed: ' + why} |" + " |" * 11)
        if done:
            metrics = " | ".join(f"{mean(done, lambda r, k=k: r['metrics'][k]):.2f}" for k in METRICS)
            train, wall, predict, peak, size = (mean(done, lambda r, k=k: r[k]) for k in (
                "train_cpu_s", "train_wall_s", "predict_cpu_s", "peak_rss_bytes", "model_bytes"))
            over = measure.times(train / cpu) if cpu else ""
            lines.append(f"| {title} ({len(done)}){star} | {metrics} | {train:.1f} | {over} | {wall:.1f} | {predict:.2f} | "
                         f"{peak / 1e6:.0f} | {size / 1e6:.1f} |")
    return lines


def measure_set(name, tools, arguments, identity):
    source = pathlib.Path(arguments.data) / SETS[name]
    if not (source / "train.txt.zst").exists():
        sys.exit(f"{source}: no train.txt.zst there; give the data's folder with --data or $GOSSAMER_DATA")
    out = measure.ROOT / "build/bench" / name
    out.mkdir(parents=True, exist_ok=True)
    files = {part: records.unpack(source / f"{part}.txt.zst", out / f"{part}.txt") for part in ("train", "test")}
    for tool, seed in order(tools, arguments.seeds, arguments.peer_seeds):
        made = ours(files, seed, out) if tool == OURS else {tool: peer(tool, files, seed, out, arguments.limit)}
        for row in made.values():
            found = row.get("failed") or " ".join(f"{k} {row['metrics'][k]:.2f}" for k in METRICS)
            print(name, tool, seed, found, file=sys.stderr, flush=True)
        keep([{"set": name, "tool": which, "seed": seed, **identity, **row} for which, row in made.items()])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("GOSSAMER_DATA", str(measure.ROOT / "../shared/data")))
    parser.add_argument("--sets", default=",".join(SETS), help=f"of {', '.join(SETS)}")
    parser.add_argument("--tools", default=",".join([OURS, *PEERS]), help=f"of {OURS}, {', '.join(PEERS)}")
    parser.add_argument("--seeds", type=int, default=3, help="runs of ours")
    parser.add_argument("--peer-seeds", type=int, default=1, help="runs of each peer")
    parser.add_argument("--limit", type=float, default=7200, help="seconds that a run of a peer may take")
    parser.add_argument("--table", action="store_true", help="only print the tables of what was measured")
    parser.add_argument("--write", action="store_true", help="write them into docs/benchmarks.md")
    arguments = parser.parse_args()
    sets, tools = arguments.sets.split(","), arguments.tools.split(",")
    for given, known in ((sets, SETS), (tools, [OURS, *PEERS])):
        if unknown := [word for word in given if word not in known]:
            parser.error(f"{', '.join(unknown)}: not one of {', '.join(known)}")
    identity = {"call": f"{time.time():.0f}", "commit": measure.commit(), "machine": measure.machine()}
    for name in sets:
        if not arguments.table:
            measure_set(name, tools, arguments, identity)
        rows = [row for row in saved() if row["set"] == name]
        if rows:
            lines = table(name, rows)
            print("\n".join(lines), flush=True)
            if arguments.write:
                measure.write_table(f"accuracy-{name}", lines)
    print(RESULT)


if __name__ == "__main__":
    main()
