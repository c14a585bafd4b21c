# SPDX-License-Identifier: Apache-2.0
"""`train --nodes N --resume`: the run goes on from its newest whole checkpoint, whatever ended all nodes and the
command. It goes on with any number of nodes or in one process, and ends with the weights of an undisturbed run."""

import json
import os
import random
import re
import signal
import subprocess
import unittest

import program
from test_train_nodes import LONG, WithNodes, distance, processes

STEPS = 1200
EVERY = 100  # steps between two checkpoints
# Rounding of others' bf16 adds up to 1e-3, in one process, too.
KEYS = ["optimizer.moments=element", f"checkpoint.every_steps={EVERY}", "checkpoint.every_minutes=0"]


class ResumeNodes(WithNodes):
    def setUp(self):
        super().setUp()
        self.out = self.path("run")
        self.alone = None  # the result of one process

    def events(self, name):
        path = f"{self.out}/events.jsonl"
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            events = [json.loads(line) for line in file if line.endswith("\n")]
        return [event for event in events if event["event"] == name]

    def newest(self):
        """The step of the newest checkpoint."""
        written = self.events("checkpoint_written")
        return written[-1]["step"] if written else 0

    def start(self, nodes, *more, until=0, steps=STEPS):
        """Begins or continues the run on so many nodes. Returns it once it has a checkpoint of step >= `until`."""
        running = self.running(self.command(self.out, "--nodes", nodes, *KEYS, *more, steps=steps))
        self.wait_for(
            f"a checkpoint of step {until}",
            lambda: running.process.poll() is not None or self.newest() >= until,
        )
        self.assertIsNone(running.process.poll(), "ended too soon")
        return running

    def kill_all(self, running):
        """Kills the command and all nodes."""
        running.signal(signal.SIGKILL)
        for pid, _ in processes(self.out):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # the command's end has killed it
        running.finish()
        self.expect_no_processes(self.out)

    def finish(self, *more, steps=STEPS):
        got = self.train(self.out, "--resume", *KEYS, *more, steps=steps)
        self.assertEqual(got["steps"], steps)
        return got

    def expect_same(self, got, steps=STEPS, lost=0):
        """The end and the curve are those of one process. The curve may lack up to `lost` steps. The nodes had done
        them when everything was killed, and the command had not heard of them."""
        if self.alone is None:
            out = self.path("alone")
            summary = self.train(out, "optimizer.moments=element", steps=steps)
            self.alone = summary, self.export(out)
        want, weights = self.alone
        self.assertLess(distance(self.export(self.out), weights), 1e-4)
        self.assertAlmostEqual(got["final_loss"], want["final_loss"], delta=1e-4)
        self.assertAlmostEqual(got["metrics"]["P@1"], want["metrics"]["P@1"], delta=1)
        with open(f"{self.out}/metrics.jsonl", encoding="utf-8") as file:
            lines = [json.loads(line)["step"] for line in file]
        every = steps // 1000
        self.assertEqual(lines, sorted(set(lines)))
        self.assertLessEqual(set(lines), set(range(every, steps + 1, every)))
        self.assertGreaterEqual(len(lines), (steps - lost) // every)

    # The run goes on where it was, on other numbers of nodes, after kill -9 of everything, twice. It ends as an
    # undisturbed run does.
    def test_all_killed(self):
        self.kill_all(self.start(3, until=2 * EVERY))
        first = self.newest()
        self.kill_all(self.start(2, "--resume", until=first + 2 * EVERY))
        second = self.newest()
        got = self.finish("--nodes", "4")
        resumed = [event["step"] for event in self.events("resumed")]
        self.assertEqual(len(resumed), 2)
        self.assertGreaterEqual(resumed[0], 2 * EVERY)
        self.assertGreaterEqual(resumed[1], second)
        self.assertEqual(got["nodes"], 4)
        self.expect_same(got, lost=4 * EVERY)
        left = [name for name in os.listdir(f"{self.out}/checkpoints") if not name.endswith(".ckpt")]
        self.assertEqual({name.split(".")[0] for name in left}, {f"step-{STEPS - EVERY:012}"})

    # The command is killed at drawn moments, again and again, and started again at once: it does not wait for nodes of
    # the fleet before. The run ends as an undisturbed run does.
    def test_killed_at_drawn_moments(self):
        random_numbers = random.Random(11)
        begun = [f"nodes/{name}" for name in ("coordinator/lead.toml", "coordinator/address.json", "token", "1.log")]
        moments = [*begun, *(random_numbers.randrange(2, 2 * EVERY) for _ in range(4))]
        random_numbers.shuffle(moments)
        for moment in moments:
            with self.subTest(moment=moment):
                self.kill_at(moment, random_numbers.randint(1, 4))
        self.expect_same(self.finish("--nodes", "3"), lost=EVERY * len(moments))

    def kill_at(self, moment, nodes):
        """Goes on, and kills the command when that file is written anew, or after so many steps more."""
        path = f"{self.out}/{moment}"
        before = (self.written(path), self.logged())
        running = self.running(self.command(self.out, "--nodes", nodes, "--resume", *KEYS, steps=STEPS))
        if isinstance(moment, str):
            self.wait_for("the file", lambda: running.process.poll() is not None or self.written(path) != before[0])
        else:
            self.wait_for("steps", lambda: running.process.poll() is not None or self.logged() >= before[1] + moment)
        running.signal(signal.SIGKILL)
        done = running.finish()
        self.assertEqual(done.status, -signal.SIGKILL, done.err)  # it had not ended by itself

    def written(self, path):
        try:
            return os.stat(path).st_mtime_ns
        except FileNotFoundError:
            return None

    def logged(self):
        try:
            with open(f"{self.out}/metrics.jsonl", "rb") as file:
                return file.read().count(b"\n")
        except FileNotFoundError:
            return 0

    # Nodes go on with a run that one process began, and one process ends it. Each says where it goes on.
    def test_one_process_and_back(self):
        steps = 4 * STEPS  # one process is fast
        running = self.running(self.command(self.out, *KEYS, steps=steps))
        self.wait_for("a checkpoint", lambda: self.newest() >= EVERY or running.process.poll() is not None)
        running.signal(signal.SIGTERM)
        self.assertEqual(running.finish().status, 143)
        alone = self.newest()
        running = self.start(3, "--resume", until=alone + EVERY, steps=steps)
        running.signal(signal.SIGTERM)
        done = running.finish()
        self.assertEqual(done.status, 143, done.err)
        nodes = self.newest()
        got = self.finish(steps=steps)
        self.assertEqual([event["step"] for event in self.events("resumed")], [alone, nodes])
        self.assertEqual(sorted(os.listdir(f"{self.out}/checkpoints")),
                         [f"step-{steps - EVERY:012}.ckpt", f"step-{steps:012}.ckpt"])  # fmt: skip
        self.expect_same(got, steps)

    # Nodes and one process go on from each other's checkpoints with hash tables for labels. They build their own anew.
    def test_hash_tables(self):
        tables = ["train.hard_negatives=100000", "train.hard_after=0", "lsh.queries=4", "lsh.tolerance=0", "lsh.update_every=1"]
        out = self.path("alone")
        want = self.train(out, "optimizer.moments=element", *tables, steps=STEPS)
        self.alone = want, self.export(out)
        self.kill_all(self.start(2, *tables, until=EVERY))
        running = self.running([*self.command(self.out, *KEYS, *tables, "--resume", steps=STEPS)])
        first = self.newest()
        self.wait_for("a checkpoint", lambda: self.newest() > first or running.process.poll() is not None)
        running.signal(signal.SIGTERM)
        self.assertEqual(running.finish().status, 143)
        self.expect_same(self.finish("--nodes", "3", *tables), lost=2 * EVERY)

    # All nodes write their present step on SIGTERM and Ctrl-C, and the run goes on from there. They do so even without
    # a key that asks for checkpoints.
    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                self.out = self.path(number.name)
                running = self.begin(self.out, 3, STEPS, "optimizer.moments=element", "checkpoint.every_minutes=0")
                running.signal(number)
                done = running.finish()
                self.assertEqual(done.status, 128 + number, done.err)
                said = re.search(r"stopped after step (\d+); continue with: gossamer", done.err)
                self.assertTrue(said, done.err)
                self.assertEqual(self.newest(), int(said[1]))
                self.assertFalse(os.path.exists(f"{self.out}/model"))
                got = self.train(self.out, "--nodes", "2", "--resume", steps=STEPS)
                self.assertEqual([event["step"] for event in self.events("resumed")], [int(said[1])])
                self.expect_same(got)

    # Checkpoints by time are as those by steps: all nodes write the same step.
    def test_by_time(self):
        running = self.running(self.command(self.out, "--nodes", "3", "checkpoint.every_minutes=0.01", steps=LONG))
        self.wait_for("two checkpoints", lambda: len(self.events("checkpoint_written")) >= 2)
        running.signal(signal.SIGTERM)
        self.assertEqual(running.finish().status, 143)

    # A damaged file of the newest checkpoint is named, and the checkpoint before is taken. With none left the run
    # starts anew.
    def test_damaged(self):
        self.kill_all(self.start(2, until=4 * EVERY))
        place = f"{self.out}/checkpoints"
        parts = sorted(name for name in os.listdir(place) if name.endswith(".part"))
        steps = [int(name[len("step-"):].split(".")[0]) for name in parts]
        # Both nodes have written it, whether the command has heard of it or not.
        newest = max(step for step in steps if steps.count(step) == 2)
        damaged = [name for name in parts if name.startswith(f"step-{newest:012}")]
        self.damage(f"{place}/{damaged[0]}")
        running = self.start(3, "--resume")
        self.wait_for("the start", lambda: self.events("resumed"))
        self.kill_all(running)
        self.assertIn(damaged[0], self.events("checkpoint_damaged")[0]["file"])
        self.assertEqual(self.events("resumed")[0]["step"], newest - EVERY)
        for name in os.listdir(place):
            self.damage(f"{place}/{name}")
        got = self.finish("--nodes", "2")
        self.assertEqual(len(self.events("resumed")), 1)
        self.expect_same(got)

    def damage(self, path):
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))

    # A full disk costs checkpoints and nothing else, and says so. Earlier ones stay, and later ones are written.
    def test_full_disk(self):
        mount = self.path("small")
        os.mkdir(mount)
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "gossamer-test", mount], capture_output=True,
                              text=True, check=False)  # fmt: skip
        if made.returncode != 0:
            self.skipTest(f"cannot mount a small file system: {made.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", mount], check=False)
        self.out = f"{mount}/run"
        running = self.start(3, until=EVERY, steps=LONG)
        # Less than the files of a checkpoint, and more than nodes log up to the next: a failure that has no room in a log
        # is not heard of.
        program.fill_disk(f"{mount}/filler", room=64 << 10)
        running.wait_for_line("no checkpoint of step")
        self.wait_for("a checkpoint for which there is no room", self.no_room)
        self.assertIsNone(running.process.poll())
        kept = self.newest()
        os.remove(f"{mount}/filler")
        self.wait_for("a checkpoint again", lambda: self.newest() > kept)
        running.wait_for_line("checkpoints are written again")
        running.signal(signal.SIGTERM)
        done = running.finish()
        self.assertEqual(done.status, 143, done.err)

    def no_room(self):
        failed = self.events("checkpoint_failed")
        return failed and "space" in failed[-1]["error"]

    # Other keys are refused, a finished run prints its summary, an empty directory starts a run.
    def test_rules(self):
        done = self.run_nodes("2", "train.lr=0.02")
        self.assertEqual(done.status, 0, done.err)
        again = self.run_nodes("3")
        self.assertEqual((again.status, again.out), (0, done.out))
        os.remove(f"{self.out}/summary.json")
        other = self.run_nodes("2", "train.lr=0.03")
        self.assertEqual(other.status, 2, other.err)
        self.assertIn("train.lr", other.err)
        # The trained network is there, so no node is needed for the rest.
        last = self.run_nodes("2")
        self.assertEqual(last.status, 0, last.err)
        self.assertEqual(last.json()["final_loss"], done.json()["final_loss"])
        self.assertEqual(last.json()["metrics"], done.json()["metrics"])

    def run_nodes(self, nodes, *more):
        return program.run(*self.command(self.out, "--nodes", nodes, "--resume", *more))

    # The death of one node is not forgotten by the next: the run goes on with one node killed before everything is.
    def test_a_node_and_then_all(self):
        running = self.start(4, until=EVERY)
        self.lose(self.out, "2")
        with_three = self.newest() + 2 * EVERY
        self.wait_for("later checkpoints", lambda: self.newest() >= with_three)
        self.kill_all(running)
        self.expect_same(self.finish("--nodes", "3"), lost=3 * EVERY)

    # The lead is killed while it measures what its nodes have trained, and they end with it. Their parts are there, so
    # --resume starts no node again, and measures the model itself.
    def test_killed_while_measuring(self):
        keys = ["predict.instances=false", "checkpoint.every_steps=0", "checkpoint.every_minutes=0"]
        self.test_path = self.many_records()
        running = self.running(self.command(self.out, "--nodes", 2, *keys, steps=STEPS))
        running.wait_for_line("the nodes measure what they have trained")
        self.kill_all(running)
        done = program.run(*self.command(self.out, "--nodes", 2, "--resume", *keys, steps=STEPS))
        self.assertEqual(done.status, 0, done.err)
        self.assertNotIn("threads each", done.err)
        measured = program.run("eval", self.out, "--data", self.test_path, "--json").json()
        self.assertEqual(done.json()["metrics"], measured["metrics"])
        self.assertEqual(done.json()["steps"], STEPS)

    # Nodes have delivered and measured a network that stays in parts before the command ends and has written all. Then
    # --resume starts no node again.
    def test_what_was_delivered_is_not_trained_again(self):
        keys = ["predict.instances=false", "checkpoint.every_steps=0", "checkpoint.every_minutes=0"]
        running = self.begin(self.out, 2, STEPS, *keys)
        in_the_way = f"{self.out}/curve.svg/file"
        os.makedirs(in_the_way)
        done = running.finish()
        self.assertEqual(done.status, 1, done.err)
        self.assertIn("curve.svg", done.err)
        os.removedirs(in_the_way)
        done = program.run(*self.command(self.out, "--nodes", 2, "--resume", *keys, steps=STEPS))
        self.assertEqual(done.status, 0, done.err)
        self.assertNotIn("threads each", done.err)
        got = done.json()
        self.assertEqual(got["steps"], STEPS)
        self.assertGreater(got["metrics"]["P@1"], 50)
        measured = program.run("eval", self.out, "--data", self.test_path, "--json").json()
        self.assertEqual(got["metrics"], measured["metrics"])
        with open(f"{self.out}/metrics.jsonl", encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["step"] for line in file], list(range(1, STEPS + 1)))
        self.assertNotIn("parts", os.listdir(f"{self.out}/nodes"))

    # Claim: a network that diverges ends the run with that cause, status 1 and no node left behind. The newest whole
    # checkpoint stays. A run that goes on from there finds the same again, so nobody is told to.
    def test_a_network_that_diverges(self):
        with open(self.train_path, encoding="utf-8") as file:
            lines = file.readlines()
        lines[300] = re.sub(r":\d+", ":1e30", lines[300], count=1)
        with open(self.train_path, "w", encoding="utf-8") as file:
            file.writelines(lines)
        keys = ["data.weighting=none", "model.activation=relu", "checkpoint.every_steps=1", "checkpoint.every_minutes=0"]
        for more in ([], ["--resume"]):
            newest = self.newest()
            done = program.run(*self.command(self.out, "--nodes", 2, *keys, *more, steps=STEPS))
            self.assertEqual(done.status, 1, done.err)
            self.assertRegex(done.err, "the network has diverged; got a hidden unit .* huge values in the data")
            self.assertNotIn("--resume", done.err)
            self.assertIn("start a new run", done.err)
            self.expect_no_processes(self.out)
            self.assertGreaterEqual(self.newest(), max(newest, 1))
            parts = [name for name in os.listdir(f"{self.out}/checkpoints") if name.endswith(".part")]
            self.assertEqual(sum(name.startswith(f"step-{self.newest():012}.") for name in parts), 2, parts)
            if more:
                self.assertIn(f"goes on at step {newest}\n", done.err)
                self.assertEqual([event["step"] for event in self.events("resumed")], [newest])


if __name__ == "__main__":
    unittest.main()
