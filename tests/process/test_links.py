# SPDX-License-Identifier: Apache-2.0
"""Links over slow and distant lines (tools/lab): what must hold however busy the machine is.

What links reach is measured by bench/links.py; here only what a design that had lost its point would miss by far.
Skipped (exit status 77), with the reason, where the lab cannot work.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import program

LAB = str(pathlib.Path(__file__).resolve().parents[2] / "tools/lab/lab")
PATIENCE_S = 240


def lab(*words):
    done = subprocess.run([LAB, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class LinksInTheLab(unittest.TestCase):
    def measure(self, nodes, rate, rtt, *keys):
        """`gossamer bench links` on all nodes of a lab; {measurement: [that of each node that has it]}."""
        name = f"links-{os.getpid()}"
        plan = json.loads(lab("up", "--name", name, "--nodes", nodes, "--rate", rate, "--rtt", rtt, "--warm", "--json"))
        self.addCleanup(lab, "down", name)
        peers = "peers=" + ",".join(f"{node['address']}:7100" for node in plan["nodes"])
        processes = [
            subprocess.Popen(
                [LAB, "exec", "--name", name, str(node), "--", os.path.abspath(program.GOSSAMER), "bench", "links",
                 f"node={node}", peers, *keys, "--json", "--quiet"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for node in range(1, nodes + 1)
        ]
        measured = {}
        try:
            for process in processes:
                out, err = process.communicate(timeout=PATIENCE_S)
                self.assertEqual(process.returncode, 0, err)
                for one in json.loads(out)["nodes"][0]["measurements"]:
                    measured.setdefault(one["name"], []).append(one)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        print({name: [round(one["median_ms"], 1) for one in nodes] for name, nodes in measured.items()}, flush=True)
        return measured

    # Among four nodes 100 ms apart a round of the exchange takes one one-way delay; an algorithm of rounds among
    # neighbours, or a request and its answer, would take two at least.
    def test_exchange_takes_one_way(self):
        with tempfile.TemporaryDirectory() as directory:
            program.run(*"bench links bytes=1 rounds=1 pings=1 transfers=1".split(), f"authority={directory}/authority")
            for authority in ((), (f"authority={directory}/authority",)):
                with self.subTest(authority=authority):
                    keys = ("measure=exchange", "rounds=15", "pings=3", "exchange_bytes=16384", *authority)
                    rounds = self.measure(4, "1gbit", "200ms", *keys)["exchange"]
                    self.doCleanups()
                    self.assertEqual([one["count"] for one in rounds], [15] * 4)
                    self.assertGreater(min(one["median_ms"] for one in rounds), 95)
                    self.assertLess(max(one["median_ms"] for one in rounds), 190)

    # While bulk fills a line of 10 Mb/s, a control message does not wait for it: even one megabyte of bulk in front
    # of it would take 840 ms.
    def test_control_passes_bulk(self):
        measured = self.measure(2, "10mbit", "40ms", "measure=control-beside-bulk", "bytes=8000000", "pings=25", "rate_mbps=10")
        beside = measured["control-beside-bulk"][0]
        self.assertEqual(beside["count"], 25)
        self.assertGreater(beside["share_of_rate"], 0.5)
        self.assertGreater(beside["median_ms"], 19)
        self.assertLess(beside["median_ms"], 200)


if __name__ == "__main__":
    checked = subprocess.run([LAB, "check"], capture_output=True, text=True, check=False)
    if checked.returncode != 0:
        print(f"skipped, the lab cannot work here:\n{checked.stdout}{checked.stderr}")
        sys.exit(77)
    unittest.main(verbosity=2)
