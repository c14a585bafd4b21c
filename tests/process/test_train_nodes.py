# SPDX-License-Identifier: Apache-2.0
"""`train --nodes N`: several processes train what one would, whoever of them is killed, and end with the command."""

import array
import json
import math
import os
import signal
import struct
import time
import unittest

import program
import test_training

DEADLINE = 60
LONG = 30_000  # steps: more than are waited for
# Of one node and of several the same but for rounding. With relu that is so too, until a unit is at its kink.
KEYS = ["model.activation=tanh", "model.hidden=64", "train.batch=32", "train.precision=f32", "seed=5"]


def weights(path):
    """All tensors of a safetensors file by name, as floats."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    tensors = {}
    for name, facts in header.items():
        if name != "__metadata__" and facts["dtype"] == "F32":
            begin, end = facts["data_offsets"]
            tensors[name] = array.array("f", data[begin:end])
    return tensors


def distance(got, want):
    """The length of the difference over the length, of all tensors together."""
    assert got.keys() == want.keys() and got, (got.keys(), want.keys())
    difference = sum((a - b) ** 2 for name in want for a, b in zip(got[name], want[name], strict=True))
    return math.sqrt(difference / sum(b * b for tensor in want.values() for b in tensor))


def processes(run):
    """The nodes of a run, from the kernel: [(pid, words of the command line)]."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().decode().split("\0")
        except OSError:
            continue
        if len(words) > 1 and words[1] in ("join", "coordinator") and any(word.startswith(run + "/") for word in words):
            found.append((int(pid), words))
    return found


def pid_of(run, node):
    """Of node "1", "2" ... or of the "coordinator"."""
    (pid,) = [pid for pid, words in processes(run) if f"{run}/nodes/{node}" in words]
    return pid


class TrainNodes(test_training.WithData):
    def command(self, out, *more, steps=200):
        return ["train", "xmc", f"data.train={self.train_path}", f"data.test={self.test_path}", *KEYS,
                f"train.steps={steps}", "--out", out, "--json", *more]  # fmt: skip

    def train(self, out, *more, steps=200):
        done = program.run(*self.command(out, *more, steps=steps))
        self.assertEqual(done.status, 0, done.err)
        return done.json()

    def export(self, run):
        path = f"{run}.safetensors"
        done = program.run("export", run, "--format", "safetensors", "--out", path)
        self.assertEqual(done.status, 0, done.err)
        return weights(path)

    def begin(self, out, nodes, steps, *more):
        """Starts a run and returns it once its nodes have done some steps."""
        running = program.Running(*self.command(out, "--nodes", nodes, *more, steps=steps))
        self.addCleanup(self.end, running)
        self.wait_for("steps", lambda: running.process.poll() is not None or self.steps(out) > 50)
        self.assertIsNone(running.process.poll(), "ended too soon")
        return running

    def end(self, running):
        if running.process.poll() is None:
            running.signal(signal.SIGKILL)
        if not running.process.stdout.closed:
            running.finish()

    def wait_for(self, what, accept):
        end = time.monotonic() + DEADLINE
        while not accept():
            self.assertLess(time.monotonic(), end, what)

    def steps(self, out):
        """That are applied everywhere, as the coordinator says; nobody is asked before there is one."""
        if not os.path.exists(f"{out}/nodes/coordinator/address.json"):
            return 0
        status = program.run("status", f"{out}/nodes/coordinator", "--json")
        return status.json()["step"] or 0 if status.status == 0 else 0

    def expect_no_processes(self, out):
        self.wait_for(f"nodes of {out} end", lambda: not processes(out))

    # 1, 2 and 4 nodes end with the weights and the answers of one process, to rounding; the files of the run are as
    # always, and each node has a directory.
    def test_nodes_train_what_one_process_trains(self):
        alone = self.path("alone")
        want = self.train(alone)
        want_weights = self.export(alone)
        for nodes in (1, 2, 4):
            with self.subTest(nodes=nodes):
                out = self.path(f"nodes{nodes}")
                got = self.train(out, "--nodes", nodes)
                self.assertEqual(got["nodes"], nodes)
                self.assertEqual(got["steps"], 200)
                self.assertAlmostEqual(got["metrics"]["P@1"], want["metrics"]["P@1"], delta=1)
                self.assertAlmostEqual(got["final_loss"], want["final_loss"], delta=1e-4)
                self.assertLess(distance(self.export(out), want_weights), 1e-4)
                names = os.listdir(f"{out}/nodes")
                for node in ["coordinator", *map(str, range(1, nodes + 1))]:
                    self.assertIn(node, names)
                    self.assertTrue(os.path.exists(f"{out}/nodes/{node}/events.jsonl"))
                self.assertNotIn("parts", names)
                with open(f"{out}/metrics.jsonl", encoding="utf-8") as file:
                    lines = [json.loads(line) for line in file]
                self.assertEqual([line["step"] for line in lines], list(range(1, 201)))
                self.expect_no_processes(out)

    # Words of a plain text, and records of text, go to nodes as they do to one process.
    def test_words_and_texts(self):
        text = self.path("text.txt")
        with open(text, "w", encoding="utf-8") as file:
            for i in range(300):
                file.write(f"the deer{i % 3} eats green grass\n" if i % 2 == 0 else f"the owl{i % 3} hunts small mice\n")
        records = self.path("texts.jsonl")
        with open(records, "w", encoding="utf-8") as file:
            for i in range(100):
                one = {"text": "it purrs and hunts" if i % 2 else f"it barks at {i % 7}", "labels": ["cat" if i % 2 else "dog"]}
                file.write(json.dumps(one) + "\n")
        for preset, data in (("word2vec", text), ("dictionary", records)):
            with self.subTest(preset=preset):
                runs = []
                for more in ([], ["--nodes", "2"]):
                    out = self.path(f"{preset}{len(more)}")
                    keys = [*KEYS, "train.steps=100", "text.min_df=1", "word2vec.min_count=1", "word2vec.sample=0"]
                    done = program.run("train", preset, f"data.train={data}", *keys, "--out", out, *more)
                    self.assertEqual(done.status, 0, done.err)
                    runs.append(self.export(out))
                self.assertLess(distance(runs[1], runs[0]), 1e-4)

    # kill -9 of one node of four in the middle of the run: the others go on, and the end is that of a run without.
    def test_a_killed_node_costs_nothing(self):
        steps = 1500
        f32 = "optimizer.moments=element"  # rounding of others' bf16 adds up to 1e-3, in one process too
        alone = self.path("alone")
        want = self.train(alone, f32, steps=steps)
        out = self.path("four")
        running = self.begin(out, 4, steps, f32)
        os.kill(pid_of(out, "3"), signal.SIGKILL)
        done = running.finish()
        self.assertEqual(done.status, 0, done.err)
        self.assertIn("node 3 was killed; the others go on", done.err)
        got = json.loads(done.out)
        self.assertEqual(got["steps"], steps)
        self.assertAlmostEqual(got["final_loss"], want["final_loss"], delta=1e-4)
        self.assertLess(distance(self.export(out), self.export(alone)), 1e-4)
        with open(f"{out}/nodes/coordinator/events.jsonl", encoding="utf-8") as file:
            self.assertIn("lost", [json.loads(line)["event"] for line in file])

    # Ctrl-C ends all nodes; what is left is said, and there is no model.
    def test_ctrl_c(self):
        out = self.path("two")
        running = self.begin(out, 2, LONG)
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertEqual(done.status, 130, done.err)
        self.assertRegex(done.err, r"stopped after step \d+, of which nothing is kept")
        self.assertEqual(processes(out), [])
        self.assertFalse(os.path.exists(f"{out}/model"))

    # Nobody outlives the command, also when it is killed.
    def test_nodes_end_with_the_command(self):
        out = self.path("two")
        running = self.begin(out, 2, LONG)
        self.assertEqual(len(processes(out)), 3)
        running.signal(signal.SIGKILL)
        running.finish()
        self.expect_no_processes(out)

    # Without any node left, and without the coordinator, the run ends with an error.
    def test_errors_of_nodes(self):
        for name, victims, words in (("nodes", ["1", "2"], "all nodes are gone"),
                                     ("lead", ["coordinator"], "the coordinator has ended")):  # fmt: skip
            with self.subTest(victims=victims):
                out = self.path(name)
                running = self.begin(out, 2, LONG)
                for victim in victims:
                    os.kill(pid_of(out, victim), signal.SIGKILL)
                done = running.finish()
                self.assertEqual(done.status, 1, done.err)
                self.assertIn(words, done.err)
                self.assertEqual(processes(out), [])

    # What is wrong or cannot be is refused before anything is made.
    def test_refusals(self):
        for more, words in (
            (["--nodes", "0"], "--nodes"),
            (["--nodes", "65"], "--nodes"),
            (["--nodes", "2", "--resume"], "nodes cannot continue a run yet"),
            (["--nodes", "2", "train.bacth=3"], "train.batch"),
            (["--nodes", "2", "train.negatives=lsh", "train.sampled=5", "lsh.queries=8"], "several nodes cannot train this yet"),
        ):
            with self.subTest(more=more):
                out = self.path("refused")
                done = program.run(*self.command(out, *more))
                self.assertEqual(done.status, 2, done.err)
                self.assertIn(words, done.err)
                self.assertFalse(os.path.exists(out))

    # A coordinator leads a prepared run, and no other.
    def test_coordinator_wants_a_prepared_run(self):
        for config, more, words in (
            (self.path("nothing/run.toml"), [], "nothing/run.toml"),
            ("xmc", [], "there is no cluster run 'xmc'"),
            (self.path("nothing/run.toml"), ["seed=3"], "a prepared run has all of its keys"),
        ):
            with self.subTest(config=config, more=more):
                done = program.run("coordinator", config, *more, "--listen", "127.0.0.1:0", "--out", self.path("lead"))
                self.assertIn(done.status, (1, 2), done.err)
                self.assertIn(words, done.err)


if __name__ == "__main__":
    unittest.main()
