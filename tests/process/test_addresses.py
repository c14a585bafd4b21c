# SPDX-License-Identifier: Apache-2.0
"""The addresses of a fleet's members: addresses that change, and addresses that work on one machine only."""

import signal
import unittest

from fleet import by_name, incarnations
from lab_fleet import PORT, LabCase, LabFleet, goes_on_for, require_lab


def setUpModule():
    require_lab()


class Addresses(LabCase):
    # A member whose machine gets another address is reached there. The others stay, and steps go on.
    def test_changes(self):
        fleet = LabFleet(self, 3)
        leader, before = fleet.begin("a", "b")
        old = fleet.host(3)
        new = old.rsplit(".", 1)[0] + ".203"
        fleet.change_address(3, new)
        self.assertTrue(by_name(before)["b"]["address"].startswith(f"{old}:"))

        def moved(status):
            one = by_name(status).get("b")
            return one is not None and one["state"] == "serving" and one["address"].startswith(f"{new}:")

        after = fleet.wait_for("it is reached at its new address", moved)
        self.assertEqual(incarnations(after)["a"], incarnations(before)["a"])
        fleet.wait_for_steps(after["step"])
        # On a busy machine the pair may have gone by the coordinator meanwhile. It tries the direct way after a minute.
        fleet.wait_for("no pair is relayed", lambda status: all(one["relayed_to"] == [] for one in status["members"]))
        fleet.stop_all(leader, *fleet.members.values())

    # Members that joined over loopback are on one machine and reach each other there. Nobody else tries these
    # addresses, in any order of joining. No pair needs the coordinator between them.
    def test_loopback(self):
        fleet = LabFleet(self, 2)
        leader = fleet.lead("--listen", f"0.0.0.0:{PORT}", "--advertise", fleet.host(1), "--first", "2")
        outside = fleet.address
        for name, machine, at in (("a", 1, f"127.0.0.1:{PORT}"), ("b", 2, outside), ("c", 1, f"127.0.0.1:{PORT}")):
            fleet.address = at
            fleet.join(name, "--log-level", "debug", machine=machine)
            fleet.wait_for("it is there", lambda status, name=name: name in by_name(status))
        status = fleet.wait_for_members(3)
        fleet.wait_for_steps(status["step"])
        for name, address in (("a", "127.0.0.1"), ("b", fleet.host(2)), ("c", "127.0.0.1")):
            self.assertTrue(by_name(status)[name]["address"].startswith(f"{address}:"), status)
            self.assertEqual(by_name(status)[name]["relayed_to"], [])
        said = fleet.stop_all(leader, *fleet.members.values())
        self.assertNotIn("127.0.0.1", said[2].err)

    # A member that has joined before, and a coordinator that leads its run on, may be started before the network of
    # their machine is there. They wait for it.
    def test_service_before_its_network(self):
        fleet = LabFleet(self, 2)
        leader, before = fleet.begin("a")
        for process in (fleet.members["a"], leader):
            process.signal(signal.SIGKILL)
            process.finish()
        for machine in (1, 2):
            fleet.take_address(machine)
        leader = fleet.start("coordinator", "--resume", "--out", fleet.run)
        member = fleet.join("a", machine=2)  # with its token, as the line of a service has it
        goes_on_for(3, member)
        goes_on_for(0, leader)
        for machine in (2, 1):
            fleet.give_address(machine)
        old = incarnations(before)["a"]
        fleet.wait_for("a new life of it is there", lambda status: incarnations(status).get("a", old) > old)
        fleet.wait_for_members(1)
        said = fleet.stop_all(leader, member)
        for one in said:
            self.assertIn("waits for this machine's network", one.err)

    # A machine that has not joined before may have got a wrong address: it says so at once.
    def test_first_join_without_network(self):
        fleet = LabFleet(self, 2)
        fleet.lead("--listen", fleet.at(1))
        fleet.take_address(2)
        done = fleet.join("a", machine=2).finish()
        self.assertEqual(done.status, 1, done.err)
        self.assertIn("no way leads there", done.err)


if __name__ == "__main__":
    unittest.main()
