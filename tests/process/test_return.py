# SPDX-License-Identifier: Apache-2.0
"""Machines leave a run and come back, with the credentials that they have: one, all, in order or killed; `stop` and
`--resume` between. The engine adds numbers ([toy](../toy/README.md)), so a step that is lost, or done twice, is seen.
"""

import json
import os
import random
import re
import signal
import ssl
import time
import unittest

import program
import test_toy
from ports import address_of_its_own

setUpModule = test_toy.setUpModule
tearDownModule = test_toy.tearDownModule

BATCH = test_toy.BATCH
ROUNDS = int(os.environ.get("GOSSAMER_ROUNDS", "6"))


class Return(unittest.TestCase):
    path = test_toy.Toy.path
    write_numbers = test_toy.Toy.write_numbers
    wait_for = test_toy.Toy.wait_for
    end = test_toy.Toy.end
    status = test_toy.Toy.status
    lines = test_toy.Toy.lines
    events = test_toy.Toy.events
    checkpoints = test_toy.Toy.checkpoints

    def setUp(self):
        test_toy.Toy.setUp(self)
        self.address = self.token = None
        self.members = {}

    # Up to 1,000 steps each has a line of its own. The only checkpoints are those of members that leave.
    def lead(self, *more, pause_ms=100, every_steps=1_000_000):
        if not os.path.exists(self.path("numbers.txt")):
            self.write_numbers(1000 * BATCH)
        where = [] if "--resume" in more else ["--listen", address_of_its_own()]
        self.leader = program.Running("coordinator", "toy", f"numbers={self.path('numbers.txt')}", f"batch={BATCH}",
                                      f"pause_ms={pause_ms}", f"every_steps={every_steps}", "--out", self.out, *where,
                                      *more)  # fmt: skip
        self.addCleanup(self.end, self.leader)
        line = self.leader.process.stdout.readline()
        found = re.fullmatch(r"gossamer join (\S+)(?: --token (\S+))?\n", line)
        if not found:
            self.fail(self.leader.finish().err)
        self.assertIn(self.address, (None, found[1]), "members look where it was")
        self.address, self.token = found[1], self.token or found[2]

    # Machines that were here before need no token.
    def join(self, *names):
        for name in names:
            token = [] if os.path.exists(self.path(name)) else ["--token", self.token]
            member = program.Running("join", self.address, *token, "--name", name, "--cores", "1", "--dir", self.path(name),
                                     environment={"XDG_STATE_HOME": self.path("state")})  # fmt: skip
            self.addCleanup(self.end, member)
            self.members[name] = member

    def signal(self, number, *names):
        for name in names:
            self.members[name].signal(number)

    def expect_end(self, status, *names):
        for name in names:
            done = self.members.pop(name).finish()
            self.assertEqual(done.status, status, done.err)

    def serving(self):
        return sorted(one["name"] for one in self.status().get("members", []) if one["state"] == "serving")

    def wait_for_serving(self, *names):
        self.wait_for(f"{names} serve", lambda: self.serving() == sorted(names))

    def wait_for_steps(self, beyond):
        self.wait_for(f"steps beyond {beyond}", lambda: (self.status().get("step") or 0) > beyond)
        return self.status()["step"]

    # The coordinator waits for members. Returns the step with which they will begin.
    def wait_until_it_waits(self, times=1):
        self.wait_for("it waits", lambda: len(self.events("waits_for_members")) == times
                      and "serve" in self.status().get("shortage", ""))  # fmt: skip
        self.assertIsNone(self.leader.process.poll(), "the coordinator is the same")
        status = self.status()
        self.assertEqual((status["phase"], status["members"]), ("short", []))
        self.assertEqual(status["step"], self.events("waits_for_members")[-1]["step"])
        return status["step"]

    def enrolled(self):
        return self.told("enrolled")

    def stop(self):
        names = list(self.members)
        stopped = program.run("stop", self.out)
        self.assertEqual(stopped.status, 0, stopped.err)
        self.expect_end(0, *names)
        done = self.leader.finish()
        self.assertEqual(done.status, 0, done.err)
        return int(re.search(r"stopped after step (\d+); continue with: gossamer", done.err)[1])

    # Each step has its line, and no more than one. A step is left out if a member took it over when the view changed
    # (docs/protocols/reports.md).
    def expect_steps(self, steps, left_out=3):
        told = {line["step"]: line["loss"] for line in self.lines("metrics.jsonl")}
        self.assertEqual(len(told), len(self.lines("metrics.jsonl")))
        want = {i + 1: sum(self.numbers[i * BATCH : (i + 1) * BATCH]) for i in range(steps)}
        self.assertEqual([step for step in told if told[step] != want.get(step)], [])
        self.assertLessEqual(len(want) - len(told), left_out)

    # All machines are told to leave, one after the other or at once, and come back. The coordinator waits, says so, and
    # goes on at the step where it was. Nobody enrols anew.
    def test_all_leave(self):
        self.lead("--first", "2")
        self.join("one", "two")
        step = 0
        for times, at_once in enumerate((False, True, True), start=1):
            self.wait_for_serving("one", "two")
            step = self.wait_for_steps(step + 5)
            self.signal(signal.SIGTERM, "one")
            if not at_once:
                self.wait_for_serving("two")
            self.signal(signal.SIGTERM, "two")
            self.expect_end(143, "one", "two")
            waits = self.wait_until_it_waits(times)
            self.assertGreaterEqual(waits, step)
            self.assertEqual(self.events("waits_for_members")[-1]["steps_lost"], 0)
            self.join("two", "one")
            step = self.wait_for_steps(waits)
        self.wait_for_serving("one", "two")
        self.expect_steps(self.stop())
        self.assertEqual(len(self.enrolled()), 2)

    # Nobody leads when all machines are told to leave, at once or one after the other. Each saves what it holds in its own
    # directory, all of them the same step. Back one after the other, they bring it, and the run goes on there.
    def test_all_leave_while_nobody_leads(self):
        for times, at_once in enumerate((True, False)):
            with self.subTest(at_once=at_once):
                self.lead("--first", "2", *(["--resume"] if times else []))
                self.join("one", "two")
                self.wait_for_serving("one", "two")
                step = self.wait_for_steps((self.status()["step"] or 0) + 5)
                self.leader.signal(signal.SIGKILL)
                self.leader.finish()
                saved = []
                for names in [("one", "two")] if at_once else [("one",), ("two",)]:
                    self.signal(signal.SIGTERM, *names)
                    self.expect_end(143, *names)
                    saved += [program.saved_step(self.path(name)) for name in names]
                self.assertEqual(saved, [saved[0]] * 2)
                self.assertGreaterEqual(saved[0], step)
                self.lead("--resume", "--first", "2")
                self.join("two")
                self.wait_for("its piece", lambda: saved[0] in self.checkpoints())
                self.join("one")
                self.wait_for_serving("one", "two")
                self.wait_for_steps(saved[0])
                self.assertEqual(self.events("waits_for_members")[-1]["step"], saved[0])
                self.assertEqual(self.events("waits_for_members")[-1]["steps_lost"], 0)
                self.stop()
        self.assertEqual(len(self.enrolled()), 2)

    # All leave while nobody leads, and a machine that had no part comes before them. The run waits for those that had one,
    # says so, and goes on where it was.
    def test_another_comes_first(self):
        self.lead("--first", "2")
        self.join("one", "two")
        self.wait_for_serving("one", "two")
        self.wait_for_steps(5)
        self.leader.signal(signal.SIGKILL)
        self.leader.finish()
        self.signal(signal.SIGTERM, "one", "two")
        self.expect_end(143, "one", "two")
        saved = program.saved_step(self.path("one"))
        self.lead("--resume", "--first", "1")
        self.join("three")
        self.wait_for("it waits", lambda: "may have steps after 0" in self.status().get("shortage", ""))
        self.join("one")
        self.wait_for("it still waits", lambda: f"pieces of step {saved}" in self.status().get("shortage", ""))
        self.join("two")
        self.wait_for_serving("one", "three", "two")
        self.wait_for_steps(saved)
        self.assertEqual(self.events("waits_for_members")[-1]["step"], saved)
        self.assertGreater(self.stop(), saved)

    # A member that serves brings a damaged part of a checkpoint, twice. It is fenced with the reason each time, its new life
    # may go on, and the others notice nothing: no life ends, and no step is lost.
    def test_a_member_brings_what_is_damaged(self):
        self.lead("--first", "2")
        self.join("one", "two")
        self.wait_for_serving("one", "two")
        nodes = {member["name"]: member["node"] for member in self.status()["members"]}
        for times in (1, 2):
            step = self.wait_for_steps((self.status()["step"] or 0) + 5)
            path = self.path("one", "deliver", f"step-{step:012}.{nodes['one']}.part")
            with open(path + ".tmp", "wb") as file:
                file.write(b"GSMRCKPT" + random.Random(times).randbytes(5000))
            os.rename(path + ".tmp", path)
            self.wait_for("it is fenced", lambda: len(self.told("lost")) == times)
            self.wait_for_serving("one", "two")
            self.wait_for_steps(step)
        self.assertEqual([line["node"] for line in self.told("lost")], [nodes["one"]] * 2)
        for line in self.told("lost"):
            self.assertIn("step-", line["text"])
        self.assertEqual(len([line for line in self.told("begun") if line["node"] == nodes["two"]]), 1)
        self.assertEqual(list(self.checkpoints()), [])
        self.expect_steps(self.stop())

    def told(self, event):
        with open(self.path("run", "nodes", "coordinator", "events.jsonl"), encoding="utf-8") as file:
            return [line for line in map(json.loads, file) if line["event"] == event]

    # The last machine is killed. That cannot be told from a lost network before another machine comes. Then the run goes
    # back to its newest checkpoint and no farther. The machine may be another one. It has joined the fleet that is gone,
    # and the same process begins anew with the run.
    def test_the_last_is_killed(self):
        self.lead("--first", "1", every_steps=20)
        self.join("one")
        self.wait_for("a checkpoint", lambda: self.events("checkpoint_written"))
        self.wait_for_steps(self.events("checkpoint_written")[-1]["step"] + 5)
        self.signal(signal.SIGKILL, "one")
        self.expect_end(-9, "one")
        self.join("three")
        self.members["three"].wait_for_line("the run has begun anew")
        (waits,) = [line["step"] for line in self.events("waits_for_members")]
        self.assertEqual(waits, max(step for step in self.checkpoints() if step <= waits))
        self.assertEqual(waits % 20, 0)
        self.assertIn(self.events("waits_for_members")[-1]["steps_lost"], range(1, 30))
        self.wait_for_steps(waits + 5)
        self.expect_steps(self.stop())

    # The coordinator is killed as soon as the end of the run is in its store. The next one ends the run, with a checkpoint
    # of the step on which the members agree.
    def test_killed_as_the_run_ends(self):
        step = 0
        for times in range(3):
            self.lead("--first", "2", *(["--resume"] if times else []))
            self.join("one", "two")
            self.wait_for_serving("one", "two")
            step = self.wait_for_steps(step + 3)
            stopped = program.run("stop", self.out)
            self.assertEqual(stopped.status, 0, stopped.err)
            self.leader.signal(signal.SIGKILL)
            self.leader.finish()
            self.lead("--resume", "--first", "2")
            done = self.leader.finish()
            self.assertEqual(done.status, 0, done.err)
            self.expect_end(0, "one", "two")
            self.assertGreaterEqual(max(self.checkpoints()), step)
        self.expect_steps(max(self.checkpoints()))

    # All leave while nobody leads. The coordinator is back, and is told to end the run while it waits for them. It ends the
    # run: it does not wait for members of another fleet. Those that come back after that bring what they have.
    def test_stopped_while_it_waits(self):
        self.lead("--first", "2")
        self.join("one", "two")
        self.wait_for_serving("one", "two")
        step = self.wait_for_steps(5)
        self.leader.signal(signal.SIGKILL)
        self.leader.finish()
        self.signal(signal.SIGTERM, "one", "two")
        self.expect_end(143, "one", "two")
        saved = program.saved_step(self.path("one"))
        self.assertGreaterEqual(saved, step)
        self.lead("--resume", "--first", "2")
        stopped = program.run("stop", self.out)
        self.assertEqual(stopped.status, 0, stopped.err)
        self.assertIn("the run ends once node", self.status().get("shortage", ""))
        ended = self.leader.finish()
        self.assertEqual(ended.status, 1, ended.err)
        self.assertIn("--resume goes on from step 0, or from a later one", ended.err)
        self.assertEqual(self.events("waits_for_members"), [])
        self.lead("--resume", "--first", "2")
        self.join("one", "two")
        self.wait_for_serving("one", "two")
        self.wait_for_steps(saved)
        self.assertEqual(self.events("waits_for_members")[-1]["step"], saved)
        self.assertEqual(self.events("waits_for_members")[-1]["steps_lost"], 0)
        self.assertGreater(self.stop(), saved)
        self.assertEqual(len(self.enrolled()), 2)

    # A coordinator is stopped and resumed three times. The same machines come each time, without a token, and also
    # those that look for it while it is away. A token of before lets another machine in.
    def test_stop_and_resume(self):
        self.lead("--first", "2")
        self.join("one", "two")
        step = 0
        for names in (("one", "two"), ("one", "two", "three"), ("one", "three")):
            self.wait_for_serving(*self.members)
            step = self.wait_for_steps(step + 5)
            before = list(self.members)
            stopped = self.stop()
            self.assertGreaterEqual(stopped, step)
            self.expect_steps(stopped)
            early = [name for name in names if name in before]
            self.join(*early)
            for name in early:
                self.members[name].wait_for_line("trying on")
            self.lead("--resume", "--first", "2")
            self.join(*(name for name in names if name not in before))
            self.assertEqual([line["step"] for line in self.events("resumed")][-1], stopped)
        self.wait_for_serving("one", "three")
        self.wait_for_steps(step + 5)
        self.expect_steps(self.stop())
        self.assertEqual(len(self.enrolled()), 3)

    # Claim: a run that was stopped, or left while nobody led it, for longer than its certificates hold goes on as after a
    # moment. No step is lost, no machine needs a token, and nobody enrols anew.
    def test_away_for_longer_than_certificates_hold(self):
        self.lead("--first", "2", "--certificates", "4s")
        self.join("one", "two")
        self.wait_for_serving("one", "two")
        self.wait_for_steps(5)
        stopped = self.stop()
        self.wait_until_certificates_ended("one", "two")
        self.lead("--resume", "--first", "2")
        self.join("one", "two")
        self.wait_for_steps(stopped + 5)
        self.assertEqual([line["step"] for line in self.events("resumed")][-1], stopped)
        again = self.stop()
        self.expect_steps(again)

        self.lead("--resume", "--first", "2")
        self.join("one", "two")
        self.wait_for_serving("one", "two")
        self.wait_for_steps(again + 1)  # a fleet without a step has nothing to save
        self.leader.signal(signal.SIGKILL)
        self.leader.finish()
        self.signal(signal.SIGTERM, "one", "two")
        self.expect_end(143, "one", "two")
        saved = program.saved_step(self.path("one"))
        self.wait_until_certificates_ended("one", "two")
        self.lead("--resume", "--first", "2")
        self.join("two")
        self.wait_for("its piece", lambda: saved in self.checkpoints())
        self.join("one")
        self.wait_for_serving("one", "two")
        self.wait_for_steps(saved + 5)
        self.assertEqual(self.events("waits_for_members")[-1]["step"], saved)
        self.assertEqual(self.events("waits_for_members")[-1]["steps_lost"], 0)
        self.assertGreater(self.stop(), saved)
        self.assertEqual(len(self.enrolled()), 2)
        ended = [line for line in self.told("renewed") if "had ended" in line["text"]]
        self.assertGreaterEqual(len(ended), 4)

    def wait_until_certificates_ended(self, *names):
        for name in names:
            path = self.path(name, "credentials", "certificate.pem")
            until = ssl.cert_time_to_seconds(ssl._ssl._test_decode_cert(path)["notAfter"])
            while time.time() <= until + 1:
                time.sleep(program.PAUSE)

    # The checkpoint that a fleet began with is gone when the fleet is led on. No member could begin with it. The run goes
    # on from an older one, instead of ending each time.
    def test_the_start_is_gone(self):
        self.lead("--first", "1", every_steps=20)
        self.join("one")
        self.wait_for("a checkpoint", lambda: self.events("checkpoint_written"))
        self.wait_for_steps(self.events("checkpoint_written")[-1]["step"] + 5)
        stopped = self.stop()
        older = sorted(self.checkpoints())[-2]
        self.lead("--resume", "--first", "1", every_steps=20)
        self.join("one")
        self.wait_for_serving("one")
        self.signal(signal.SIGKILL, "one")
        self.leader.signal(signal.SIGKILL)
        self.expect_end(-9, "one")
        self.leader.finish()
        for name in os.listdir(self.path("run", "checkpoints")):
            if int(name.split(".")[0].split("-")[1]) >= stopped:
                os.remove(self.path("run", "checkpoints", name))
        self.lead("--resume", "--first", "1", every_steps=20)
        self.assertEqual(self.events("waits_for_members")[-1]["step"], older)
        self.join("one")
        self.wait_for_steps(stopped)
        self.expect_steps(self.stop())

    # A week of leaving and returning, drawn: no step is lost, nobody enrols anew, and in the end all has been added.
    def test_a_week(self):
        draw = random.Random(7)
        self.write_numbers(800 * BATCH)
        names = ["one", "two", "three"]
        self.lead("--first", "1", pause_ms=80)
        self.join(*names)
        self.wait_for_serving(*names)
        waits = 0
        for _ in range(ROUNDS):
            self.wait_for_steps((self.status().get("step") or 0) + draw.randrange(1, 10))
            what = draw.choice(["some", "all", "stop"])
            go = draw.sample(names, draw.randrange(1, 3) if what == "some" else 3)
            if what == "stop":
                self.stop()
                early = draw.random() < 0.5
                if early:
                    self.join(*go)
                self.lead("--resume", "--first", "1", pause_ms=80)
                if not early:
                    self.join(*go)
            else:
                self.signal(signal.SIGTERM, *go)
                self.expect_end(143, *go)
                if what == "all":
                    waits += 1
                    self.wait_until_it_waits(waits)
                self.join(*go)
            self.wait_for_serving(*names)
        self.assertEqual([line["steps_lost"] for line in self.events("waits_for_members")], [0] * waits)
        self.assertEqual(len(self.enrolled()), 3)
        done = self.leader.finish()
        self.assertEqual(done.status, 0, done.err)
        self.expect_end(0, *names)
        self.expect_steps(800, left_out=3 * ROUNDS)
        with open(self.path("run", "summary.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["metrics"], {"sum": sum(self.numbers)})


if __name__ == "__main__":
    unittest.main()
