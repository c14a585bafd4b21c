# SPDX-License-Identifier: Apache-2.0
"""Two coordinators on this machine that share a store in etcd: who leads, what both know, where nodes find them."""

import base64
import contextlib
import json
import shutil
import signal
import socket
import sys
import time
import unittest
import urllib.request

import etcd
from fleet import DEADLINE, Fleet, incarnations


def free_ports(count):
    """So many ports that follow each other and are free now."""
    while True:
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            first = held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            for port in range(first + 1, first + count):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return list(range(first, first + count))


class Standby(unittest.TestCase):
    # A leader that is killed is followed by the standby: members keep their incarnations, steps go on, and the old
    # leader, started again, stands by.
    def test_takes_over(self):
        fleet = Fleet(self)
        store = "etcd:" + etcd.start(fleet, "127.0.0.1", free_ports(2))
        ports = free_ports(4)
        first, second = (f"127.0.0.1:{port}" for port in (ports[0], ports[2]))
        leader = fleet.lead("--listen", first, "--standby", second, "--store", store)
        leader.wait_for_line("event=leads")
        fleet.join("a")
        fleet.join("b")
        before = fleet.wait_for_members(2)
        second_run = fleet.copy_run()
        standby = fleet.lead("--listen", second, "--standby", first, "--store", store, "--resume", out=second_run)
        standby.wait_for_line("event=stands_by")
        asked = fleet.ask("status", second)
        self.assertEqual(asked.status, 1)
        self.assertIn(f"ask {first}", asked.err)

        killed = time.monotonic()
        leader.signal(signal.SIGKILL)
        standby.wait_for_line("event=leads")
        print(f"the standby leads {time.monotonic() - killed:.1f} s after kill -9", file=sys.stderr)
        after = fleet.wait_for("members stay", lambda status: all(one["connected"] for one in status["members"]), second)
        self.assertEqual(incarnations(after), incarnations(before))
        self.assertGreater(after["generation"], before["generation"])
        fleet.wait_for("steps", lambda status: status["step"] > before["step"] + 10, second)
        again = fleet.lead("--resume", "--standby", second, "--store", store)
        again.wait_for_line("event=stands_by")
        # An orderly end leaves the lead at once.
        standby.signal(signal.SIGTERM)
        again.wait_for_line("event=leads")
        last = fleet.wait_for("members stay", lambda status: all(one["connected"] for one in status["members"]), first)
        self.assertEqual(incarnations(last), incarnations(before))


    # A node whose coordinator's old address is another run's by now finds the one that leads; a new address of
    # another run is a mistake, and refused.
    def test_old_address(self):
        fleet = Fleet(self)
        store = "etcd:" + etcd.start(fleet, "127.0.0.1", free_ports(2))
        ports = free_ports(6)
        first, second, third = (f"127.0.0.1:{port}" for port in ports[::2])
        leader = fleet.lead("--listen", first, "--standby", second, "--store", store)
        fleet.join("a").wait_for_line("event=installed")
        standby = fleet.lead("--listen", second, "--standby", first, "--store", store, "--resume", out=fleet.copy_run())
        for one in (leader, fleet.members["a"]):
            one.signal(signal.SIGKILL)
            one.finish()
        standby.wait_for_line("event=leads")
        for at in (first, third):
            other = Fleet(self)
            other.lead("--listen", at)
        again = fleet.start("join", first, "--dir", fleet.path("a"), "--name", "a")
        again.wait_for_line("event=begun")
        again.signal(signal.SIGKILL)
        self.assertIn("of another run", again.finish().err)
        wrong = fleet.ask("join", third, "--dir", fleet.path("a"))
        self.assertEqual(wrong.status, 4, wrong.err)


if __name__ == "__main__":
    unittest.main()
