# SPDX-License-Identifier: Apache-2.0
"""A training step at Amazon-670K's shape: gossamer and PyTorch's dense softmax, alternating in one run.

sparse_step.py [--rounds N] [--torch-steps N] [--write]    --write updates docs/benchmarks.md
"""

import argparse
import json
import sys

import measure

SHAPE = {"features": 135909, "labels": 670091, "hidden": 128, "batch": 256, "nnz": 75, "labels_per_row": 5}
OURS = {"in-batch": ["sampled=0"], "sampled=2048": ["negatives=uniform", "sampled=2048"]}


def ours(settings):
    words = [f"{key}={value}" for key, value in SHAPE.items()]
    text, _ = measure.run([measure.binary(), "bench", "sparse-step", *words, *settings, "--json"])
    return measure.last_json(text)


def torch_dense(dtype, steps):
    shape = {**SHAPE, "dtype": dtype, "steps": steps, "threads": 2}
    # Large blocks stay in the process: without this glibc gives gigabytes back and takes them anew each step.
    env = {"MALLOC_TOP_PAD_": "8000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000", "MALLOC_MMAP_THRESHOLD_": "16000000000"}
    text, _ = measure.run([sys.executable, str(measure.ROOT / "bench/torch_step_peer.py"), json.dumps(shape)], env=env)
    return measure.last_json(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--torch-steps", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()

    runs = {name: [] for name in [*OURS, "PyTorch dense bf16", "PyTorch dense f32"]}
    for _ in range(arguments.rounds):
        for name, settings in OURS.items():
            runs[name].append(ours(settings))
        for dtype in ("bf16", "f32"):
            runs[f"PyTorch dense {dtype}"].append(torch_dense(dtype, arguments.torch_steps))
    cpu = {name: measure.median([r["cpu_ms_per_step"] for r in rows]) for name, rows in runs.items()}
    wall = {name: measure.median([r["wall_ms_per_step"] for r in rows]) for name, rows in runs.items()}
    result = {"shape": SHAPE, "machine": measure.machine(), "commit": measure.commit(), "cpu_ms": cpu, "wall_ms": wall, "runs": runs}
    print(measure.save("sparse_step", result))
    lines = ["| step | CPU ms | wall ms | CPU, dense bf16 over this | CPU, dense f32 over this |", "|---|---|---|---|---|"]
    for name in runs:
        ratios = [cpu[f"PyTorch dense {dtype}"] / cpu[name] for dtype in ("bf16", "f32")]
        lines.append(f"| {name} | {cpu[name]:.1f} | {wall[name]:.1f} | {ratios[0]:.0f} | {ratios[1]:.0f} |")
    print("\n".join(lines))
    if arguments.write:
        measure.write_table("sparse-step", lines)


if __name__ == "__main__":
    main()
