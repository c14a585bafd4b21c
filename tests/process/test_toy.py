# SPDX-License-Identifier: Apache-2.0
"""An engine beside the product's own: all that it does, it does with rooms that every engine shares (tests/toy)."""

import json
import os
import random
import re
import shutil
import signal
import tempfile
import time
import unittest

import program
from ports import address_of_its_own

DEADLINE = 120  # only a failure reaches it
AWAY = float(os.environ.get("GOSSAMER_AWAY", "5"))  # seconds without a coordinator
PRODUCT = program.GOSSAMER
BATCH = 4


def setUpModule():
    program.GOSSAMER = os.environ.get("GOSSAMER_TOY", "build/release/tests/toy/gossamer_toy")


def tearDownModule():
    program.GOSSAMER = PRODUCT


class Toy(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.out = self.path("run")

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def write_numbers(self, count, seed=1):
        draw = random.Random(seed)
        self.numbers = [draw.randrange(1000) for _ in range(count)]
        with open(self.path("numbers.txt"), "w", encoding="utf-8") as file:
            file.write(" ".join(map(str, self.numbers)) + "\n")

    def command(self, *more):
        return ["train", "toy", f"numbers={self.path('numbers.txt')}", f"batch={BATCH}", "--nodes", "3", "--out", self.out,
                "--json", *more]  # fmt: skip

    def begin(self, *more):
        """Starts a run, and returns it once its members have done some steps."""
        running = program.Running(*self.command(*more))
        self.addCleanup(self.end, running)
        self.wait_for("steps", lambda: running.process.poll() is not None or (self.status().get("step") or 0) > 15)
        self.assertIsNone(running.process.poll(), "ended too soon")
        return running

    def end(self, running):
        if running.process.poll() is None:
            running.signal(signal.SIGKILL)
        if not running.process.stdout.closed:
            running.finish()

    def wait_for(self, what, accept):
        self.assertTrue(any(accept() for _ in program.looks(DEADLINE)), what)

    def status(self):
        if not os.path.exists(self.path("run", "nodes", "coordinator", "address.json")):
            return {}
        status = program.run("status", self.out, "--json")
        return status.json() if status.status == 0 else {}

    def lines(self, name):
        with open(self.path("run", name), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def pids(self):
        """Processes of this run's members, by the directory's name."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode().split("\0")
            except OSError:
                continue
            if len(words) > 1 and words[1] == "join":
                found.update({word.rsplit("/", 1)[1]: int(pid) for word in words if word.startswith(f"{self.out}/nodes/")
                              and word.rsplit("/", 1)[1].isdigit()})  # fmt: skip
        return found

    def expect_sum(self, done):
        self.assertEqual(done.status, 0, done.err)
        summary = done.json()
        self.assertEqual(summary["metrics"], {"sum": sum(self.numbers)})
        with open(self.path("run", "model", "model.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), {"engine": "toy", "sum": sum(self.numbers)})
        self.wait_for("members end", lambda: not self.pids())
        return summary

    # The engine has a preset and keys like any other, and the product does not have it.
    def test_it_is_one_engine_more(self):
        shown = program.run("train", "--help").out
        self.assertIn("adds the numbers of a file", shown)
        self.assertIn("xmc", shown)
        keys = program.run("train", "--keys", "toy", "batch=7").out
        self.assertIn("batch=7", keys)
        self.assertIn("pause_ms=0", keys)
        self.assertNotIn("train.batch", keys)
        self.assertNotIn("engine=", keys)
        self.assertIn("things=64", program.run("train", "--keys", "check").out)
        missing = program.run("train", "toy", "--nodes", "1", "--out", self.out)
        self.assertEqual(missing.status, 2)
        self.assertIn("numbers is missing", missing.err)
        wrong = program.run("train", "toy", "bach=7", "--out", self.out)
        self.assertEqual(wrong.status, 2)
        self.assertIn("batch", wrong.err)
        program.GOSSAMER = PRODUCT
        self.addCleanup(setUpModule)
        self.assertNotIn("adds the numbers", program.run("train", "--help").out)

    # Three members add all numbers. The run has its usual files: each step with what it added, and a summary.
    def test_members_add(self):
        self.write_numbers(402)
        summary = self.expect_sum(program.run(*self.command()))
        self.assertEqual((summary["engine"], summary["nodes"], summary["steps"]), ("toy", 3, 101))
        self.assertEqual(summary["recoveries"], [])
        steps = self.lines("metrics.jsonl")
        self.assertEqual([line["step"] for line in steps], list(range(1, 102)))
        self.assertEqual([line["loss"] for line in steps],
                         [sum(self.numbers[i : i + BATCH]) for i in range(0, len(self.numbers), BATCH)])  # fmt: skip
        self.assertFalse([line for line in steps if "active_rows" in line], "those are of another engine")
        again = program.run(*self.command("--resume"))
        self.assertEqual(again.json(), summary)

    # A config file may name the engine. The run's own file does. The line for people does not name a command that the
    # engine lacks.
    def test_a_file_names_the_engine(self):
        self.write_numbers(20)
        self.expect_sum(program.run(*self.command("engine=toy")))
        first, self.out = self.out, self.path("again")
        with open(f"{first}/run.toml", encoding="utf-8") as file:
            self.assertTrue(any(line.startswith('engine = "toy" ') for line in file))
        done = program.run("train", f"{first}/run.toml", "--nodes", "1", "--out", self.out)
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual(done.out, f"the model is in {self.out}/model\n")
        with open(self.path("again", "summary.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["metrics"], {"sum": sum(self.numbers)})

    # The key is no setting: a word cannot change it, and each file may have it. A file of an engine that does not train
    # gets the answer that its name gets.
    def test_the_engine_is_no_setting(self):
        self.write_numbers(20)
        changed = program.run(*self.command("engine=sparse"))
        self.assertEqual(changed.status, 2, changed.err)
        self.assertIn("'engine=sparse'", changed.err)
        self.assertIn("'engine=toy'", changed.err)
        self.assertFalse(os.path.exists(self.out))
        config = self.path("config.toml")
        for command in ("train", "coordinator"):
            with open(config, "w", encoding="utf-8") as file:
                file.write('engine = "check"\nthings = 5\n')
            refused = program.run(command, config, "--out", self.out)
            self.assertEqual(refused.status, 2, refused.err)
            self.assertIn("the engine 'check' does not do this", refused.err)
            self.assertRegex(refused.err, "expected +an engine that trains: sparse, lm, toy")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'engine = "sparse"\n[data]\ntrain = "{self.directory}/none"\n')
        refused = program.run("train", config, "--out", self.out)
        self.assertNotIn("engine", refused.err)
        self.assertIn(f"{self.directory}/none", refused.err)

    # A run of another engine is not resumed, whichever of both is asked for. The message says whose run it is.
    def test_a_run_of_another_engine_is_not_resumed(self):
        self.write_numbers(20)
        self.expect_sum(program.run(*self.command()))
        for words in (["train", "xmc"], ["train", "xmc", "--nodes", "2"], ["coordinator", "xmc"], ["coordinator", "check"]):
            refused = program.run(*words, "--resume", "--out", self.out)
            self.assertEqual(refused.status, 2, refused.err)
            self.assertIn("the run in this directory is of engine 'toy'", refused.err)
        with open(self.path("run", "run.toml"), "w", encoding="utf-8") as file:
            file.write("# run 0123456789\nseed = 1\n[train]\nbatch = 3\n")
        for words in (self.command(), ["coordinator", "check", "--out", self.out]):
            refused = program.run(*words, "--resume")
            self.assertEqual(refused.status, 2, refused.err)
            self.assertIn("the run in this directory is of engine 'sparse'", refused.err)

    # The product does not have this engine: it says so of a run and of a model.
    def test_a_model_of_an_engine_that_is_not_there(self):
        self.write_numbers(20)
        self.expect_sum(program.run(*self.command()))
        program.GOSSAMER = PRODUCT
        self.addCleanup(setUpModule)
        for directory in (self.out, self.path("run", "model")):
            refused = program.run("predict", directory, "1")
            self.assertEqual(refused.status, 2, refused.err)
            self.assertIn("there is no engine 'toy'", refused.err)
            self.assertIn("all: sparse, check", refused.err)

    # A member is killed in the middle. Status shows the members and the step while they work. The others form the lost
    # sums anew and tell what that cost. No number is lost or added twice.
    def test_killed_member(self):
        self.write_numbers(2000)
        running = self.begin("pause_ms=10")
        status = self.status()
        self.assertEqual(sorted(one["name"] for one in status["members"]), ["node 1", "node 2", "node 3"])
        self.assertEqual({one["state"] for one in status["members"]}, {"serving"})
        os.kill(self.pids()["2"], signal.SIGKILL)
        summary = self.expect_sum(running.finish())
        (recovery,) = summary["recoveries"]
        self.assertEqual(recovery["cause"], "node 2 was killed")
        self.assertGreater(recovery["step"], 15)
        self.assertGreater(recovery["steps_replayed"], 15)
        told = [line for line in self.lines("events.jsonl") if line["event"] == "recovery"]
        self.assertEqual([one["cause"] for one in told], ["node 2 was killed"])

    # The lead is killed. Resumed, the run goes on from the newest checkpoint, with other members.
    def test_resume_from_a_checkpoint(self):
        self.write_numbers(1200)
        running = self.begin("pause_ms=10")
        self.wait_for("a checkpoint", lambda: self.events("checkpoint_written"))
        running.signal(signal.SIGKILL)
        running.finish()
        self.wait_for("members end", lambda: not self.pids())
        self.assertFalse(os.path.exists(self.path("run", "summary.json")))
        summary = self.expect_sum(program.run(*self.command("pause_ms=10", "--resume")))
        self.assertGreaterEqual(summary["since_resume"]["step"], 10)
        self.assertEqual(summary["steps"], 300)
        told = [line["step"] for line in self.lines("metrics.jsonl")]
        # Of the steps before, the killed lead may have missed the last ones.
        self.assertEqual(told, sorted(set(told)))
        since = summary["since_resume"]["step"]
        self.assertEqual(told[-(300 - since) :], list(range(since + 1, 301)))

    def checkpoints(self):
        """The steps of checkpoints in the run's directory, and the files of each."""
        steps = {}
        for name in sorted(os.listdir(self.path("run", "checkpoints"))):
            if name.endswith(".part"):
                steps.setdefault(int(name.split(".")[0].split("-")[1]), []).append(name)
        return steps

    def damage(self, name):
        """Spoils the first section of a checkpoint's file."""
        with open(self.path("run", "checkpoints", name), "r+b") as file:
            file.seek(64)
            before = file.read(1)
            file.seek(64)
            file.write(bytes([before[0] ^ 0xFF]))

    def events(self, event):
        return [line for line in self.lines("events.jsonl") if line["event"] == event]

    # A file of the newest checkpoint is damaged. The run goes on from the checkpoint before, and adds the same sum.
    def test_resume_from_a_damaged_checkpoint(self):
        self.write_numbers(1200)
        running = self.begin("pause_ms=10")
        self.wait_for("checkpoints", lambda: len(self.events("checkpoint_written")) > 2)
        running.signal(signal.SIGKILL)
        running.finish()
        self.wait_for("members end", lambda: not self.pids())
        files = self.checkpoints()
        # The kill may have left a newer one in pieces.
        newest = max(step for step, parts in files.items() if len(parts) == max(map(len, files.values())))
        self.damage(files[newest][0])
        summary = self.expect_sum(program.run(*self.command("pause_ms=10", "--resume")))
        self.assertIn(summary["since_resume"]["step"], range(10, newest, 10))
        self.assertIn(f"step-{newest:012}", self.events("checkpoint_damaged")[0]["file"])

    # All members are gone, and so is what they delivered. The run is finished from its last checkpoint, and tells the
    # same. With that one damaged it goes back to the one before.
    def test_finish_from_the_last_checkpoint(self):
        self.write_numbers(160)
        first = self.expect_sum(program.run(*self.command()))
        self.assertEqual(list(self.checkpoints()), [30, 40])
        for damaged, since in ((False, 40), (True, 30)):
            shutil.rmtree(self.path("run", "nodes"), ignore_errors=True)
            os.remove(self.path("run", "summary.json"))
            if damaged:
                self.damage(self.checkpoints()[40][0])
            again = self.expect_sum(program.run(*self.command("--resume")))
            self.assertEqual(again["since_resume"]["step"], since)
            self.assertEqual((again["nodes"], again["steps"]), (first["nodes"], first["steps"]))
            if not damaged:  # a record of steps in the middle may lack the losses that were told later
                self.assertAlmostEqual(again["final_loss"], first["final_loss"])

    # Ctrl-C ends the run with a checkpoint of the step that was the last one. Resumed, the run goes on there.
    def test_interrupted(self):
        self.write_numbers(2000)
        running = self.begin("pause_ms=10", "every_steps=1000")
        running.signal(signal.SIGINT)
        self.expect_stopped(running.finish(), 130)
        self.expect_goes_on(program.run(*self.command("every_steps=1000", "--resume")))

    def expect_stopped(self, done, status):
        self.assertEqual(done.status, status, done.err)
        said = re.search(r"stopped after step (\d+); continue with: gossamer", done.err)
        self.assertTrue(said, done.err)
        self.stopped_at = int(said[1])
        self.assertGreater(self.stopped_at, 15)
        self.assertEqual(list(self.checkpoints()), [self.stopped_at])
        self.assertEqual(len(self.lines("metrics.jsonl")), self.stopped_at)
        self.assertFalse(os.path.exists(self.path("run", "model")))

    def expect_goes_on(self, done):
        summary = self.expect_sum(done)
        self.assertEqual(summary["since_resume"]["step"], self.stopped_at)
        self.assertEqual([one["step"] for one in self.lines("metrics.jsonl")], list(range(1, summary["steps"] + 1)))

    # 'gossamer stop' does the same with members elsewhere. Their checkpoints have come to the coordinator before they
    # leave. Other members go on from them.
    def test_stop_with_members_elsewhere(self):
        self.write_numbers(2000)
        words = ["toy", f"numbers={self.path('numbers.txt')}", f"batch={BATCH}", "pause_ms=10", "every_steps=1000"]
        leader, line = self.lead(words, "--listen", address_of_its_own(), "--first", "2")
        members = self.join_all(line, "one", "two")
        self.wait_for("steps", lambda: (self.status().get("step") or 0) > 15)
        stopped = program.run("stop", self.out)
        self.assertEqual(stopped.status, 0, stopped.err)
        self.expect_stopped(leader.finish(), 0)
        for member in members:
            self.assertEqual(member.finish().status, 0)
        leader, line = self.lead(words, "--resume", "--first", "2")
        members = self.join_all(line, "three", "four")
        done = leader.finish()
        for member in members:
            self.assertEqual(member.finish().status, 0)
        self.assertEqual(done.status, 0, done.err)
        with open(self.path("run", "summary.json"), encoding="utf-8") as file:
            done.out = file.read().strip() + "\n"
        self.expect_goes_on(done)

    # A member is killed as the run is interrupted. The run ends nevertheless. Resumed, it adds the same sum.
    def test_killed_while_it_halts(self):
        self.write_numbers(2000)
        running = self.begin("pause_ms=10")
        pid = self.pids()["2"]
        running.signal(signal.SIGINT)
        os.kill(pid, signal.SIGKILL)
        self.assertIn(running.finish().status, (1, 130))
        self.wait_for("members end", lambda: not self.pids())
        self.expect_sum(program.run(*self.command("pause_ms=10", "--resume")))

    # Data without a number, or with anything else, are refused by their name, and no run is left behind.
    def test_data_without_a_step(self):
        for text, words in (("", "the run has no step"), ("1 2 x 3\n", "x"), ("1 -2\n", "-2")):
            with open(self.path("numbers.txt"), "w", encoding="utf-8") as file:
                file.write(text)
            refused = program.run(*self.command())
            self.assertEqual(refused.status, 3, refused.err)
            self.assertIn("numbers.txt", refused.err)
            self.assertIn(words, refused.err)
            self.assertFalse(os.path.exists(self.out))

    def lead(self, words, *more):
        """Starts a coordinator. Returns it, and the command line by which members join."""
        leader = program.Running("coordinator", *words, "--out", self.out, *more)
        self.addCleanup(self.end, leader)
        line = leader.process.stdout.readline()
        if not line:
            self.fail(leader.finish().err)
        return leader, line.split()

    def join_all(self, line, *names):
        members = []
        for name in names:
            members.append(program.Running(*line[1:], "--name", name, "--cores", "1", "--dir", self.path(name),
                                           environment={"XDG_STATE_HOME": self.path(f"state-{name}")}))  # fmt: skip
            self.addCleanup(self.end, members[-1])
        return members

    # A coordinator that two members join, each with a directory of its own.
    def coordinate(self, steps, pause_ms):
        self.write_numbers(steps * BATCH)
        self.words = ["toy", f"numbers={self.path('numbers.txt')}", f"batch={BATCH}", f"pause_ms={pause_ms}"]
        leader, line = self.lead(self.words, "--listen", address_of_its_own(), "--first", "2")
        return leader, self.join_all(line, "one", "two")

    def wait_for_steps_beyond(self, steps):
        self.wait_for("steps", lambda: (self.status().get("step") or 0) > steps)
        return self.status()["step"]

    def kill_for(self, leader, seconds):
        leader.signal(signal.SIGKILL)
        leader.finish()
        time.sleep(seconds)
        return self.lead(self.words, "--resume")[0]

    # All end well, and each step has its line, but for so many. Returns the summary.
    def expect_each_step(self, leader, members, steps, missing=0):
        done = leader.finish()
        self.assertEqual(done.status, 0, done.err)
        for member in members:
            self.assertEqual(member.finish().status, 0)
        told = self.lines("metrics.jsonl")
        losses = {i + 1: sum(self.numbers[i * BATCH : (i + 1) * BATCH]) for i in range(steps)}
        left_out = sorted(set(losses) - {one["step"] for one in told})
        events = [line["event"] for line in self.lines("events.jsonl")]
        self.assertLessEqual(len(left_out), missing, (left_out, events))
        self.assertEqual([(one["step"], one["loss"]) for one in told],
                         [(step, loss) for step, loss in losses.items() if step not in left_out])  # fmt: skip
        with open(self.path("run", "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        self.assertEqual(summary["metrics"], {"sum": sum(self.numbers)})
        self.assertAlmostEqual(summary["final_loss"], sum(one["loss"] for one in told[-100:]) / 100)
        self.assertGreater(summary["bytes_sent_per_node_per_step"], 0)
        self.assertEqual(sorted(os.listdir(self.path("run", "nodes"))), ["coordinator", "ended"])
        return summary

    # The coordinator is killed, and is away for a while. Members go on meanwhile, and tell the next coordinator of every
    # step. So it is after one kill more, at once. The files of the run are those of a coordinator that was never killed.
    def test_a_coordinator_away_misses_no_step(self):
        leader, members = self.coordinate(steps=1000, pause_ms=max(15, round(AWAY * 2)))
        before = 0
        for away in (AWAY, 0):
            before = self.wait_for_steps_beyond(before + 50)
            leader = self.kill_for(leader, away)
        summary = self.expect_each_step(leader, members, 1000)
        self.assertEqual(summary["recoveries"], [])

    # The coordinator is away, and when it comes back a member that has done steps with the other is away too. It is
    # fenced. The other goes on alone, and the member comes back in another life. It tells of the steps that it did in the
    # first one, and they get their lines. One step may be missing: the member had not done it when it was stopped.
    def test_steps_that_are_told_late(self):
        leader, members = self.coordinate(steps=1000, pause_ms=25)
        self.wait_for_steps_beyond(30)
        leader.signal(signal.SIGKILL)
        leader.finish()
        time.sleep(4)
        members[1].signal(signal.SIGSTOP)
        leader, _ = self.lead(self.words, "--resume")
        alone = self.wait_for_steps_beyond(0)
        self.wait_for_steps_beyond(alone + 20)
        self.wait_for("one member", lambda: len(self.status().get("members", [])) == 1)
        members[1].signal(signal.SIGCONT)
        self.wait_for("both", lambda: len(self.status().get("members", [])) == 2)
        summary = self.expect_each_step(leader, members, 1000, missing=1)
        self.assertGreaterEqual(len(summary["recoveries"]), 1)

    # What the engine does not do is refused, and the engines are named which do it.
    def test_what_it_does_not_do(self):
        self.write_numbers(20)
        self.expect_sum(program.run(*self.command()))
        for words in (["predict", self.out, "1"], ["eval", self.out, "--data", "x"], ["export", self.out, "--format", "torch"],
                      ["serve", self.out, "--listen", "127.0.0.1:0"]):  # fmt: skip
            refused = program.run(*words)
            self.assertEqual(refused.status, 2, refused.err)
            self.assertIn("the engine 'toy' does not do this", refused.err)
            self.assertRegex(refused.err, "expected +an engine that .*: sparse")
        alone = program.run("train", "toy", f"numbers={self.path('numbers.txt')}", "--out", self.path("alone"))
        self.assertEqual(alone.status, 2)
        self.assertIn("--nodes", alone.err)
        self.assertFalse(os.path.exists(self.path("alone")))


if __name__ == "__main__":
    unittest.main()
