# SPDX-License-Identifier: Apache-2.0
"""Links over slow and distant lines (tools/lab): conditions that must hold however busy the machine is.

bench/links.py measures what links reach. Here are only conditions that a design without its point would miss by far.
Lines are so long and so slow that a busy machine's own delays are small beside theirs.
"""

import json
import os
import subprocess
import tempfile
import unittest

import lab_fleet
import program
from running import LAB, PATIENCE


class LinksInTheLab(lab_fleet.LabCase):
    @classmethod
    def setUpClass(cls):
        lab_fleet.require_lab()

    def measure(self, nodes, rate, rtt, *keys):
        """`gossamer bench links` on all nodes of a lab; {measurement: [value of each node that has it]}."""
        plan = self.up("--nodes", nodes, "--rate", rate, "--rtt", rtt, "--warm")
        peers = "peers=" + ",".join(f"{node['address']}:7100" for node in plan["nodes"])
        words = [os.path.abspath(program.GOSSAMER), "bench", "links", peers, *keys, "--json", "--quiet"]
        processes = [
            subprocess.Popen(
                [LAB, "exec", "--name", plan["name"], str(node), "--", *words, f"node={node}"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for node in range(1, nodes + 1)
        ]
        measured = {}
        try:
            for process in processes:
                out, err = process.communicate(timeout=PATIENCE)
                self.assertEqual(process.returncode, 0, err)
                for one in json.loads(out)["nodes"][0]["measurements"]:
                    measured.setdefault(one["name"], []).append(one)
        finally:
            for process in processes:
                process.kill()
                process.wait()
                process.stdout.close()
                process.stderr.close()
        print({name: [round(one["median_ms"], 1) for one in ones] for name, ones in measured.items()}, flush=True)
        return measured

    # A round of the exchange among four nodes 500 ms apart takes one one-way delay. Rounds among neighbours, or a
    # request and its answer, would take at least two.
    def test_exchange_takes_one_way(self):
        with tempfile.TemporaryDirectory() as directory:
            program.run(*"bench links bytes=1 rounds=1 pings=1 transfers=1".split(), f"authority={directory}/authority")
            for authority in ((), (f"authority={directory}/authority",)):
                with self.subTest(authority=authority):
                    keys = ("measure=exchange", "rounds=9", "pings=3", "exchange_bytes=16384", *authority)
                    rounds = self.measure(4, "1gbit", "1s", *keys)["exchange"]
                    self.assertEqual([one["count"] for one in rounds], [9] * 4)
                    self.assertGreater(min(one["median_ms"] for one in rounds), 475)
                    self.assertLess(max(one["median_ms"] for one in rounds), 950)

    # A control message does not wait for bulk that fills a line of 2 Mb/s. Even one megabyte of bulk in front of it
    # would take 4.2 s.
    def test_control_passes_bulk(self):
        keys = ("measure=control-beside-bulk", "bytes=2000000", "pings=25", "rate_mbps=2")
        measured = self.measure(2, "2mbit", "40ms", *keys)
        beside = measured["control-beside-bulk"][0]
        self.assertEqual(beside["count"], 25)
        self.assertGreater(beside["share_of_rate"], 0.5)
        self.assertGreater(beside["median_ms"], 19)
        self.assertLess(beside["median_ms"], 1000)


if __name__ == "__main__":
    unittest.main()
