# SPDX-License-Identifier: Apache-2.0
"""Preset lm beside PyTorch: the loss of each step, the loss on held-out text, samples a second.

lm.py [--only equal,loss,speed,stage] [--data DIR] [--seeds N] [--steps N] [--rounds N] [--threads N,...] [--write]

equal  a hundred steps in double: PyTorch makes weights and windows from the seed, and each loss is compared
loss   whole runs with the same settings and windows, and PyTorch's own first weights
speed  samples a second of steps, runs alternate; and whole runs from the text to the model on disk
stage  the same within one process, beside plain libtorch (lm_yardstick.cc): steps alternate

Texts: the demo's dictionary (tools/demo/fetch-dictionaries), and wikitext-2 under --data ($GOSSAMER_DATA or
../shared/data). A part adds to build/bench/lm.json what it measures. --write updates docs/benchmarks.md.
"""

import argparse
import gzip
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import lm_run
import measure
import records

OUT = measure.ROOT / "build/bench/lm"
YARDSTICK = measure.ROOT / "build/release/bench/lm_yardstick"
STEPS_IN_DOUBLE = 100
# A block of lines in 64 is held out, so that all letters of the dictionary are in both parts.
BLOCK_BYTES, HELD_OUT = 16384, 64
SHAPES = {
    "tiny": ["model.preset=tiny", "train.batch=32", "train.microbatch=8"],
    "gpt2-small, 4 of 12 layers": ["model.preset=gpt2-small", "model.layers=4", "model.context=256", "train.batch=8",
                                   "train.microbatch=4"],
}
EQUAL = {
    "tiny": [],
    "gated, rms, rotary, layers twice": ["model.activation=swiglu", "model.norm=rms", "model.positions=rotary",
                                         "model.biases=none", "model.layers=2", "model.applied=2"],
}
SPEED_STEPS = {"tiny": 40, "gpt2-small, 4 of 12 layers": 8}
FIRST_STEPS = 3  # pay for memory and code


def dictionary(folder):
    """The text of GCIDE, in two parts."""
    source = measure.ROOT / "build/demo-data"
    measure.run([measure.ROOT / "tools/demo/fetch-dictionaries", source])
    text = gzip.decompress((source / "gcide.dict.dz").read_bytes()).decode("utf-8", errors="ignore")
    parts = {"train": [], "test": []}
    block, size, number = [], 0, 0
    for line in text.splitlines(keepends=True):
        block.append(line)
        size += len(line)
        if size >= BLOCK_BYTES:
            parts["test" if number % HELD_OUT == HELD_OUT - 1 else "train"] += block
            block, size, number = [], 0, number + 1
    parts["train"] += block
    for name, lines in parts.items():
        (folder / f"{name}.txt").write_text("".join(lines), encoding="utf-8")


def wikitext(folder, data):
    for ours, theirs in (("train", "train"), ("test", "valid")):
        records.unpack(data / f"wikitext-2/wiki.{theirs}.tokens.zst", folder / f"{ours}.txt")


def texts(data):
    """Folders with train.txt and test.txt, by name."""
    made = {"dictionary": dictionary, "wikitext-2": lambda folder: wikitext(folder, data)}
    for name, make in made.items():
        folder = OUT / name
        if (folder / "test.txt").exists():
            continue
        if name == "wikitext-2" and not (data / name).exists():
            print(f"{name}: skipped, {data} does not have it", file=sys.stderr)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        make(folder)
    return {name: OUT / name for name in made if (OUT / name / "test.txt").exists()}


def ours(text, words, threads, held_out=False):
    """A run of ours: its directory, losses of steps, samples a second of steps, cost."""
    out = OUT / "run"
    shutil.rmtree(out, ignore_errors=True)
    test = [f"data.test={text / 'test.txt'}"] if held_out else []
    command = [measure.binary(), "train", "lm", f"data.train={text / 'train.txt'}", *test, *words, "--threads", str(threads),
               "--out", out, "--json", "--quiet"]
    printed, cost = measure.run(command, env=measure.peer_environment(threads))
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="ascii").splitlines()]
    result = {"directory": out, "losses": [line["loss"] for line in lines], "wall_s": cost["wall_s"],
              "samples_per_second": [line.get("samples_per_second") for line in lines]}
    if held_out:
        result["test_loss"] = measure.last_json(printed)["metrics"]["loss"]
    return result


def theirs(run, threads, weights, held_out=False):
    """PyTorch on the tokens and settings of a run of ours."""
    directory = run["directory"]
    settings = lm_run.settings_of(directory)
    shape = json.loads((directory / "model/model.json").read_text(encoding="utf-8"))["model"]
    arguments = {"train": str(directory / "data/train.tokens"), "shape": shape, "settings": settings, "threads": threads,
                 "test": str(directory / "data/test.tokens") if held_out else None, "weights": weights,
                 "steps": settings["schedule"]["steps"]}
    printed, cost = measure.run([sys.executable, measure.ROOT / "bench/lm_torch_peer.py", json.dumps(arguments)],
                                env=measure.peer_environment(threads))
    result = measure.last_json(printed)
    batch = settings["batch"]
    return {**result, "samples_per_second": [batch / seconds for seconds in result["seconds"]], "wall_s": cost["wall_s"]}


def equal(folders, keep):
    for text, folder in folders.items():
        for name, words in EQUAL.items():
            run = ours(folder, [*words, "train.precision=f64", f"train.steps={STEPS_IN_DOUBLE}", "train.batch=8",
                                "train.microbatch=4"], 1)
            peer = theirs(run, 1, "ours")
            worst = max(abs(a / b - 1) for a, b in zip(run["losses"], peer["losses"], strict=True))
            keep({"text": text, "model": name, "steps": len(run["losses"]), "worst": worst, "first": run["losses"][0],
                  "last": run["losses"][-1], "last_torch": peer["losses"][-1]})


def loss(folders, keep, arguments):
    """Seeds come last, so that a run that is stopped has all rows."""
    for seed in range(1, arguments.seeds + 1):
        for precision in arguments.precisions.split(","):
            for text, folder in folders.items():
                run = ours(folder, [f"train.precision={precision}", f"train.steps={arguments.steps}", "train.batch=16",
                                    f"seed={seed}"], arguments.loss_threads, held_out=True)
                peer = theirs(run, arguments.loss_threads, "own", held_out=True)
                keep({"text": text, "precision": precision, "seed": seed, "steps": arguments.steps,
                      "ours": run["test_loss"], "torch": peer["test_loss"]})


def steady(run):
    """Samples a second of the middle step, of those that do not pay for memory."""
    return statistics.median(run["samples_per_second"][FIRST_STEPS:])


def speed(folders, keep, arguments):
    folder = next(iter(folders.values()))
    for turn in range(arguments.rounds):
        for threads in map(int, arguments.threads.split(",")):
            for shape, words in SHAPES.items():
                for precision in ("f32", "bf16"):
                    run = ours(folder, [*words, f"train.precision={precision}", f"train.steps={SPEED_STEPS[shape]}"], threads)
                    peer = theirs(run, threads, "own")
                    keep({"shape": shape, "threads": threads, "precision": precision, "round": turn, "ours": steady(run),
                          "torch": steady(peer), "ours_wall_s": run["wall_s"], "torch_wall_s": peer["wall_s"]})


def stage(keep, arguments):
    for turn in range(arguments.rounds):
        for threads in map(int, arguments.threads.split(",")):
            for line in subprocess.run([YARDSTICK, str(threads)], env={**os.environ, **measure.peer_environment(threads)},
                                       stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
                keep({**json.loads(line), "threads": threads, "round": turn})


def rows_of(results, keys):
    """Results with the same values of `keys`, in the order of their first one."""
    groups = {}
    for one in results:
        groups.setdefault(tuple(one[key] for key in keys), []).append(one)
    return groups.items()


def table(columns, rows):
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *(f"| {' | '.join(map(str, row))} |" for row in rows)]


def equal_table(results):
    rows = [[one["text"], one["model"], one["steps"], f"{one['first']:.4f} to {one['last']:.4f}", f"{one['worst']:.1e}"]
            for one in results]
    return table(["text", "model", "steps", "loss, first to last step", "largest relative difference of a loss"], rows)


def loss_table(results):
    rows = []
    for (text, precision, steps), runs in rows_of(results, ("text", "precision", "steps")):
        ours_mean, torch_mean = (statistics.mean(run[tool] for run in runs) for tool in ("ours", "torch"))
        pairs = [f"{100 * (run['ours'] / run['torch'] - 1):+.2f}" for run in runs]
        rows.append([text, precision, steps, len(runs), f"{ours_mean:.4f}", f"{torch_mean:.4f}",
                     f"{100 * (ours_mean / torch_mean - 1):+.2f}", ", ".join(pairs)])
    return table(["text", "precision", "steps", "seeds", "ours", "PyTorch", "ours over PyTorch, %", "of each seed, %"], rows)


def ratio(runs, tool, peer):
    ratios = [run[tool] / run[peer] for run in runs]
    return f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"


def speed_table(results):
    rows = []
    for (shape, precision, threads), runs in rows_of(results, ("shape", "precision", "threads")):
        middle = [f"{statistics.median(run[tool] for run in runs):.1f}"
                  for tool in ("ours", "torch", "ours_wall_s", "torch_wall_s")]
        rows.append([shape, precision, threads, len(runs), *middle[:2], *ratio(runs, "ours", "torch"), *middle[2:]])
    return table(["model", "precision", "threads", "rounds", "ours, samples/s", "PyTorch, samples/s", "ours over PyTorch",
                  "of rounds", "ours, whole run s", "PyTorch, whole run s"], rows)


def stage_table(results):
    rows = []
    for (shape, precision, threads, keep), runs in rows_of(results, ("shape", "precision", "threads", "keep")):
        middle = [f"{statistics.median(run[tool] for run in runs):.1f}" for tool in ("ours", "libtorch")]
        rows.append([shape, precision, keep, threads, len(runs), *middle, *ratio(runs, "ours", "libtorch")])
    return table(["model", "precision", "kept", "threads", "rounds", "ours, samples/s", "libtorch, samples/s",
                  "ours over libtorch", "of rounds"], rows)


TABLES = {"equal": equal_table, "loss": loss_table, "speed": speed_table, "stage": stage_table}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--data", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("GOSSAMER_DATA", measure.ROOT / "../shared/data")))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300, help="of a run of `loss`")
    parser.add_argument("--precisions", default="f32,bf16", help="of the runs of `loss`")
    parser.add_argument("--loss-threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()

    folders = texts(arguments.data)
    for part in arguments.only.split(","):
        result = {"machine": measure.machine(), "commit": measure.commit(), "results": []}

        def keep(one, part=part, result=result):
            result["results"].append(one)
            measure.save(f"lm_{part}", result)
            print(part, json.dumps(one), file=sys.stderr, flush=True)

        parts = {"equal": lambda keep: equal(folders, keep), "loss": lambda keep: loss(folders, keep, arguments),
                 "speed": lambda keep: speed(folders, keep, arguments), "stage": lambda keep: stage(keep, arguments)}
        parts[part](keep)
        lines = TABLES[part](result["results"])
        print("\n".join(lines), flush=True)
        if arguments.write:
            measure.write_table(f"lm-{part}", lines)


if __name__ == "__main__":
    main()
