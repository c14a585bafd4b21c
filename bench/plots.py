# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/bench-*.svg from build/bench/*.json; measures nothing.

plots.py [--from DIR] [--to DIR] [--format svg|png] [--write]    --write puts them into docs/benchmarks.md
accuracy  training CPU against P@1 of all tools on each set (sparse_accuracy.json)
step      step time against outputs, ours and PyTorch's (sparse_step.json)
roofline  phases of our step, and every kernel, against the bounds of one core (sparse_step.json, kernels.json, which
          is the output of `gossamer bench kernels --json`)
cluster   step time against the links' rate, four nodes, ours and PyTorch over gloo (cluster.json)
A plot whose files are missing is left out with a message.
"""

import argparse
import json
import pathlib
import sys

import cluster_tables
import matplotlib
import measure
import sparse_accuracy
import sparse_step
from cluster_runs import DENSE, DENSE_BF16, OURS, SPARSE

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  the drawing backend is chosen before

# Text stays text, so the file has no glyphs and readers can search it. The salt makes the same plot the same file.
plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gossamer", "font.size": 10, "axes.grid": True,
                     "grid.color": "#dddddd", "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False})
COLOURS = ["#c1272d", "#e58a8d", "#1c5fb0", "#6fa8dc", "#2e7d32", "#6a1b9a", "#9c6fc4", "#00838f", "#555555", "#a0762a"]
MARKERS = ["*", "*", "o", "o", "D", "s", "s", "s", "^", "v"]
STEP_STYLES = {tool: (COLOURS[i], MARKERS[i]) for i, tool in ((0, "gossamer in-batch"), (1, "gossamer sampled=2048"),
               (7, sparse_step.RIVAL), (3, "PyTorch sampled=2048, SparseAdam"), (6, sparse_step.DENSE), (5, "PyTorch dense f32"))}


def average(rows, pick):
    return sum(pick(row) for row in rows) / len(rows)


def accuracy(files):
    rows = [row for row in files["sparse_accuracy"]["rows"] if "failed" not in row]
    sets = [name for name in sparse_accuracy.SETS if any(row["set"] == name for row in rows)]
    figure, axes = plt.subplots(-(-len(sets) // 2), min(2, len(sets)), squeeze=False, layout="constrained",
                                figsize=(8.4, 1.6 + 2.9 * -(-len(sets) // 2)))
    for axis in axes.flat[len(sets):]:
        axis.set_visible(False)
    handles = {}
    for name, axis in zip(sets, axes.flat):
        for (tool, title), colour, marker in zip(sparse_accuracy.TITLES.items(), COLOURS, MARKERS):
            mine = [row for row in rows if row["set"] == name and row["tool"] == tool]
            if mine:
                point = average(mine, lambda r: r["train_cpu_s"]), average(mine, lambda r: r["metrics"]["P@1"])
                handles[title], = axis.plot(*point, marker, color=colour, markersize=13 if marker == "*" else 8, linestyle="none")
        axis.set(xscale="log", title=name, xlabel="training CPU, s", ylabel="P@1, %")
        axis.margins(0.12)
        plain_ticks(axis.xaxis)
    titles = [title for title in sparse_accuracy.TITLES.values() if title in handles]
    figure.legend([handles[title] for title in titles], titles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def plain_ticks(axis):
    """1, 10 and 100 in place of powers; 2 and 5 between them where the range is short."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1.0,) if high / low > 200 else (1.0, 2.0, 5.0)))
    axis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))


def step(files):
    figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
    rows = [row for row in files["sparse_step"]["results"] if not any("failed" in run for run in row["runs"])
            and (row["shape"]["hidden"], row["shape"]["batch"]) == (128, 256)]
    for tool, (colour, marker) in STEP_STYLES.items():
        points = sorted((row["shape"]["labels"], sparse_step.middle(row["runs"], "cpu_ms_per_step"))
                        for row in rows if row["tool"] == tool)
        if points:
            axis.plot(*zip(*points), marker + "-", color=colour, label=tool, markersize=12 if marker == "*" else 8)
    axis.set(xscale="log", yscale="log", xlabel="outputs", ylabel="CPU of a step, ms",
             title="A step of 256 samples, hidden width 128")
    axis.margins(0.1, 0.1)
    for each in (axis.xaxis, axis.yaxis):
        plain_ticks(each)
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    return figure


def work(run):
    """{phase: (floating point operations, least bytes from memory)} of our step.

    A: active output rows. U: embedding rows. B: samples. H: units. N: features of a sample.

    Pass 1 makes scores and the hidden gradient (4 A B H operations) and writes A B exponentials in bf16. Pass 2 reads
    them for the weights' gradient (2 A B H). Bags and their gradient take 2 B N H each. Rows are f32 and read once
    (4 bytes), or read and written by Adam. Adam has both moments of each weight (24 bytes, about 10 operations), or
    moments by blocks (12.5 bytes, about 9).
    """
    options = run["options"]
    h, b = options["hidden"], options["batch"]
    active, unique, entries = run["active_rows"] * h, run["unique_features"] * h, b * options["nnz"] * h
    scores = run["active_rows"] * b
    element, block = (24, 10), (12.5, 9)
    output_bytes, output_operations = block if options["moments"] == "block" else element
    embedding_bytes, embedding_operations = element if options["moments"] == "element" else block
    return {"embed": (2 * entries, 4 * unique), "forward": (4 * active * b, 4 * active + 2 * scores),
            "weights": (2 * active * b + output_operations * active, output_bytes * active + 2 * scores),
            "embedding": (2 * entries + embedding_operations * unique, embedding_bytes * unique)}


def phases(axis, results, peaks, isa):
    core = peaks[isa]
    fastest = max(core["bf16_gflops"], core["f32_gflops"])
    memory = peaks["memory_gb_per_s"]
    x = [10 ** (i / 20) for i in range(-20, 61)]
    axis.plot(x, [min(fastest, memory * i) for i in x], color="#333333", linewidth=1.5)
    axis.plot(x, [min(core["f32_gflops"], memory * i) for i in x], color="#333333", linewidth=1, linestyle=":")
    axis.text(0.11, fastest, "bf16", va="bottom", fontsize=8)
    axis.text(0.11, core["f32_gflops"], "f32", va="bottom", fontsize=8)
    colours = dict(zip(("embed", "forward", "weights", "embedding"), ("#00838f", "#c1272d", "#1c5fb0", "#a0762a")))
    markers = iter("osD^vP")
    for row in results:
        shape = row["shape"]
        if row["tool"] != "gossamer in-batch" or shape["labels"] != sparse_step.SHAPE["labels"]:
            continue
        marker = next(markers)
        axis.plot([], [], marker, color="#888888", linestyle="none", label=f"H {shape['hidden']}, B {shape['batch']}")
        for name, (operations, least) in work(row["runs"][0]).items():
            seconds = measure.median([run["phases_ms"][name] for run in row["runs"]]) / 1e3
            rate = operations / seconds / row["runs"][0]["threads"] / 1e9
            axis.plot(operations / least, rate, marker, color=colours[name], markersize=7)
    for name, colour in colours.items():
        axis.plot([], [], color=colour, linewidth=5, label=name)
    axis.set(xscale="log", yscale="log", xlabel="operations a byte, at least", ylabel="GFLOP/s, one core", xlim=(0.1, 1000),
             title="Phases of a step")
    axis.legend(loc="lower right", frameon=False, fontsize=8, ncols=2, columnspacing=1)
    for each in (axis.xaxis, axis.yaxis):
        plain_ticks(each)


def roofline(files):
    peaks, kernels = files["kernels"]["peaks"], files["kernels"]["kernels"]
    isa = files["sparse_step"]["results"][0]["runs"][0]["isa"]
    mine = sorted((row["share_of_peak"], row["kernel"], row["bound"]) for row in kernels if row["isa"] == isa)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 0.2 * len(mine) + 1.2), layout="constrained", width_ratios=(1.2, 1))
    phases(left, files["sparse_step"]["results"], peaks, isa)
    bounds = {"memory": "#6fa8dc", "f32": "#2e7d32", "bf16": "#c1272d", "bytes": "#6a1b9a"}
    right.barh([name for _, name, _ in mine], [100 * share for share, _, _ in mine], color=[bounds[bound] for *_, bound in mine])
    right.axvline(100, color="#333333", linewidth=1)
    right.tick_params(axis="y", labelsize=7.5, length=0)
    right.grid(axis="y", visible=False)
    right.margins(y=0.01)
    right.set(title=f"Kernels, {isa}", xlabel="% of the bound; in the cache, more")
    right.legend([plt.Rectangle((0, 0), 1, 1, color=colour) for colour in bounds.values()], bounds, loc="lower right",
                 frameon=False, fontsize=8, title="bound", title_fontsize=8)
    return figure


def cluster(files):
    rows = [row for row in files["cluster"]["cells"] if row["kind"] == "steps" and row["nodes"] == 4
            and cluster_tables.of(row, "step_s")]
    delays = sorted({row["rtt_ms"] for row in rows})
    figure, axes = plt.subplots(1, len(delays), figsize=(9.5, 4), layout="constrained", sharey=True, squeeze=False)
    for rtt, axis in zip(delays, axes[0]):
        for tool, colour, marker in ((OURS, 0, "*"), (SPARSE, 7, "s"), (DENSE_BF16, 6, "s"), (DENSE, 5, "s")):
            mine = sorted((row for row in rows if (row["rtt_ms"], row["tool"]) == (rtt, tool)), key=lambda row: row["rate_mbps"])
            rates = [row["rate_mbps"] for row in mine]
            axis.plot(rates, [1e3 * cluster_tables.of(row, "step_s") for row in mine], marker + "-", color=COLOURS[colour],
                      label=tool, markersize=12 if marker == "*" else 7)
            axis.plot(rates, [1e3 * cluster_tables.bound_s(row) for row in mine], ":", color=COLOURS[colour])
        axis.set(xscale="log", yscale="log", xlabel="Mb/s of a node", title=f"RTT {rtt} ms")
        plain_ticks(axis.xaxis)
    axes[0][0].set_ylabel("ms a step; dotted: its bound")
    plain_ticks(axes[0][0].yaxis)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


PLOTS = {accuracy: ["sparse_accuracy"], step: ["sparse_step"], roofline: ["sparse_step", "kernels"], cluster: ["cluster"]}
CAPTIONS = {accuracy: "Training CPU against P@1", step: "CPU of a step against outputs",
            roofline: "Phases of a step and kernels against the bounds of one core",
            cluster: "A step on four nodes against the rate of their links"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="source", type=pathlib.Path, default=measure.ROOT / "build/bench")
    parser.add_argument("--to", type=pathlib.Path, default=measure.ROOT / "docs/images")
    parser.add_argument("--format", default="svg", choices=["svg", "png"])
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    for plot, needed in PLOTS.items():
        paths = {name: arguments.source / f"{name}.json" for name in needed}
        if missing := [str(path) for path in paths.values() if not path.exists()]:
            print(f"{plot.__name__}: left out, there is no {', '.join(missing)}", file=sys.stderr)
            continue
        figure = plot({name: json.loads(path.read_text()) for name, path in paths.items()})
        target = arguments.to / f"bench-{plot.__name__}.{arguments.format}"
        figure.savefig(target, dpi=110, metadata={"Date": None} if arguments.format == "svg" else None)
        if arguments.format == "svg":  # matplotlib ends lines with blanks
            target.write_text("\n".join(line.rstrip() for line in target.read_text().splitlines()) + "\n")
        if arguments.write:
            measure.write_table(f"plot-{plot.__name__}", [f"![{CAPTIONS[plot]}](images/{target.name})"])
        print(f"{target} {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
