# SPDX-License-Identifier: Apache-2.0
"""Shows what cluster.py found as tables, beside the goals and what the links allow. Measures nothing."""

import measure
from cluster_runs import DENSE, DENSE_BF16, FLEETS, OURS, SPARSE

HEADERS = 1514 / 1448  # what Ethernet, IP and TCP with time stamps make of a line
F32, BF16 = 4, 2
EXCHANGES = 3  # of a step of ours, with one hidden layer
GOAL_BYTES, GOAL_EXCHANGE, GOAL_STALENESS, GOAL_SCALING, GOAL_UNEVEN, GOAL_RECOVERY_S = 1.15, 1.3, 1.1, 2.8, 1.15, 2.0
GOALS_OVER_DENSE = {1000: 300, 100: 1000}  # at RTT 0, by Mb/s
GOAL_OVER_SPARSE = 5


def step_bytes(nodes, batch, hidden, number):
    """Bytes that a node has to send in a step: hidden activations and gradients of `number` bytes each, loss shares."""
    return 2 * (nodes - 1) / nodes * batch * hidden * number + 8 * batch * (nodes - 1)


def transfer_s(size, rate_mbps):
    return size * HEADERS * 8 / (rate_mbps * 1e6)


def of(row, key):
    """The median over runs; None when there is none."""
    values = [run[key] for run in row["runs"] if run.get(key) is not None]
    return measure.median(values) if values else None


def bound_s(row):
    """The least seconds of a step with its own CPU and bytes: the quota, or computing, delays and transfer in turn.

    Our program's bytes are those of steps, because snapshots go beside them. A peer's two collectives take at least a
    one-way delay each.
    """
    cores = row["cores"] or 1
    if row["nodes"] == 1:
        return max(of(row, "most_cpu_s") / cores, of(row, "most_computing_s"))
    ours = row["tool"] in FLEETS
    size = of(row, "step_bytes") if ours and of(row, "step_bytes") else of(row, "sent_bytes") / HEADERS
    delays = (EXCHANGES if ours else 2) * row["rtt_ms"] / 2e3
    return max(of(row, "most_cpu_s") / cores, of(row, "most_computing_s") + delays + transfer_s(size, row["rate_mbps"]))


def longest_gap(arrivals, since):
    """Seconds of the longest time without a new step that ends after the moment `since`."""
    return max(b[0] - a[0] for a, b in zip(arrivals, arrivals[1:]) if b[0] > since)


def paces(arrivals, since, window_s=2.0):
    """[(seconds since, seconds a step)], window after window."""
    found, begin = [], arrivals[0]
    for one in arrivals:
        if one[0] - begin[0] >= window_s:
            found.append((one[0] - since, (one[0] - begin[0]) / (one[1] - begin[1])))
            begin = one
    return found


def milliseconds(seconds):
    return "" if seconds is None else f"{1e3 * seconds:.1f}" if seconds < 1 else f"{1e3 * seconds:,.0f}"


def kilobytes(size):
    return "" if size is None else f"{size / 1e3:,.0f}"


def heading(*columns):
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]


def measured(result, kind):
    return [row for row in result["cells"] if row["kind"] == kind and row["runs"]]


def same(rows, row, **other):
    """The row that differs from `row` in these values alone, if it was measured."""
    keys = ("data", "nodes", "rate_mbps", "rtt_ms", "batch", "tool")
    wanted = {**{key: row[key] for key in keys}, **other}
    found = [one for one in rows if all(one[key] == wanted[key] for key in keys) and of(one, "step_s")]
    return found[0] if found else None


def steps_table(result, kind):
    rows = measured(result, kind)
    lines = heading("nodes", "Mb/s", "RTT ms", "tool", "ms a step", "the median one", "bound", "over ours", "kB sent a step",
                    "of these by its own count: step, background", "CPU ms a step", "computes", "wants a CPU", "waits")
    for row in rows:
        head = f"| {row['nodes']} | {row['rate_mbps'] if row['nodes'] > 1 else ''} | {row['rtt_ms'] if row['nodes'] > 1 else ''} | {row['tool']} |"
        step = of(row, "step_s")
        if step is None:
            lines.append(f"{head} failed: {measure.cell(row['runs'][-1]['failed'])} | | | | | | | | | |")
            continue
        ours = same(rows, row, tool=OURS)
        over = measure.times(step / of(ours, "step_s")) if ours else ""
        own = ", ".join(filter(None, (kilobytes(of(row, "step_bytes")), kilobytes(of(row, "background_bytes")))))
        times = " | ".join(milliseconds(of(row, key)) for key in ("cpu_s", "computing_s", "queued_s", "asleep_s"))
        lines.append(f"{head} {milliseconds(step)} | {milliseconds(of(row, 'median_step_s'))} | {milliseconds(bound_s(row))} | {over} | {kilobytes(of(row, 'sent_bytes'))} | "
                     f"{own} | {times} |")
    return lines


def goals_table(result):
    """The goals of a step on four nodes."""
    rows = measured(result, "steps")
    lines = heading("goal, 4 nodes", "asked", "found", "reached")

    def add(what, asked, found, reached, digits=".0f"):
        lines.append(f"| {what} | {asked} | {found:{digits}} | {'yes' if reached else 'no'} |")
    for row in rows:
        if row["tool"] != OURS or row["nodes"] != 4 or of(row, "step_s") is None:
            continue
        where = f"{row['rate_mbps']} Mb/s, RTT {row['rtt_ms']} ms"
        if row["rtt_ms"] == 0:
            for tool in (DENSE, DENSE_BF16):
                other, least = same(rows, row, tool=tool), GOALS_OVER_DENSE.get(row["rate_mbps"])
                if other and least:
                    ratio = of(other, "step_s") / of(row, "step_s")
                    add(f"{tool} over ours, {where}", f">= {least}", ratio, ratio >= least)
            other = same(rows, row, tool=SPARSE)
            if other and row["rate_mbps"] in GOALS_OVER_DENSE:
                ratio = of(other, "step_s") / of(row, "step_s")
                add(f"{SPARSE} over ours, {where}", f">= {GOAL_OVER_SPARSE}", ratio, ratio >= GOAL_OVER_SPARSE, ".1f")
        if (row["rate_mbps"], row["rtt_ms"]) == (1000, 0) and of(row, "step_bytes"):
            for number, name in ((BF16, "bf16"), (F32, "f32")):
                least = GOAL_BYTES * step_bytes(row["nodes"], row["batch"], row["hidden"], number)
                size = of(row, "step_bytes")
                add(f"kB of a step, as for {name}", f"<= {least / 1e3:.0f}", size / 1e3, size <= least)
    return lines


def exchange_table(result):
    lines = heading("Mb/s", "RTT ms", "the median step ms", "computes, at most", "one exchange ms", "one-way delay and bytes", "asked", "reached")
    for row in measured(result, "exchange"):
        if of(row, "step_s") is None:
            continue
        one = (of(row, "median_step_s") - of(row, "most_computing_s")) / EXCHANGES
        delay, sending = row["rtt_ms"] / 2e3, transfer_s(of(row, "step_bytes") or of(row, "sent_bytes"), row["rate_mbps"]) / EXCHANGES
        asked = GOAL_EXCHANGE * delay + sending
        lines.append(f"| {row['rate_mbps']} | {row['rtt_ms']} | {milliseconds(of(row, 'median_step_s'))} | "
                     f"{milliseconds(of(row, 'most_computing_s'))} | {milliseconds(one)} | {milliseconds(delay + sending)} | "
                     f"<= {milliseconds(asked)} | {'yes' if one <= asked else 'no'} |")
    return lines


def computing_at_quota(row):
    """CPU seconds of a step of the busiest node; None when that was not measured."""
    if of(row, "step_s") is None:
        return None
    return max(of(row, "most_cpu_s") / (row["cores"] or 1), of(row, "most_computing_s"))


def staleness_table(result):
    """The table of staleness. With two steps in flight, the delays of one pass while the other computes.

    A step then takes max(compute, half of (three delays + compute)).
    """
    lines = heading("cores a node", "of these used", "of the machine idle", "steps in flight", "ms a step", "its CPU at the quota", "bound",
                    "over the bound", "asked", "in virtual time: ms", "over its bound")
    for row in measured(result, "staleness"):
        compute = computing_at_quota(row)
        if compute is None:
            continue
        stale = row["keys"]["cluster.staleness"]
        in_turn = compute + EXCHANGES * row["rtt_ms"] / 2e3
        bound = max(compute, in_turn / 2) if stale else in_turn
        figures = row.get("simulated", {}).get("figures")
        idle = of(row, "idle_cores")
        virtual = f"{milliseconds(figures['seconds_per_step'])} | {figures['seconds_per_step'] / figures['least_seconds_per_step']:.2f}" if figures else " | "
        lines.append(f"| {row['cores']} | {of(row, 'cpu_s') / of(row, 'step_s'):.2f} | {'' if idle is None else f'{idle:.2f}'} | {1 + stale} | "
                     f"{milliseconds(of(row, 'step_s'))} | {milliseconds(compute)} | {milliseconds(bound)} | "
                     f"{of(row, 'step_s') / bound:.2f} | {f'<= {GOAL_STALENESS:.2f}' if stale else ''} | {virtual} |")
    return lines


def scaling_table(result):
    """The table of scaling.

    Four nodes of one machine share its caches and its memory. So a node that has them to itself is no fair comparison.
    """
    rows = [row for row in measured(result, "scaling") if of(row, "step_s") is not None]
    lines = heading("nodes", "beside it", "codec", "ms a step", "the median one", "bound", "CPU ms a node", "times as fast as one", "as one beside others", "its bound", "asked")
    one, beside = (next((row for row in rows if row["nodes"] == 1 and bool(row.get("beside")) == others), None) for others in (False, True))

    def faster(than, seconds):
        return f"{of(than, 'step_s') / seconds:.2f}" if than else ""
    for row in rows:
        step_s = of(row, "step_s")
        lines.append(f"| {row['nodes']} | {row.get('beside') or ''} | {row['keys'].get('cluster.codec', '')} | {milliseconds(step_s)} | {milliseconds(of(row, 'median_step_s'))} | {milliseconds(bound_s(row))} | {milliseconds(of(row, 'cpu_s'))} | "
                     f"{faster(one, step_s)} | {faster(beside, step_s)} | {faster(beside, bound_s(row))} | "
                     f"{f'>= {GOAL_SCALING}' if row['nodes'] > 1 else ''} |")
    return lines


def computing_expected(result, nodes):
    """Seconds that a node computes in a step of our program, from 1 and 4 measured nodes.

    They are a part that every node does, and a part that nodes share. If only one of the two was measured, all counts as
    shared. None when neither was measured.
    """
    found = {row["nodes"]: of(row, "computing_s") for row in measured(result, "steps")
             if row["tool"] == OURS and (row["rate_mbps"], row["rtt_ms"]) == (1000, 0)}
    one, four = found.get(1), found.get(4)
    if one is not None and four is not None:
        shared = max(0.0, (one - four) * 4 / 3)
        return max(0.0, one - shared) + shared / nodes
    return one / nodes if one is not None else four * 4 / nodes if four is not None else None


def simulated_table(result):
    lines = heading("nodes", "Mb/s", "RTT ms", "computing, assumed ms", "ms a step", "bound", "over the bound", "kB sent a step", "bound kB",
                    "one-way delays an exchange")
    for row in result.get("simulated", []):
        if "failed" in row:
            continue
        figures = row["figures"]
        step, least = figures["seconds_per_step"], figures["least_seconds_per_step"]
        compute = "none: not measured" if row["compute_s"] is None else milliseconds(row["compute_s"])
        delays = f"{figures['delays_per_exchange']:.3f}" if row["rtt_ms"] else ""
        lines.append(f"| {row['nodes']} | {row['rate_mbps']} | {row['rtt_ms']} | {compute} | {1e3 * step:.2f} | {1e3 * least:.2f} | "
                     f"{step / least:.3f} | {figures['bytes_per_step'] / 1e3:.1f} | {figures['least_bytes_per_step'] / 1e3:.1f} | {delays} |")
    return lines


def quality_table(result):
    """Seconds to the P@1 that the dense softmax ends with."""
    lines = heading("tool", "steps", "P@1 of the network", "ms a step, 4 nodes, 1 Gb/s", "seconds", "over ours at that P@1 or more")
    found = result.get("quality", [])
    step = {row["tool"]: of(row, "step_s") for row in measured(result, "acl")
            if (row["nodes"], row["rate_mbps"], row["rtt_ms"]) == (4, 1000, 0)}

    def seconds(one):
        return one["steps"] * step[one["tool"]] if step.get(one["tool"]) else None
    mine = [one for one in found if one["tool"] == OURS and seconds(one)]
    for one in found:
        took = seconds(one)
        as_good = [seconds(other) for other in mine if other["P@1"] >= one["P@1"]]
        over = measure.times(took / min(as_good)) if took and as_good and one["tool"] != OURS else ""
        lines.append(f"| {one['tool']} | {one['steps']:,} | {one['P@1']:.1f} | {milliseconds(step.get(one['tool']))} | "
                     f"{'' if took is None else f'{took:,.0f}'} | {over} |")
    return lines


def uneven_table(result):
    lines = heading("ms a step, equal nodes", "one with a quarter: first", "after a minute", "ideal", "over ideal", "asked")
    for run in result.get("uneven", []):
        if "failed" in run:
            continue
        even, weak = run["even"]["step_s"], run["weak"]["step_s"]
        ideal = even * 4 / 3.25
        lines.append(f"| {milliseconds(even)} | {milliseconds(run['paces'][0][1]) if run['paces'] else ''} | {milliseconds(weak)} | "
                     f"{milliseconds(ideal)} | {weak / ideal:.2f} | <= {GOAL_UNEVEN} |")
    return lines


def recovery_table(result):
    lines = heading("snapshot every, steps", "ms a step", "kB a step: step, background", "recovery s, median", "most",
                    "of the longest: noticed, load, compute anew", "steps computed anew", "a survivor computes, s", "asked")
    runs = {}
    for run in result.get("recovery", []):
        if "failed" not in run:
            runs.setdefault(run["snapshot_every"], []).append(run)
    for every, found in runs.items():
        row = {"runs": [run["cost"] for run in found]}
        seconds = [run["seconds"] for run in found]
        told = max(found, key=lambda run: run["seconds"]).get("told") or {}
        parts = ", ".join(f"{told[part]:.2f}" for part in ("detect", "load", "replay") if part in told)
        lines.append(f"| {every or 'default'} | {milliseconds(of(row, 'step_s'))} | {kilobytes(of(row, 'step_bytes'))}, "
                     f"{kilobytes(of(row, 'background_bytes'))} | {measure.median(seconds):.2f} | {max(seconds):.2f} | "
                     f"{parts} | {told.get('steps_replayed', '')} | {of({'runs': found}, 'computing_s'):.2f} | "
                     f"< {GOAL_RECOVERY_S:.0f} |")
    return lines


def tables(result):
    """{name of a place in docs/benchmarks.md: lines} of all tables that were measured."""
    made = {"cluster-steps": steps_table(result, "steps"), "cluster-goals": goals_table(result),
            "cluster-acl": steps_table(result, "acl"), "cluster-quality": quality_table(result),
            "cluster-scaling": scaling_table(result), "cluster-exchange": exchange_table(result),
            "cluster-staleness": staleness_table(result), "cluster-simulated": simulated_table(result),
            "cluster-uneven": uneven_table(result), "cluster-recovery": recovery_table(result)}
    return {name: lines for name, lines in made.items() if len(lines) > 2}
