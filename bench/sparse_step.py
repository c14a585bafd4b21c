# SPDX-License-Identifier: Apache-2.0
"""A training step at Amazon-670K's shape: gossamer, PyTorch dense, PyTorch sampled with sparse gradients, SLIDE.

sparse_step.py [--rounds N] [--batches N,...] [--outputs N,...] [--threads N] [--torch-steps N] [--limit SECONDS] [--write]
Rounds alternate between all of them. SLIDE's own program runs where $SLIDE_SRC names its folder (slide_program.py). A
peer that fails, such as for want of memory, is shown as failed. --write updates docs/benchmarks.md.
"""

import argparse
import json
import sys

import measure
import slide_program

SHAPE = {"features": 135909, "labels": 670091, "hidden": 128, "nnz": 75, "labels_per_row": 5, "label_zipf": 0.6,
         "feature_zipf": 0.9}
WIDE = 1024
DENSE_OUTPUTS = 1_000_000  # beyond, one dense step of PyTorch takes tens of GB
DENSE, RIVAL = "PyTorch dense bf16", "PyTorch in-batch, SparseAdam"
SLIDE = "SLIDE's own program"
OURS = {"gossamer in-batch": {"sampled": 0}, "gossamer sampled=2048": {"negatives": "uniform", "sampled": 2048}}
PEERS = {
    RIVAL: {"kind": "sampled", "sampled": 0},
    "PyTorch sampled=2048, SparseAdam": {"kind": "sampled", "sampled": 2048},
    DENSE: {"kind": "bf16"},
    "PyTorch dense f32": {"kind": "f32"},
}
# Until PyTorch has all the memory that its steps ever need, page faults are most of the cost of a dense step.
SPARSE_WARMUP, DENSE_WARMUP = 5, 4
SPARSE_STEPS = 20
PHASES = ("select", "embed", "positives", "forward", "reduce", "weights", "embedding", "waiting")


def ours(shape, threads):
    words = [f"{key}={value}" for key, value in shape.items()]
    text, _ = measure.run([measure.binary(), "bench", "sparse-step", *words, "--threads", str(threads), "--json", "--quiet"])
    return measure.last_json(text)


def torch(shape, arguments):
    sparse = shape["kind"] == "sampled"
    shape = {**shape, "threads": arguments.threads, "warmup": SPARSE_WARMUP if sparse else DENSE_WARMUP,
             "steps": SPARSE_STEPS if sparse else arguments.torch_steps}
    command = [sys.executable, str(measure.ROOT / "bench/torch_step_peer.py"), json.dumps(shape)]
    text, cost = measure.run(command, env=measure.torch_environment(arguments.threads), limit_s=arguments.limit)
    return {**measure.last_json(text), "peak_rss_bytes": cost["peak_rss_bytes"]}


def measured(tool, shape, arguments):
    """One run of a tool; {"failed": why} when a peer does not do it."""
    if tool in OURS:
        return ours({**shape, **OURS[tool]}, arguments.threads)
    try:
        if tool == SLIDE:
            return slide_program.step(shape, arguments.threads)
        return torch({**shape, **PEERS[tool]}, arguments)
    except measure.Failed as failure:
        return {"failed": str(failure)}


def cases(batches, outputs):
    """(shape, tools) of every comparison.

    The wide shape is for our program alone. Other numbers of outputs are compared at the first batch.
    """
    tools = [*OURS, *PEERS]
    if slide_program.folder():
        tools.append(SLIDE)
    else:
        print("SLIDE's own program: skipped, $SLIDE_SRC does not name its folder", file=sys.stderr)
    compared = [({**SHAPE, "batch": batch}, tools) for batch in batches]
    others = [({**SHAPE, "labels": n, "batch": batches[0]},
               [tool for tool in (*OURS, *PEERS) if n <= DENSE_OUTPUTS or "dense" not in tool]) for n in outputs]
    return [*compared, *others, *[({**SHAPE, "hidden": WIDE, "batch": batch}, ["gossamer in-batch"]) for batch in batches]]


def middle(runs, key):
    return measure.median([run[key] for run in runs])


def ratio(results, shape, other, cpu):
    runs = [row["runs"] for row in results if row["shape"] == shape and row["tool"] == other]
    return measure.times(middle(runs[0], "cpu_ms_per_step") / cpu) if runs and "failed" not in runs[0][0] else ""


def table(results):
    columns = ["outputs", "H", "B", "step", "CPU ms", "wall ms", "peak GB", "CPU, dense bf16 over this",
               "CPU, in-batch SparseAdam over this"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in results:
        shape, runs = row["shape"], row["runs"]
        head = f"| {shape['labels']:,} | {shape['hidden']} | {shape['batch']} | {row['tool']} |"
        if failed := [run["failed"] for run in runs if "failed" in run]:
            lines.append(f"{head} failed: {measure.cell(failed[0])} | | | | |")
            continue
        cpu, wall = middle(runs, "cpu_ms_per_step"), middle(runs, "wall_ms_per_step")
        peak = f"{middle(runs, 'peak_rss_bytes') / 1e9:.1f}" if "peak_rss_bytes" in runs[0] else ""
        lines.append(f"{head} {cpu:.1f} | {wall:.1f} | {peak} | {ratio(results, shape, DENSE, cpu)} | "
                     f"{ratio(results, shape, RIVAL, cpu)} |")
    return lines


def phases(results):
    lines = ["| outputs | H | B | our step | active rows | " + " | ".join(PHASES) + " |", "|---" * (5 + len(PHASES)) + "|"]
    for row in results:
        if row["tool"] in OURS:
            middles = [measure.median([run["phases_ms"][name] for run in row["runs"]]) for name in PHASES]
            cells = " | ".join(f"{value:.2f}" for value in middles)
            shape = row["shape"]
            lines.append(f"| {shape['labels']:,} | {shape['hidden']} | {shape['batch']} | {row['tool'].split()[1]} | "
                         f"{middle(row['runs'], 'active_rows'):.0f} | {cells} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", default="256,1024")
    parser.add_argument("--outputs", default="67009,6700910", help="besides Amazon-670K's; 12 GB for the largest")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--torch-steps", type=int, default=3, help="dense steps that are measured in a round")
    parser.add_argument("--limit", type=float, default=1800, help="seconds that a run of a peer may take")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()

    batches, outputs = ([int(word) for word in words.split(",") if word] for words in (arguments.batches, arguments.outputs))
    results = [{"shape": shape, "tool": tool, "runs": []} for shape, tools in cases(batches, outputs) for tool in tools]
    result = {"machine": measure.machine(), "commit": measure.commit(), "threads": arguments.threads}
    for _ in range(arguments.rounds):
        for row in results:
            if any("failed" in run for run in row["runs"]):
                continue
            row["runs"].append(measured(row["tool"], row["shape"], arguments))
            print(row["tool"], *(row["shape"][key] for key in ("labels", "hidden", "batch")),
                  row["runs"][-1].get("failed") or f"{row['runs'][-1]['cpu_ms_per_step']:.1f} ms", file=sys.stderr, flush=True)
            measure.save("sparse_step", {**result, "results": [row for row in results if row["runs"]]})
    tables = {"sparse-step": table(results), "sparse-step-phases": phases(results)}
    for name, lines in tables.items():
        print("\n".join(lines), flush=True)
        if arguments.write:
            measure.write_table(name, lines)


if __name__ == "__main__":
    main()
