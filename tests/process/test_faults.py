# SPDX-License-Identifier: Apache-2.0
"""Faults of machines on a fleet in a lab (tools/lab): kill -9, SIGSTOP, networks that part and come together again,
full disks.

Every member of the check engine compares each sum with the right one, and ends with an error if a sum is wrong. So a
run that `gossamer stop` ends with status 0 everywhere has computed nothing wrong.
"""

import concurrent.futures
import os
import signal
import sys
import time
import unittest

import etcd
from fleet import by_name, incarnations
from lab_fleet import LabCase, LabFleet, fill, goes_on_for, require_lab, small_disk, used_by


def setUpModule():
    require_lab()


class Joining(LabCase):
    # Machines that share nothing but a network form a run: a stranger with a token becomes a node. `status` and
    # `doctor` answer on a third machine that has the token alone, and refuse one without it.
    def test_across_machines(self):
        fleet = LabFleet(self, 4)
        leader, status = fleet.begin("a", "b")
        for machine, name in ((2, "a"), (3, "b")):
            self.assertTrue(by_name(status)[name]["address"].startswith(fleet.host(machine) + ":"))
        far = fleet.wait_for("a round trip", lambda now: all(one["round_trip_ms"] for one in now["members"]))
        for one in far["members"]:
            self.assertGreaterEqual(one["round_trip_ms"], 10)  # the lab is never early
        asked = fleet.ask("status", fleet.at(1), "--token", fleet.token, "--json", machine=4)
        self.assertEqual(asked.status, 0, asked.err)
        self.assertEqual(sorted(by_name(asked.json())), ["a", "b"])
        looked = fleet.ask("doctor", fleet.at(1), "--token", fleet.token, "--json", machine=4)
        self.assertEqual(looked.status, 0, looked.out)
        self.assertEqual({one["name"]: one["health"] for one in looked.json()["checks"]}["tls"], "good")
        self.assertEqual(fleet.ask("status", fleet.at(1), machine=4).status, 2)
        stopped = fleet.ask("stop", fleet.at(1), machine=4)
        self.assertNotEqual(stopped.status, 0)
        fleet.cut(4)
        unseen = fleet.ask("doctor", fleet.at(1), "--json", machine=4).json()
        self.assertEqual({one["name"]: one["health"] for one in unseen["checks"]}["port"], "bad")
        fleet.stop_all(leader, *fleet.members.values())


class Killed(LabCase):
    # kill -9 of a member fences it alone. After kill -9 of the coordinator no member begins anew, in the same
    # processes.
    def test_member_and_coordinator(self):
        fleet = LabFleet(self, 4)
        leader, before = fleet.begin("a", "b", "c")
        killed = time.monotonic()
        fleet.members["c"].signal(signal.SIGKILL)
        two = fleet.wait_for_members(2)
        print(f"fenced, and settled again, {time.monotonic() - killed:.1f} s after kill -9", file=sys.stderr)
        self.assertEqual(sum(one["things"] for one in two["members"]), 12)
        lost = [event["incarnation"] for event in fleet.events() if event["event"] == "lost"]
        self.assertEqual(lost, [by_name(before)["c"]["incarnation"]])
        fleet.wait_for_steps(two["step"])

        leader.signal(signal.SIGKILL)
        leader.finish()
        leader = fleet.lead("--resume")
        after = fleet.wait_for_members(2)
        self.assertEqual(incarnations(after), incarnations(two))
        self.assertGreater(after["generation"], two["generation"])
        fleet.wait_for_steps(after["step"])
        fleet.join("c", machine=4)
        fleet.wait_for_members(3)
        fleet.stop_all(leader, *fleet.members.values())


class Parted(LabCase):
    # A member that reaches nobody is fenced within seconds and comes back as a new one; the others stay. A coordinator
    # that reaches nobody fences nobody. Once it reaches them again all serve. They keep their incarnations if TCP tries
    # again in time, as it doubles its waiting in a silence.
    def test_member_and_coordinator(self):
        fleet = LabFleet(self, 4)
        leader, before = fleet.begin("a", "b", "c")
        fleet.cut(4)
        two = fleet.wait_for_members(2)
        fleet.wait_for_steps(two["step"])
        fleet.heal(4)
        three = fleet.wait_for_members(3)
        self.assertGreater(incarnations(three)["c"], incarnations(before)["c"])
        for name in "ab":
            self.assertEqual(incarnations(three)[name], incarnations(before)[name])

        parted = time.monotonic()
        fleet.cut(1)
        fleet.wait_for_event(lambda event: event["event"] == "cut_off")
        goes_on_for(5, leader)
        alone = fleet.ask("status", fleet.run, "--json").json()
        self.assertEqual(incarnations(alone), incarnations(three))
        fleet.heal(1)
        fleet.wait_for_steps(alone["step"])
        # Marks of all members are in a step that counts. So many steps mean that all are heard again.
        fleet.wait_for_steps(fleet.wait_for_members(3)["step"] + 100)
        last = fleet.wait_for_members(3)
        kept = [name for name in "abc" if incarnations(last)[name] == incarnations(three)[name]]
        self.assertTrue(kept, "nobody is who it was")
        print(f"after a coordinator's {time.monotonic() - parted:.0f} s alone {len(kept)} of 3 lives go on", file=sys.stderr)
        fleet.stop_all(leader, *fleet.members.values())


class BehindNat(LabCase):
    # Two members to which nobody can open a connection speak to each other through the coordinator, and `status` shows
    # it. They do so again after the coordinator was killed and has come back.
    def test_relay(self):
        fleet = LabFleet(self, 4)
        for machine in (2, 3):
            fleet.close_ports(machine)
        leader = fleet.lead("--listen", fleet.at(1), "--first", "3")
        for machine, name in ((2, "a"), (3, "b")):
            fleet.join(name, "--nat", machine=machine)
        fleet.join("c", machine=4)
        before = fleet.wait_for_members(3)
        members = by_name(before)
        self.assertEqual([members[name]["address"] is None for name in "abc"], [True, True, False])
        self.expect_relayed(before)
        fleet.wait_for_steps(before["step"])
        lines = fleet.ask("status", fleet.run).out.splitlines()
        self.assertTrue(any(f"(behind NAT), relayed to {members['b']['node']}" in line for line in lines), lines)

        leader.signal(signal.SIGKILL)
        leader.finish()
        leader = fleet.lead("--resume")
        fleet.wait_for("the relay", lambda now: any(one["relayed_to"] for one in now["members"]))
        after = fleet.wait_for_steps(before["step"])
        self.assertEqual(incarnations(after), incarnations(before))
        self.expect_relayed(after)
        fleet.stop_all(leader, *fleet.members.values())

    def expect_relayed(self, status):
        members = by_name(status)
        self.assertEqual({name: one["relayed_to"] for name, one in members.items()},
                         {"a": [members["b"]["node"]], "b": [members["a"]["node"]], "c": []})  # fmt: skip


class FullDisk(LabCase):
    # A member whose disk is full goes on, and says at its end that events were lost. While the coordinator's disk is
    # full steps go on, `status` has an alarm, and a joining machine waits until there is room.
    def test_coordinator_and_member(self):
        fleet = LabFleet(self, 4)
        for name in ("run", "c"):
            self.enterContext(small_disk(fleet.path(name)))
        leader, before = fleet.begin("a", "b", "c")
        filled = [fill(fleet.path("c"))]
        fleet.members["b"].signal(signal.SIGKILL)
        two = fleet.wait_for_members(2)
        fleet.wait_for_steps(two["step"])

        filled.append(fill(fleet.run))
        full = fleet.wait_for("an alarm", lambda now: any("store fails" in one for one in now["alarms"]))
        fleet.join("b", machine=3)
        fleet.wait_for("the alarm of lost events", lambda now: len(now["alarms"]) == 2)
        fleet.wait_for_steps(full["step"])
        goes_on_for(3, fleet.members["b"])
        self.assertEqual(fleet.ask("status", fleet.run, "--json").json()["epoch"], two["epoch"])
        for path in filled:
            os.unlink(path)
        after = fleet.wait_for_members(3)
        self.assertEqual([one.split(":")[0] for one in after["alarms"]], ["events are lost"])
        self.assertGreaterEqual(after["step"], full["step"])
        fleet.wait_for_steps(after["step"])
        for name in "ac":
            self.assertEqual(incarnations(after)[name], incarnations(before)[name])
        self.assertEqual(fleet.events(torn=True)[-1]["event"], "installed")
        fleet.wait_for_event(
            lambda event: event["event"] == "installed" and event["epoch"] == after["epoch"], "c", torn=True)  # fmt: skip
        said = fleet.stop_all(leader, *fleet.members.values())
        self.assertEqual(["events were lost" in one.err for one in said], [True, False, False, True])


class HalfAMinute(LabCase):
    # Tests that take long run side by side, each fleet with a lab of its own.
    def test_side_by_side(self):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for done in [pool.submit(one) for one in (self.stopped_leader, self.stopped_member, self.nothing_happens)]:
                done.result()

    # A leader that is stopped for half a minute goes on to find that the standby leads, and stands by. Nobody listens
    # to it, and no member is lost. When the new leader is killed it leads again.
    def stopped_leader(self):
        fleet = LabFleet(self, 5)
        store = "etcd:" + etcd.start_secure(fleet, fleet.host(5), (2379, 2380), machine=5)
        leader, before = fleet.begin("b", "c", flags=("--standby", fleet.at(4), "--store", store))
        second = fleet.copy_run()
        standby = fleet.lead("--listen", fleet.at(4), "--standby", fleet.at(1), "--store", store, "--resume",
                             out=second, machine=4)  # fmt: skip
        standby.wait_for_line("event=stands_by")
        stopped = time.monotonic()
        leader.signal(signal.SIGSTOP)
        standby.wait_for_line("event=leads")
        print(f"the standby leads {time.monotonic() - stopped:.1f} s after SIGSTOP", file=sys.stderr)
        during = fleet.wait_for("the members' beats", lambda now: all(one["connected"] for one in now["members"]), second)
        self.assertEqual(incarnations(during), incarnations(before))
        fleet.wait_for("steps", lambda now: now["step"] > before["step"], second)
        goes_on_for(stopped + 30 - time.monotonic(), standby)
        leader.signal(signal.SIGCONT)
        leader.wait_for_line("event=stands_by")
        refused = fleet.ask("status", fleet.at(1), "--dir", fleet.run)
        self.assertEqual(refused.status, 1, refused.out)
        self.assertIn(f"ask {fleet.at(4)}", refused.err)
        self.assertEqual([event["event"] for event in fleet.events() if "lead" in event["event"] or event["event"] == "stands_by"],
                         ["leads", "stands_by"])  # fmt: skip
        after = fleet.wait_for("steps", lambda now: now["step"] > during["step"], second)
        self.assertEqual(incarnations(after), incarnations(before))
        killed = time.monotonic()
        standby.signal(signal.SIGKILL)
        leader.wait_for_line("event=leads")
        print(f"the other leads {time.monotonic() - killed:.1f} s after kill -9", file=sys.stderr)
        last = fleet.wait_for("steps", lambda now: now["step"] > after["step"])
        self.assertEqual(incarnations(last), incarnations(before))
        fleet.stop_all(leader, *fleet.members.values())

    # A member that is stopped for half a minute is fenced and the others go on. It comes back as a new one.
    def stopped_member(self):
        fleet = LabFleet(self, 4)
        leader, before = fleet.begin("a", "b", "c")
        stopped = time.monotonic()
        fleet.members["c"].signal(signal.SIGSTOP)
        two = fleet.wait_for_members(2)
        fleet.wait_for_steps(two["step"])
        goes_on_for(stopped + 30 - time.monotonic(), leader)
        fleet.members["c"].signal(signal.SIGCONT)
        three = fleet.wait_for_members(3)
        self.assertGreater(incarnations(three)["c"], incarnations(before)["c"])
        for name in "ab":
            self.assertEqual(incarnations(three)[name], incarnations(before)[name])
        fleet.wait_for_steps(three["step"])
        fleet.stop_all(leader, *fleet.members.values())

    # A fleet that runs on undisturbed uses no more memory after a minute than after a third of one. Until then pools of
    # fixed size grow: gRPC's and malloc's, and the coordinator's last 256 differences.
    def nothing_happens(self):
        fleet = LabFleet(self, 4)
        leader, _ = fleet.begin("a", "b", "c")
        began = time.monotonic()
        processes = [leader, *fleet.members.values()]
        goes_on_for(began + 20 - time.monotonic(), leader)
        early = [used_by(process) for process in processes]
        goes_on_for(began + 60 - time.monotonic(), leader)
        late = [used_by(process) for process in processes]
        print(f"after 20 s and 60 s: {early}, {late}", file=sys.stderr)
        for before, after in zip(early, late):
            self.assertLess(after.resident_kb - before.resident_kb, 1024)
            self.assertLessEqual(after.descriptors, before.descriptors + 4)
        fleet.stop_all(*processes)


if __name__ == "__main__":
    unittest.main()
