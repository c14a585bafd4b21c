# SPDX-License-Identifier: Apache-2.0
"""Who comes to the ports of a fleet on machines of a lab: peers of another version.

The run goes on, nobody of it is lost, and what strangers cost is bounded.
"""

import os
import subprocess
import unittest

import program
from fleet import by_name, incarnations
from lab_fleet import LabCase, LabFleet, require_lab

OTHER_VERSION = os.environ.get("GOSSAMER_OTHER_VERSION", "build/release/tests/process/other_version")


def setUpModule():
    require_lab()


class OtherVersion(LabCase):
    def setUp(self):
        if not os.access(OTHER_VERSION, os.X_OK):
            self.skipTest(f"{OTHER_VERSION} is not built: cmake --build build/release --target other_version")

    def other(self, fleet, machine, *words):
        with fleet.on(machine):
            return subprocess.run([OTHER_VERSION, *words], capture_output=True, text=True, timeout=program.TIMEOUT,
                                  check=False)  # fmt: skip

    def expect_ranges(self, text):
        """Names what either side speaks."""
        for version in (1, 2):
            self.assertRegex(text, rf"\bversion {version}\b|\b{version} to {version}\b")

    # A stranger, and a node, that speak another version are told both ranges with status 4, by coordinator and member,
    # and so is who reads the coordinator's events; the run goes on.
    def test_comes(self):
        fleet = LabFleet(self, 3)
        leader, before = fleet.begin("a", "b")
        stranger = self.other(fleet, 3, "enroll", fleet.token)
        self.assertEqual(stranger.returncode, 4, stranger.stdout)
        self.expect_ranges(stranger.stdout)
        self.expect_ranges(fleet.wait_for_event(lambda event: event["event"] == "enrol_refused")["text"])

        fleet.members["b"].signal(2)
        self.assertEqual(fleet.members["b"].finish().status, 130)
        member = by_name(before)["a"]
        for peer in ([], [member["address"]]):
            node = self.other(fleet, 3, "hello", fleet.at(1), fleet.path("b"), *peer)
            self.assertEqual(node.returncode, 4, node.stdout)
            self.expect_ranges(node.stdout)
        left = by_name(before)["b"]
        lost = fleet.wait_for_event(lambda event: event["event"] == "lost" and event["text"] != "it left")
        self.assertEqual(lost["node"], left["node"])
        self.expect_ranges(lost["text"])
        after = fleet.wait_for_members(1)
        self.assertEqual(incarnations(after)["a"], member["incarnation"])
        fleet.wait_for_steps(after["step"])
        fleet.stop_all(leader, fleet.members["a"])

    # When a coordinator comes back that speaks another version, its members and who wants to join end with status 4
    # and say both ranges.
    def test_leads(self):
        fleet = LabFleet(self, 3)
        leader, _ = fleet.begin("a")
        leader.signal(9)
        leader.finish()
        with fleet.on(1):
            other = subprocess.Popen([OTHER_VERSION, "lead", fleet.at(1), fleet.run], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)  # fmt: skip
        for cleanup in (other.stdin.close, other.stdout.close, other.wait, other.kill):
            self.addCleanup(cleanup)
        self.assertEqual(other.stdout.readline(), "ready\n")
        fleet.join("b", machine=3)
        for name in "ab":
            done = fleet.members[name].finish()
            self.assertEqual(done.status, 4, done.err)
            self.expect_ranges(done.err)


if __name__ == "__main__":
    unittest.main()
