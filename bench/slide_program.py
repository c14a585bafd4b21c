# SPDX-License-Identifier: Apache-2.0
"""SLIDE's own program (MLSys 2020) beside ours, where its built source lies at $SLIDE_SRC.

slide_program.py [--data DIR] [--sets NAME,...] [--rounds N] [--write]    an epoch on real data: CPU, wall, P@1 after it
DIR holds citeulike-t/ and acl-authors/ with train.txt.zst and test.txt.zst (default $GOSSAMER_DATA or ../shared/data).

$SLIDE_SRC is the folder of `runme`, which takes the path of a configuration: build it there first, as its authors say.
Settings are those of the authors for Amazon-670K (their Config_amz.csv) except for shape and paths. The program tests
itself on 20 batches before it begins, and trains whole batches. For it and for ours, the cost is the difference of two
runs that train different amounts. So reading the test, starting and saving do not count.
"""

import argparse
import os
import pathlib
import shutil
import sys

import measure
import records
import sparse_scale

STEPS = 100
BATCH = 128
TESTED = 20  # batches, before training and after
THREADS = 2
SETS = ("citeulike-t", "acl-authors")


def folder():
    """The folder of the program, or None."""
    source = os.environ.get("SLIDE_SRC")
    return pathlib.Path(source).resolve() if source else None


def configuration(shape, trained, files, out):
    """Writes a configuration.

    `shape`: batch, features, labels, hidden. `trained`: records. `files`: training and test.
    """
    lines = {
        "RangePow": "6,18", "K": "2,6", "L": "20,50", "Sparsity": "1,0.005,1,1", "Batchsize": shape["batch"],
        "Rehash": 6400, "Rebuild": 128000, "InputDim": shape["features"], "totRecords": trained,
        "totRecordsTest": TESTED * shape["batch"], "Lr": 0.0001, "Epoch": 1, "Stepsize": 1_000_000,
        "sizesOfLayers": f"{shape['hidden']},{shape['labels']}", "numLayer": 2, "trainData": files[0],
        "testData": files[1], "weight": out / "weights.npz", "savedweight": out / "weights.npz",
        "logFile": out / "log.txt",
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def train(shape, trained, files, threads):
    """The cost of a run, and the fraction of the tested records with a right first label after it."""
    out = measure.ROOT / "build/bench/slide"
    out.mkdir(parents=True, exist_ok=True)
    (out / "log.txt").unlink(missing_ok=True)
    (out / "slide.cfg").write_text(configuration(shape, trained, files, out), encoding="ascii")
    _, cost = measure.run([str(folder() / "runme"), str(out / "slide.cfg")], env={"OMP_NUM_THREADS": str(threads)})
    (out / "weights.npz").unlink(missing_ok=True)
    return cost, 100 * float((out / "log.txt").read_text().split()[-1])


def step(shape, threads):
    """CPU and wall milliseconds of a training step; measure.Failed when the program does not do it."""
    out = measure.ROOT / "build/bench/slide"
    out.mkdir(parents=True, exist_ok=True)
    made = {**sparse_scale.RUNS["amazon"]["shape"], "features": shape["features"], "outputs": shape["labels"]}
    files = out / "train.txt", out / "test.txt"
    sparse_scale.write_records(files[0], made, 2 * STEPS * shape["batch"], 1)
    sparse_scale.write_records(files[1], made, TESTED * shape["batch"], 2)
    short, long = (train(shape, n * STEPS * shape["batch"], files, threads)[0] for n in (1, 2))
    return {f"{which}_ms_per_step": 1e3 * (long[f"{which}_s"] - short[f"{which}_s"]) / STEPS for which in ("cpu", "wall")}


def head(path, count, out):
    """A copy of the first `count` records."""
    with open(path, encoding="ascii") as lines:
        _, features, labels = next(lines).split()
        rows = [next(lines) for _ in range(count)]
    out.write_text(f"{count} {features} {labels}\n" + "".join(rows), encoding="ascii")
    return out


def slide_epoch(shape, files, count):
    whole, first = train(shape, count, files, THREADS)
    start, _ = train(shape, BATCH, files, THREADS)
    return {"cpu_s": whole["cpu_s"] - start["cpu_s"], "wall_s": whole["wall_s"] - start["wall_s"], "P@1": first,
            "peak_rss_bytes": whole["peak_rss_bytes"]}


def our_epoch(files, directory):
    """An epoch of our program at the same width, without training records for prediction; P@1 after it."""
    costs = []
    for epochs in (1, 3):
        shutil.rmtree(directory, ignore_errors=True)
        text, cost = measure.run([measure.binary(), "train", "xmc", f"data.train={files[0]}", f"data.test={files[1]}",
                                  "model.hidden=128", "predict.instances=false", "predict.held_out=0", f"train.epochs={epochs}", "--threads",
                                  str(THREADS), "--out", str(directory), "--json", "--quiet"])
        summary = measure.last_json(text)
        costs.append((summary["cpu_seconds"], summary["train_seconds"], summary["metrics"]["P@1"], cost["peak_rss_bytes"]))
    cpu, wall = ((costs[1][i] - costs[0][i]) / 2 for i in (0, 1))
    return {"cpu_s": cpu, "wall_s": wall, "P@1": costs[0][2], "peak_rss_bytes": costs[0][3]}


def measure_set(source, out, rounds):
    """Rows of the table: ours and theirs, medians of alternating rounds."""
    out.mkdir(parents=True, exist_ok=True)
    files = [records.unpack(source / f"{part}.txt.zst", out / f"{part}.txt") for part in ("train", "test")]
    weighted = records.weighted(*files, out)
    tested = head(files[1], TESTED * BATCH, out / "slide-test.txt")
    with open(files[0], encoding="ascii") as lines:
        count, features, labels = map(int, next(lines).split())
    shape = {"batch": BATCH, "features": features, "labels": labels, "hidden": 128}
    runs = {"gossamer xmc, H=128": [], "SLIDE's program": []}
    for _ in range(rounds):
        runs["gossamer xmc, H=128"].append(our_epoch((files[0], tested), out / "slide-run"))
        runs["SLIDE's program"].append(slide_epoch(shape, weighted, count))
    return {tool: {key: measure.median([run[key] for run in each]) for key in each[0]} for tool, each in runs.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("GOSSAMER_DATA", measure.ROOT.parent / "shared/data"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if not folder():
        sys.exit("$SLIDE_SRC: not set; it is to name the folder of SLIDE's built `runme`")
    lines = ["| set | program | CPU s an epoch | wall s | over ours, CPU | P@1 after one | peak MB |", "|---" * 7 + "|"]
    result = {}
    for name in arguments.sets.split(","):
        source = pathlib.Path(arguments.data) / name
        if not source.is_dir():
            sys.exit(f"{source}: no such folder; give the data's folder with --data or $GOSSAMER_DATA")
        result[name] = measure_set(source, measure.ROOT / "build/bench" / name, arguments.rounds)
        ours = next(iter(result[name].values()))["cpu_s"]
        lines += [f"| {name} | {tool} | {run['cpu_s']:.2f} | {run['wall_s']:.2f} | {measure.times(run['cpu_s'] / ours)} | "
                  f"{run['P@1']:.1f} | {run['peak_rss_bytes'] / 1e6:.0f} |" for tool, run in result[name].items()]
    print("\n".join(lines))
    if arguments.write:
        measure.write_table("slide-epoch", lines)
    print(measure.save("slide_epoch", {"commit": measure.commit(), "machine": measure.machine(), "sets": result}))


if __name__ == "__main__":
    main()
