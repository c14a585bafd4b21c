# SPDX-License-Identifier: Apache-2.0
"""python3 -m unittest discover -s bench"""

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent

if importlib.util.find_spec("numpy"):
    import cluster
    import cluster_lab
    import cluster_runs
    import cluster_tables
    import numpy
    import records
else:
    cluster = None


@unittest.skipUnless(cluster, "bench/requirements.txt is not installed: no numpy")
class Times(unittest.TestCase):
    # Steps that come several at a time count one by one, and one stall does not move the median.
    def test_median_step_seconds(self):
        arrivals, now = [], 0.0
        for number in range(0, 400, 4):
            now += 0.04 if number != 200 else 2.0
            arrivals.append((now, number))
        self.assertAlmostEqual(cluster_lab.median_step_seconds(arrivals), 0.01)

    # A recovery is the gap that ends after the kill, however long others were before.
    def test_longest_gap(self):
        arrivals = [(0.0, 1), (5.0, 2), (5.1, 3), (6.3, 4), (6.4, 5)]
        self.assertAlmostEqual(cluster_tables.longest_gap(arrivals, 5.2), 1.2)

    def test_paces(self):
        arrivals = [(10 + number / 2, number) for number in range(9)]
        self.assertEqual(cluster_tables.paces(arrivals, 10.0), [(2.0, 0.5), (4.0, 0.5)])


@unittest.skipUnless(cluster, "bench/requirements.txt is not installed: no numpy")
class StepFiles(unittest.TestCase):
    # The newest step of any node counts. A line that is not whole yet does not count, and is not lost.
    def test_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            steps = cluster_lab.Steps(folder)
            self.assertFalse(steps.look())
            first, second = (pathlib.Path(folder) / f"{node}.steps" for node in (1, 2))
            first.write_text("1 0 0 2 3.5\n1 1 0 2 3.")
            second.write_text("1 0 1 2 3.25\n")
            self.assertTrue(steps.look())
            self.assertEqual(steps.done, 1)
            with open(first, "a", encoding="ascii") as out:
                out.write("25\n1 2 0 2 3.0\n")
            self.assertTrue(steps.look())
            self.assertEqual(steps.done, 3)
            self.assertFalse(steps.look())
            self.assertEqual([done for _, done in steps.arrivals], [1, 3])


def row(tool, step_s, **more):
    run = {"step_s": step_s, "median_step_s": step_s, "sent_bytes": 250e3, "step_bytes": 105e3, "background_bytes": 90e3, "cpu_s": 0.002,
           "most_cpu_s": 0.002, "computing_s": 0.001, "most_computing_s": 0.001, "queued_s": 0.0, "asleep_s": 0.004, "idle_cores": 0.5}
    return {**cluster.cell("steps", "amazon", 4, 1000, 0, tool), "runs": [run], **more} if cluster else None


@unittest.skipUnless(cluster, "bench/requirements.txt is not installed: no numpy")
class Physics(unittest.TestCase):
    # The bytes are those of docs/protocols/sparse-step.md, with n = 4, B = 256, H = 128.
    def test_step_bytes(self):
        self.assertEqual(cluster_tables.step_bytes(4, 256, 128, cluster_tables.BF16), 104_448)

    # The bound is the greater of two times: that of the quota, and computing, three delays and the bytes in turn.
    def test_bound(self):
        one = row(cluster_runs.OURS, 0.01)
        self.assertAlmostEqual(cluster_tables.bound_s(one), 0.002 / cluster.CORES)
        one["rtt_ms"] = 20
        self.assertAlmostEqual(cluster_tables.bound_s(one), 0.001 + 0.03 + cluster_tables.transfer_s(105e3, 1000))
        one["nodes"], one["cores"] = 1, None
        self.assertAlmostEqual(cluster_tables.bound_s(one), 0.002)


def simulated(rtt, compute_s):
    return {"rate_mbps": 1000, "rtt_ms": rtt, "nodes": 8, "batch": 256, "hidden": 128, "compute_s": compute_s,
            "figures": {"seconds_per_step": 0.03124, "least_seconds_per_step": 0.03108, "bytes_per_step": 129_600.0,
                        "least_bytes_per_step": 129_024.0, "delays_per_exchange": 1.005}}


@unittest.skipUnless(cluster, "bench/requirements.txt is not installed: no numpy")
class Tables(unittest.TestCase):
    def setUp(self):
        self.result = {"cells": [row(cluster_runs.OURS, 0.01), row(cluster_runs.DENSE, 6.0), row(cluster_runs.SPARSE, 0.04)]}

    # The exchange of D-SLIDE, our own program with a key, is a row wherever nodes exchange anything. Its bound has its own
    # bytes.
    def test_dslide(self):
        wide = [one["nodes"] for one in cluster.step_cells("steps", "amazon", False) if one["tool"] == cluster_runs.DSLIDE]
        ours = [one["nodes"] for one in cluster.step_cells("steps", "amazon", False) if one["tool"] == cluster_runs.OURS]
        self.assertEqual(wide, [nodes for nodes in ours if nodes > 1])
        self.assertEqual(cluster_runs.FLEETS[cluster_runs.DSLIDE], {"cluster.exchange": "dslide"})
        self.assertLessEqual(set(wide), {2, 4})
        one = row(cluster_runs.DSLIDE, 0.4)
        one["runs"][0]["step_bytes"] = 5e6
        self.assertAlmostEqual(cluster_tables.bound_s(one), 0.001 + cluster_tables.transfer_s(5e6, 1000))
        self.result["cells"].append(one)
        lines = cluster_tables.steps_table(self.result, "steps")
        self.assertEqual(sum(cluster_runs.DSLIDE in line and "5,000" in line for line in lines), 1)

    # All lines of a table have as many cells as its head, failures among them.
    def test_widths(self):
        self.result["cells"].append({**row(cluster_runs.DENSE_BF16, 1), "runs": [{"failed": "a\nno | memory"}]})
        self.result["cells"] += [{**row(cluster_runs.OURS, 0.01), "kind": kind} for kind in ("scaling", "exchange")]
        self.result["cells"] += [{**row(cluster_runs.OURS, 0.01), "kind": "staleness", "keys": {"cluster.staleness": number}, **({"simulated": simulated(20, 0.01)} if number else {})} for number in (0, 1)]
        self.result["uneven"] = [{"even": {"step_s": 1.0}, "weak": {"step_s": 1.3}, "paces": [(2.0, 4.0)]}]
        self.result["recovery"] = [{"snapshot_every": None, "cost": self.result["cells"][0]["runs"][0], "seconds": 0.5,
                                    "noticed_s": 0.2, "computing_s": 0.3, "told": {"detect": 0.2, "load": 0, "replay": 0.2, "steps_replayed": 9}}]
        self.result["quality"] = [{"tool": cluster_runs.OURS, "steps": 100, "P@1": 10.0}]
        self.result["simulated"] = [simulated(20, 0.004), simulated(0, None), {"failed": "no memory"}]
        made = cluster_tables.tables(self.result)
        self.assertEqual(len(made), 9)
        for name, lines in made.items():
            self.assertEqual({line.count("|") for line in lines}, {lines[0].count("|")}, name)

    # Four nodes are compared with one that has the machine to itself, and with one beside others, as they are.
    def test_scaling(self):
        rows = [{**row(cluster_runs.OURS, step_s), "kind": "scaling", "nodes": nodes, "beside": beside}
                for nodes, beside, step_s in ((1, 0, 0.5), (1, 3, 0.6), (4, 0, 0.2))]
        rows[2]["keys"] = {"cluster.codec": "int8"}
        lines = cluster_tables.scaling_table({"cells": rows})
        self.assertIn("| 2.50 | 3.00 |", lines[-1])
        self.assertIn("| 4 |  | int8 | 200.0 | 200.0 |", lines[-1])
        self.assertIn(f">= {cluster_tables.GOAL_SCALING}", lines[-1])
        self.assertIn("| 2.50 |  |", cluster_tables.scaling_table({"cells": [rows[0], rows[2]]})[-1])

    def test_goals(self):
        goals = {line.split(" | ")[0]: line for line in cluster_tables.goals_table(self.result)[2:]}
        self.assertIn(">= 300 | 600 | yes", goals["| DDP dense f32 over ours, 1000 Mb/s, RTT 0 ms"])
        self.assertIn(">= 5 | 4.0 | no", goals["| sampled softmax, sparse all-gather over ours, 1000 Mb/s, RTT 0 ms"])
        self.assertIn("<= 120 | 105 | yes", goals["| kB of a step, as for bf16"])

    # A node of eight computes what all do, and an eighth of what they share. With one measured row all counts as shared.
    def test_computing_expected(self):
        def cell(nodes, seconds):
            one = {**row(cluster_runs.OURS, 0.05), "kind": "steps", "nodes": nodes}
            one["runs"][0]["computing_s"] = seconds
            return one
        self.assertIsNone(cluster_tables.computing_expected({"cells": []}, 8))
        self.assertAlmostEqual(cluster_tables.computing_expected({"cells": [cell(1, 0.010)]}, 8), 0.00125)
        self.assertAlmostEqual(cluster_tables.computing_expected({"cells": [cell(4, 0.003)]}, 8), 0.0015)
        both = {"cells": [cell(1, 0.010), cell(4, 0.004)]}  # 2 ms and 8 ms
        self.assertAlmostEqual(cluster_tables.computing_expected(both, 8), 0.003)
        # Other lines say nothing of computing.
        self.assertIsNone(cluster_tables.computing_expected({"cells": [{**cell(4, 0.003), "rtt_ms": 20}]}, 8))

    # The table says what was assumed, and nothing of delays where there are none.
    def test_simulated(self):
        far, near = cluster_tables.simulated_table({"simulated": [simulated(20, 0.004), simulated(0, None), {"failed": "x"}]})[2:]
        self.assertEqual(far, "| 8 | 1000 | 20 | 4.0 | 31.24 | 31.08 | 1.005 | 129.6 | 129.0 | 1.005 |")
        self.assertIn("none: not measured", near)
        self.assertTrue(near.endswith("|  |"))

    # Each cell has one command, with the shape of the other cells. The time of computing is passed on in milliseconds.
    def test_simulated_command(self):
        with mock.patch.object(cluster.measure, "binary", lambda: "gossamer"), \
                mock.patch.object(cluster.measure, "run", return_value=('{"figures": {"seconds_per_step": 1}}', {})) as ran:
            result = {"cells": []}
            cluster.run_simulated(result, lambda: None, False)
            self.assertEqual([(one["rate_mbps"], one["rtt_ms"]) for one in result["simulated"]],
                             [(rate, rtt) for rate in cluster.RATES for rtt in cluster.RTTS])
            one = cluster.simulate_step(100, 20, 0.004)
        words = ran.call_args.args[0]
        for word in ("sparse-steps", "members=8", "units=128", "batch=256", "labels=670091", "rate_mbps=100", "rtt_ms=20", "compute_ms=4.0", "--json"):
            self.assertIn(word, words)
        self.assertEqual(one["figures"], {"seconds_per_step": 1})

    # --add keeps what the same machine has measured of other kinds, and says of which commit it is.
    def test_add(self):
        earlier = {"machine": {"cpu": "x"}, "commits": {"steps": "a", "uneven": "b"}, "data": {}, "uneven": [1],
                   "cells": [{"kind": "steps"}, {"kind": "acl"}]}
        arguments = argparse.Namespace(add=True, only=["steps"])
        for cpu, cells, commits in (("x", [{"kind": "acl"}], {"steps": "c", "uneven": "b"}), ("y", [], {"steps": "c"})):
            with tempfile.TemporaryDirectory() as scratch, mock.patch.object(cluster.measure, "ROOT", pathlib.Path(scratch)), \
                    mock.patch.object(cluster.measure, "machine", lambda: {"cpu": cpu}), \
                    mock.patch.object(cluster.measure, "commit", lambda: "c"):
                cluster.measure.save("cluster", earlier)
                result = cluster.begun(arguments)
            self.assertEqual(result["cells"], cells)
            self.assertEqual(result["commits"], commits)
            self.assertEqual("uneven" in result, cpu == "x")

    # Each table has its place on the page.
    def test_places(self):
        page = (HERE.parent / "docs/benchmarks.md").read_text(encoding="utf-8")
        for name in ("steps", "goals", "acl", "quality", "scaling", "exchange", "staleness", "uneven", "recovery", "simulated"):
            self.assertTrue(0 < page.find(f"<!-- cluster-{name} -->") < page.find(f"<!-- /cluster-{name} -->"), name)


@unittest.skipUnless(importlib.util.find_spec("torch"), "bench/requirements.txt is not installed: no torch")
class SparsePeer(unittest.TestCase):
    # Two nodes that exchange sparse gradients train what one does that computes the shares of both.
    def test_two_as_one(self):
        rng = numpy.random.default_rng(1)
        count, features, labels = 60, 40, 30
        source = records.Records(
            features, labels, numpy.arange(0, 5 * count + 1, 5), rng.integers(features, size=5 * count),
            numpy.full(5 * count, 0.4, dtype=numpy.float32), numpy.arange(0, 2 * count + 1, 2),
            numpy.stack([rng.permutation(labels)[:2] for _ in range(count)]).ravel())
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            cluster_runs.save_arrays(source, folder / "data")
            options = {"data": str(folder / "data"), "kind": "sparse", "hidden": 8, "batch": 20, "steps": 12, "rate": 0.01,
                       "shares": 2, "address": "127.0.0.1", "test": None}
            runs = [(1, 0), (2, 0), (2, 1)]
            started = []
            for world, rank in runs:
                out = folder / f"{world}-{rank}"
                out.mkdir()
                words = {**options, "out": str(out), "world": world, "rank": rank, "weights": str(out / "weights.pt")}
                started.append(subprocess.Popen(
                    [sys.executable, "-B", str(HERE / "cluster_torch_peer.py"), json.dumps(words)],
                    env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"}))
            self.assertEqual([process.wait(300) for process in started], [0, 0, 0])
            import torch
            alone, first, second = (torch.load(folder / f"{world}-{rank}/weights.pt") for world, rank in runs)
            for one, a, b in zip(alone, first, second):
                torch.testing.assert_close(a, b, rtol=0, atol=0)
                torch.testing.assert_close(one, a, rtol=1e-4, atol=1e-5)
            self.assertEqual(len((folder / "2-1/1.steps").read_text(encoding="ascii").splitlines()), 12)


if __name__ == "__main__":
    unittest.main()
