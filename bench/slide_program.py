# SPDX-License-Identifier: Apache-2.0
"""SLIDE's own program (MLSys 2020) on made-up records, where its built source lies at $SLIDE_SRC.

$SLIDE_SRC is the folder of `runme`, which takes the path of a configuration: build it there first, as its authors say.
Settings are those of the authors for Amazon-670K (their Config_amz.csv) but for the batch. Two runs, one with twice
the steps of the other: their difference is what steps cost, without the start.
"""

import os
import pathlib

import measure
import sparse_scale

STEPS = 100


def folder():
    """Of the program, or None."""
    source = os.environ.get("SLIDE_SRC")
    return pathlib.Path(source).resolve() if source else None


def configuration(shape, records, out):
    lines = {
        "RangePow": "6,18", "K": "2,6", "L": "20,50", "Sparsity": "1,0.005,1,1", "Batchsize": shape["batch"],
        "Rehash": 6400, "Rebuild": 128000, "InputDim": shape["features"], "totRecords": records,
        "totRecordsTest": shape["batch"], "Lr": 0.0001, "Epoch": 1, "Stepsize": 1_000_000,
        "sizesOfLayers": f"{shape['hidden']},{shape['labels']}", "numLayer": 2, "trainData": out / "train.txt",
        "testData": out / "test.txt", "weight": out / "weights.npz", "savedweight": out / "weights.npz",
        "logFile": out / "log.txt",
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def step(shape, threads):
    """CPU and wall milliseconds of a training step; measure.Failed when the program does not do it."""
    out = measure.ROOT / "build/bench/slide"
    out.mkdir(parents=True, exist_ok=True)
    made = {**sparse_scale.RUNS["amazon"]["shape"], "features": shape["features"], "outputs": shape["labels"]}
    sparse_scale.write_records(out / "test.txt", made, shape["batch"], 2)
    costs = []
    for records in (STEPS * shape["batch"], 2 * STEPS * shape["batch"]):
        sparse_scale.write_records(out / "train.txt", made, records, 1)
        (out / "slide.cfg").write_text(configuration(shape, records, out), encoding="ascii")
        _, cost = measure.run([str(folder() / "runme"), str(out / "slide.cfg")], env={"OMP_NUM_THREADS": str(threads)})
        costs.append(cost)
    return {f"{which}_ms_per_step": 1e3 * (costs[1][f"{which}_s"] - costs[0][f"{which}_s"]) / STEPS for which in ("cpu", "wall")}
