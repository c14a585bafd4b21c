# SPDX-License-Identifier: Apache-2.0
"""The sparse engine on several slow-linked nodes, against what people would pick instead, in tools/lab. Needs root.

cluster.py [--only steps,acl,quality,scaling,exchange,staleness,uneven,recovery,simulated]
           [--add] [--rounds N] [--quick] [--write]

steps     a step at Amazon-670K's shape: 1, 2 and 4 nodes, 100 Mb/s to 10 Gb/s, RTT 0 and 20 ms; also with the
          exchange of D-SLIDE in our own program (docs/protocols/sparse-step.md)
acl       the same on acl-authors ($GOSSAMER_DATA)
quality   seconds to the same P@1 on acl-authors, 4 nodes, 1 Gb/s; with acl, whose steps it needs
scaling   a large batch on 4 nodes, with two bytes for an exchanged number and with one; also on 1 node, which has the
          machine to itself, or has three nodes beside it that train for themselves
exchange  what one exchange of a step takes beside the one-way delay
staleness a step with and without the next one in flight, B = 1024, RTT 20 ms, at two quotas
uneven    one of four nodes gets a quarter of the others' CPU while the run goes on
recovery  one of four nodes is killed, at the size of `make demo`; what snapshots send, against recovery
simulated a step on 8 nodes in virtual time (`gossamer simulate sparse-steps`); they compute for as long as the nodes
          of `steps` suggest; needs no lab

Nodes have equal quotas of CPU except where it says otherwise. Tools alternate within a lab. --quick runs a few short
cells, to see that all of it works. --add keeps the figures of other kinds that this machine has measured
(build/bench/cluster.json has the commit of each). --write updates docs/benchmarks.md.
"""

import argparse
import json
import os
import pathlib
import signal
import sys
import tempfile
import time

import cluster_lab
import cluster_runs
import cluster_tables
import measure
from cluster_runs import DENSE, DENSE_BF16, DSLIDE, FLEETS, OURS, SPARSE

KINDS = ("steps", "acl", "quality", "scaling", "exchange", "staleness", "uneven", "recovery", "simulated")
HIDDEN, BATCH, MIDDLE_BATCH, LARGE_BATCH = 128, 256, 1024, 4096
CORES = 0.4  # of a node: four of them leave room for the links and the coordinator on two cores
# The queue that delays packets needs CPU too, and full quotas leave next to none for it. With lower quotas, nodes reach
# nearly what they are allowed.
FEWER_CORES = 0.3
CODECS = ("bf16", "int8")  # the default first
RATES, RTTS = (10_000, 1000, 100), (0, 20)
RECORDS = 40_000
SNAPSHOT_KEY, SNAPSHOTS = "cluster.snapshot_every", (16, 64, None, 256)  # None: the default,
DEFAULT_SNAPSHOT = 96  # which is this at the size of `make demo` (src/commands/train_fleet/fleet_plan.cc)
# Steps of our program from one snapshot to the next, by default at that size (src/commands/train_fleet/fleet_plan.cc).
SNAPSHOT_STEPS = {("amazon", BATCH): 792, ("amazon", MIDDLE_BATCH): 198, ("amazon", LARGE_BATCH): 96, ("acl-authors", BATCH): 384}
# Until a tool is steady: steps before the quota holds, and steps after it. Then the seconds and steps that are measured.
# Our program is measured from its second snapshot on. Until then copies are new to the keepers' memory, and the step log
# is new to every node's. As many steps are measured as lie between two snapshots.
PACE = {SPARSE: (3, 2, 4.0, 6), DENSE: (1, 0, 0.0, 2), DENSE_BF16: (1, 0, 0.0, 2)}
SETTLE = {BATCH: 64, MIDDLE_BATCH: 24, LARGE_BATCH: 24}
ALONE_STEPS = 32  # of a large batch: one node has no snapshots
SLOW_MBPS = 100  # one dense step takes a minute there: one is measured
LIMIT_S = 400
KILL_AT = (0.05, 0.5, 0.97)  # of the steps from one snapshot to the next: while it is on its way, halfway, and before the next
UNEVEN_S = 60
SIMULATED_NODES = 8
SIMULATED_SHAPE = {"features": 135_909, "labels": 670_091, "nonzeros": 75}  # Amazon-670K


def settings(batch, **more):
    return {"model.hidden": HIDDEN, "train.batch": batch, **more}


def cell(kind, data, nodes, rate, rtt, tool, batch=BATCH, cores=CORES, beside=0, **keys):
    """One cell of the table. `beside`: so many nodes train for themselves meanwhile."""
    return {"kind": kind, "data": data, "nodes": nodes, "rate_mbps": rate, "rtt_ms": rtt, "tool": tool, "batch": batch,
            "hidden": HIDDEN, "cores": cores, "beside": beside, "keys": keys, "runs": []}


def peers_of(kind, nodes, rate, rtt):
    """The peers of a cell.

    Dense layers take minutes on slow lines, so they run where goals are, and once with a delay. One node exchanges nothing.
    """
    sparse = (DSLIDE, SPARSE) if nodes > 1 else (SPARSE,)
    everywhere = (*sparse, DENSE_BF16, DENSE)
    if rate == 1000 and rtt == 0:
        return everywhere
    if kind == "acl":
        return ()
    return everywhere if nodes == 4 and (rtt == 0 or rate == 1000) else sparse


def step_cells(kind, data, quick):
    if quick:
        yield from (cell(kind, data, 4, 1000, 0, tool) for tool in (OURS, DSLIDE, SPARSE))
        return
    links = [(1, 1000, 0), *((nodes, rate, rtt) for nodes in (2, 4) for rate in RATES for rtt in RTTS)]
    for nodes, rate, rtt in links:
        yield from (cell(kind, data, nodes, rate, rtt, tool) for tool in (OURS, *peers_of(kind, nodes, rate, rtt)))


def cells(kind, arguments):
    if kind == "steps":
        yield from step_cells(kind, "amazon", arguments.quick)
    elif kind == "acl":
        yield from step_cells(kind, "acl-authors", arguments.quick)
    elif kind == "scaling":
        yield from (cell(kind, "amazon", 1, 1000, 0, OURS, LARGE_BATCH, beside=beside) for beside in (0, 3))
        yield from (cell(kind, "amazon", 4, 1000, 0, OURS, LARGE_BATCH, **{"cluster.codec": codec}) for codec in CODECS)
    elif kind == "exchange":
        yield cell(kind, "amazon", 4, 1000, 20, OURS, cores=None)
    elif kind == "staleness":
        yield from (cell(kind, "amazon", 4, 1000, 20, OURS, MIDDLE_BATCH, cores, **{"cluster.staleness": steps})
                    for cores in (CORES, FEWER_CORES) for steps in (0, 1))


def pace_of_ours(one):
    every, settle = SNAPSHOT_STEPS[one["data"], one["batch"]], SETTLE[one["batch"]]
    if one["nodes"] == 1 and one["batch"] == LARGE_BATCH:
        return settle, settle // 2, 0.0, ALONE_STEPS
    if one["tool"] == DSLIDE:
        return 40, 34, 0.0, 96  # none of which has a snapshot, as steps at 100 Mb/s take long
    return 2 * every + settle // 2, settle // 2, 0.0, every


def run_cell(here, data, one, folder):
    """Runs a cell's tool once. Returns what a step costs."""
    before, settle, seconds, least = PACE[one["tool"]] if one["tool"] in PACE else pace_of_ours(one)
    if one["tool"] in (DENSE, DENSE_BF16) and one["rate_mbps"] <= SLOW_MBPS:
        least = 1
    nodes = range(1, one["nodes"] + one["beside"] + 1)
    try:
        others = [cluster_runs.start_alone(here, data, settings(one["batch"], **one["keys"]), node, folder.parent / f"beside-{node}")
                  for node in nodes[one["nodes"]:]]
        fleet = cluster_runs.start(one["tool"], here, data, settings(one["batch"], **one["keys"]), one["nodes"], folder)
        fleet.steps.wait(before, LIMIT_S, fleet.members)
        if one["cores"]:
            for node in nodes:
                here.limit(node, one["cores"])
        if settle:
            fleet.steps.wait(fleet.steps.done + settle, LIMIT_S, [*fleet.members, *others])
        found = cluster_lab.observe(here, fleet.steps, fleet.members, seconds=seconds, least_steps=least, limit_s=LIMIT_S,
                                    pages=one["tool"] in FLEETS, just_done=settle == 0)
        cluster_lab.must_live(others)
        return found
    finally:
        here.kill_all()
        for node in nodes:
            here.limit(node, None)


def run_cells(rows, sets, folder, rounds, keep):
    """Runs some cells. Those with the same links share one lab, in which tools alternate."""
    groups = {}
    for one in rows:
        groups.setdefault((one["rate_mbps"], one["rtt_ms"]), []).append(one)
    for (rate, rtt), group in groups.items():
        with cluster_lab.lab(1 + max(one["nodes"] + one["beside"] for one in group), rate, rtt) as here:
            for number in range(rounds):
                for one in group:
                    if number and one["tool"] in (DENSE, DENSE_BF16) or any("failed" in run for run in one["runs"]):
                        continue
                    one["runs"].append(attempt(lambda: run_cell(here, sets[one["data"]], one, folder / "run")))
                    say(one)
                    keep()


def attempt(measured):
    """What measured() gives, or {"failed": why}. A failure must not cost the rest of an hour's results."""
    try:
        return measured()
    except measure.Failed as failure:
        print(failure, file=sys.stderr, flush=True)
        return {"failed": str(failure)}


def say(one):
    last = one["runs"][-1]
    if "failed" in last:
        return
    print(f"{one['kind']} n={one['nodes']}+{one['beside']} {one['cores']} cores {one['rate_mbps']} Mb/s RTT {one['rtt_ms']} B={one['batch']} {one['tool']}: "
          f"{1e3 * last['step_s']:.1f} ms, sent {last['sent_bytes'] / 1e3:.0f} kB, CPU {1e3 * last['cpu_s']:.1f} ms "
          f"(computing {1e3 * last['computing_s']:.1f}, wants a CPU {1e3 * last['queued_s']:.1f}, waits "
          f"{1e3 * last['asleep_s']:.1f}, {last['idle_cores']:.2f} cores idle) [load {last['load']:.1f}]", file=sys.stderr, flush=True)


def run_quality(sets, folder, steps_of, keep, quick):
    """P@1 after several lengths of training, and the time of a step in the lab. Together they give seconds to a P@1.

    One process trains these lengths, and does the same as four nodes. So no tool pays for evaluation.
    """
    data = sets["acl-authors"]
    epoch = data.shape["records"] // BATCH
    lengths = {OURS: (0.5, 1, 2, 4, 8), SPARSE: (1, 2, 4), DENSE_BF16: (1, 2)}
    if quick:
        lengths = {OURS: (0.1,), SPARSE: (0.1,)}
    for tool, epochs in lengths.items():
        for count in epochs:
            steps = round(count * epoch)
            if tool == OURS:
                found = cluster_runs.precision_of_ours(data, HIDDEN, BATCH, steps)
            else:
                found = cluster_runs.precision_of_peer(tool, data, HIDDEN, BATCH, steps, 4)
            steps_of.append({"tool": tool, "steps": steps, "P@1": found})
            print(f"quality {tool}: P@1 {found:.2f} after {steps} steps", file=sys.stderr, flush=True)
            keep()


def run_uneven(data, folder, quick):
    """The time of a step on four equal nodes, and again after one became weak and parts have moved."""
    every = SNAPSHOT_STEPS["amazon", LARGE_BATCH]
    with cluster_lab.lab(5, 1000, 0) as here:
        fleet = cluster_runs.start(OURS, here, data, settings(LARGE_BATCH), 4, folder / "run")
        fleet.steps.wait(every, LIMIT_S, fleet.members)
        for node in range(1, 5):
            here.limit(node, CORES)
        fleet.steps.wait(fleet.steps.done + 16, LIMIT_S, fleet.members)
        even = cluster_lab.observe(here, fleet.steps, fleet.members, seconds=0, least_steps=every, limit_s=LIMIT_S)
        here.limit(4, CORES / 4)
        since = time.monotonic()
        first = len(fleet.steps.arrivals)
        while time.monotonic() < since + (10 if quick else UNEVEN_S):
            fleet.steps.wait_for_next(LIMIT_S, fleet.members)
        worst = cluster_tables.paces(fleet.steps.arrivals[first:], since)
        weak = cluster_lab.observe(here, fleet.steps, fleet.members, seconds=0, least_steps=every, limit_s=LIMIT_S)
        events = cluster_runs.coordinator_events(fleet)
    return {"even": even, "weak": weak, "paces": worst, "placements": sum(event["event"] == "installed" for event in events)}


def run_recovery(data, folder, every, kill_at):
    """Kills one of four nodes. Returns seconds from the last step before to the first after, less a median step."""
    more = {} if every is None else {SNAPSHOT_KEY: every}
    steps = every or DEFAULT_SNAPSHOT
    with cluster_lab.lab(5, 1000, 0) as here:
        fleet = cluster_runs.start(OURS, here, data, settings(1024, **more), 4, folder / "run")
        fleet.steps.wait(max(steps, 64), LIMIT_S, fleet.members)
        cost = cluster_lab.observe(here, fleet.steps, fleet.members, seconds=0, least_steps=steps, limit_s=LIMIT_S, pages=True)
        # Before the kill the next snapshot has begun. Either it is on its way, or only its steps must be computed anew.
        fleet.steps.wait((fleet.steps.done // steps + 1) * steps + round(kill_at * steps), LIMIT_S, fleet.members)
        victim, *others = fleet.members
        killed, done = time.monotonic(), fleet.steps.done
        wall = time.time()  # as events have it
        before = cluster_lab.read(here, fleet.steps, others, False)
        victim.process.kill()
        while not cluster_runs.told_recovery(fleet, done):
            fleet.steps.wait_for_next(LIMIT_S, others)
        after = cluster_lab.read(here, fleet.steps, others, False)
        computing = max(cluster_lab.computing_thread(one, before, after)[0] for one in others)
        fleet.steps.wait(done + 20, LIMIT_S, others)
        events = [event for event in cluster_runs.coordinator_events(fleet) if event["time"] >= wall]
        noticed = next((event["time"] - wall for event in events if event["event"] == "lost"), None)
        seconds = cluster_tables.longest_gap(fleet.steps.arrivals, killed) - cost["step_s"]
        told = cluster_runs.told_recovery(fleet, done)
    return {"snapshot_every": every, "cost": cost, "seconds": seconds, "noticed_s": noticed, "computing_s": computing, "told": told,
            "events": events, "step": done}


def simulate_step(rate, rtt, compute_s, nodes=SIMULATED_NODES, batch=BATCH, staleness=0):
    """One cell: what the simulation says of a step. Its computing takes `compute_s` seconds (None: nothing)."""
    keys = {"members": nodes, "units": HIDDEN, "batch": batch, **SIMULATED_SHAPE, "rate_mbps": rate, "rtt_ms": rtt,
            "compute_ms": 1e3 * (compute_s or 0), "staleness": staleness}
    words = [f"{key}={value}" for key, value in keys.items()]
    done, _ = measure.run([measure.binary(), "simulate", "sparse-steps", *words, "--json", "--quiet"], limit_s=LIMIT_S)
    return {"rate_mbps": rate, "rtt_ms": rtt, "nodes": nodes, "batch": batch, "hidden": HIDDEN, "compute_s": compute_s,
            "figures": json.loads(done)["figures"]}


def run_simulated(result, keep, quick):
    compute_s = cluster_tables.computing_expected(result, SIMULATED_NODES)
    rows = result["simulated"] = []
    for rate, rtt in ((1000, 20),) if quick else [(rate, rtt) for rate in RATES for rtt in RTTS]:
        rows.append(attempt(lambda: simulate_step(rate, rtt, compute_s)))
        keep()


def simulate_staleness(rows):
    """The same steps in virtual time. Each node has a CPU of its own, which computes for the measured time."""
    for row in rows:
        if compute_s := cluster_tables.computing_at_quota(row):
            row["simulated"] = attempt(lambda: simulate_step(row["rate_mbps"], row["rtt_ms"], compute_s, row["nodes"], row["batch"],
                                                             row["keys"]["cluster.staleness"]))


def run_kind(kind, result, sets, folder, arguments, keep):
    if kind == "quality":
        run_quality(sets, folder, result.setdefault("quality", []), keep, arguments.quick)
    elif kind == "simulated":
        run_simulated(result, keep, arguments.quick)
    elif kind == "uneven":
        result["uneven"] = [attempt(lambda: run_uneven(sets["amazon"], folder, arguments.quick))]
    elif kind == "recovery":
        rows = result.setdefault("recovery", [])
        for every in ((None,) if arguments.quick else SNAPSHOTS):
            for kill_at in KILL_AT[:1 if arguments.quick else None]:
                rows.append(attempt(lambda: run_recovery(sets["demo"], folder, every, kill_at)))
                print("recovery", every or "default", rows[-1].get("seconds"), file=sys.stderr, flush=True)
                keep()
    else:
        rows = list(cells(kind, arguments))
        result["cells"] += rows
        rounds = 1 if arguments.quick or kind == "acl" else arguments.rounds + (kind == "scaling")
        run_cells(rows, sets, folder, rounds, keep)
        if kind == "staleness":
            simulate_staleness(rows)
    keep()


def begun(arguments):
    """A result to begin with: without figures, or with those of kinds that are not measured now."""
    result = {"machine": measure.machine(), "commits": {}, "data": {}, "cells": []}
    path = measure.ROOT / "build/bench/cluster.json"
    earlier = json.loads(path.read_text()) if arguments.add and path.exists() else {}
    if earlier.get("machine") == result["machine"]:
        kept = set(KINDS) - set(arguments.only)
        result["cells"] = [one for one in earlier["cells"] if one["kind"] in kept]
        result["data"] = earlier["data"]
        result["commits"] = {kind: commit for kind, commit in earlier["commits"].items() if kind in kept}
        result.update({kind: earlier[kind] for kind in ("quality", "uneven", "recovery", "simulated") if kind in kept and kind in earlier})
    result["commits"].update({kind: measure.commit() for kind in arguments.only})
    return result


def needed_sets(kinds, folder, count):
    """{name: Data} of what the kinds train on."""
    sets = {}
    if {"steps", "scaling", "exchange", "staleness", "uneven"} & set(kinds):
        sets["amazon"] = cluster_runs.made_up("amazon", count, folder / "amazon")
    if "recovery" in kinds:
        sets["demo"] = cluster_runs.made_up("demo", count, folder / "demo")
    if {"acl", "quality"} & set(kinds):
        sets["acl-authors"] = cluster_runs.acl_authors(folder / "acl-authors")
    return sets


def parse():
    def words(text):
        chosen = text.split(",")
        if unknown := set(chosen) - set(KINDS):
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: expected some of {', '.join(KINDS)}")
        return chosen
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=list(KINDS), type=words, metavar="KIND,...")
    parser.add_argument("--add", action="store_true", help="to what was measured before, of other kinds")
    parser.add_argument("--rounds", default=2, type=int, help="runs of each cell, alternating; of dense layers one")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


def main():
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # labs are taken down
    os.environ.setdefault("GOSSAMER_DELAY_QUEUE", str(measure.ROOT / "build/release/tools/lab/delay_queue"))
    if set(arguments.only) != {"simulated"} and (missing := cluster_lab.can_work()):
        sys.exit(f"the lab cannot work here (bench/cluster.py needs root):\n{missing}")
    begin = time.monotonic()
    result = begun(arguments)

    def keep():
        result["minutes"] = (time.monotonic() - begin) / 60
        measure.save("cluster", result)
    with tempfile.TemporaryDirectory(prefix="gossamer-cluster-") as scratch:
        folder = pathlib.Path(scratch)
        sets = needed_sets(arguments.only, folder, RECORDS)
        result["data"].update({name: data.shape for name, data in sets.items() if data})
        for kind in arguments.only:
            if kind in ("acl", "quality") and sets["acl-authors"] is None:
                print(f"{kind}: skipped, $GOSSAMER_DATA has no acl-authors", file=sys.stderr)
                continue
            run_kind(kind, result, sets, folder, arguments, keep)
    for name, lines in cluster_tables.tables(result).items():
        print("\n".join(["", name, *lines]), flush=True)
        if arguments.write:
            measure.write_table(name, lines)


if __name__ == "__main__":
    main()
