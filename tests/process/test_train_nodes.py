# SPDX-License-Identifier: Apache-2.0
"""`train --nodes N`: processes train what one would, whichever of them are killed, and end with the command."""

import array
import json
import math
import os
import resource
import shutil
import signal
import struct
import unittest

import program
import test_training

DEADLINE = 240  # only a failure reaches it, also where other processes want all cores
LONG = 30_000  # steps: more than a test waits for
# One node and several give the same but for rounding. With relu that is so, too, until a unit is at its kink.
KEYS = ["model.activation=tanh", "model.hidden=64", "train.batch=32", "train.precision=f32", "cluster.codec=f32", "seed=5"]


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
        if len(words) > 1 and words[1] == "join" and any(word.startswith(run + "/") for word in words):
            found.append((int(pid), words))
    return found


def pid_of(run, node):
    """The process of node "1", "2" ..."""
    (pid,) = [pid for pid, words in processes(run) if f"{run}/nodes/{node}" in words]
    return pid


class WithNodes(test_training.WithData):
    """Runs of several nodes, and ways to observe them."""

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
        running = self.running(self.command(out, "--nodes", nodes, *more, steps=steps))
        self.wait_for("steps", lambda: running.process.poll() is not None or self.steps(out) > 50)
        self.assertIsNone(running.process.poll(), "ended too soon")
        return running

    def running(self, command):
        """Starts a command that ends with the test."""
        running = program.Running(*command)
        self.addCleanup(self.end, running)
        return running

    def end(self, running):
        if running.process.poll() is None:
            running.signal(signal.SIGKILL)
        if not running.process.stdout.closed:
            running.finish()

    def wait_for(self, what, accept):
        self.assertTrue(any(accept() for _ in program.looks(DEADLINE)), what)

    def steps(self, out):
        """Steps applied everywhere, by the coordinator's status; 0 before there is a coordinator."""
        if not os.path.exists(f"{out}/nodes/coordinator/address.json"):
            return 0
        status = program.run("status", f"{out}/nodes/coordinator", "--json")
        return status.json()["step"] or 0 if status.status == 0 else 0

    def many_records(self):
        """A test set that nodes take seconds to measure."""
        path = self.path("many.txt")
        with open(self.test_path, encoding="utf-8") as file:
            header, *lines = file.readlines()
        with open(path, "w", encoding="utf-8") as file:
            times = 60_000 // len(lines)
            file.write(f"{times * len(lines)} {header.split(' ', 1)[1]}")
            file.writelines(lines * times)
        return path

    def lose(self, out, node):
        """Does kill -9 to a node, and removes its directory, as if its machine were gone."""
        os.kill(pid_of(out, node), signal.SIGKILL)
        self.wait_for("its end", lambda: not any(f"{out}/nodes/{node}" in words for _, words in processes(out)))
        shutil.rmtree(f"{out}/nodes/{node}")

    def expect_no_processes(self, out):
        self.wait_for(f"nodes of {out} end", lambda: not processes(out))


class TrainNodes(WithNodes):
    # 1, 2, 4 and 8 nodes end with the weights and the answers of one process, to rounding. The run has its usual files,
    # and each node has a directory.
    def test_nodes_train_what_one_process_trains(self):
        alone = self.path("alone")
        want = self.train(alone)
        want_weights = self.export(alone)
        for nodes in (1, 2, 4, 8):
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
                    self.assertFalse(os.path.exists(f"{out}/nodes/{node}/data"), "they use the launcher's")
                self.assertNotIn("parts", names)
                with open(f"{out}/metrics.jsonl", encoding="utf-8") as file:
                    lines = [json.loads(line) for line in file]
                self.assertEqual([line["step"] for line in lines], list(range(1, 201)))
                self.expect_no_processes(out)

    # Words of a plain text, and records of text, go to nodes as to one process.
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

    def expect_measured(self, out, data, got):
        """The figures of the summary are those of one process that has the model."""
        measured = program.run("eval", out, "--data", data, "--json")
        self.assertEqual(measured.status, 0, measured.err)
        self.assertEqual(got["metrics"], measured.json()["metrics"])
        self.assertGreater(got["metrics"]["P@1"], 50)
        self.assertNotIn("parts", os.listdir(f"{out}/nodes"))

    # Nodes measure a model without training records, also when one of them is killed in the middle.
    def test_nodes_measure(self):
        alone = self.path("alone")
        keys = ["predict.instances=false", "optimizer.moments=element"]
        self.train(alone, *keys, steps=800)
        out = self.path("three")
        running = self.begin(out, 3, 800, *keys)
        self.lose(out, "2")
        done = running.finish()
        self.assertEqual(done.status, 0, done.err)
        self.expect_measured(out, self.test_path, json.loads(done.out))
        self.assertLess(distance(self.export(out), self.export(alone)), 1e-4)

    # A node that is killed while the nodes are measured takes part no longer. The others compute its part anew, and
    # all records are measured anew. The model is the one that was measured.
    def test_a_node_is_killed_while_they_are_measured(self):
        out = self.path("three")
        self.test_path = self.many_records()
        running = self.running(self.command(out, "predict.instances=false", "--nodes", "3", steps=100))
        running.wait_for_line("the nodes measure what they have trained")
        self.lose(out, "2")
        done = running.finish()
        self.assertEqual(done.status, 0, done.err)
        self.assertEqual(done.err.count("test records\n  P@1"), 1, done.err)
        self.expect_measured(out, self.test_path, json.loads(done.out))

    # Nodes measure texts, too, some with labels that the model does not know, or without labels.
    def test_nodes_measure_texts(self):
        paths = [self.path("train.jsonl"), self.path("test.jsonl")]
        for path, other in zip(paths, ("dog", "wolf"), strict=True):
            with open(path, "w", encoding="utf-8") as file:
                for i in range(120):
                    labels = ["cat" if i % 2 else "dog"] + ([other] if i % 10 == 0 and other == "wolf" else [])
                    one = {"text": "it purrs and hunts" if i % 2 else f"it barks at {i % 7}", "labels": labels if i % 9 else []}
                    file.write(json.dumps(one) + "\n")
        out = self.path("two")
        done = program.run("train", "xmc", f"data.train={paths[0]}", f"data.test={paths[1]}", *KEYS, "train.steps=60", "text.min_df=1",
                           "model.dense=64", "predict.instances=false", "--nodes", "2", "--out", out, "--json")  # fmt: skip
        self.assertEqual(done.status, 0, done.err)
        self.expect_measured(out, paths[1], done.json())

    # Without checkpoints the parts that nodes deliver are all there is of their steps. They stay until the run is finished.
    def test_killed_after_the_last_step(self):
        out = self.path("two")
        off = ["checkpoint.every_steps=0", "checkpoint.every_minutes=0"]
        running = self.running(self.command(out, "--nodes", 2, *off))
        running.wait_for_line("writing the model")
        running.signal(signal.SIGKILL)
        running.finish()
        self.expect_no_processes(out)
        before = os.stat(f"{out}/nodes/1/events.jsonl").st_mtime_ns
        got = self.train(out, "--nodes", "2", "--resume", *off)
        self.assertEqual(got["steps"], 200)
        self.assertGreater(got["metrics"]["P@1"], 50)
        self.assertEqual(os.stat(f"{out}/nodes/1/events.jsonl").st_mtime_ns, before, "a node has been started")
        self.assertNotIn("parts", os.listdir(f"{out}/nodes"))

    # Each node has its own hash tables. If tables follow every change and no answer is cut short, they find together
    # what the tables of one process find.
    def test_hash_tables(self):
        exact = ["train.hard_negatives=100000", "lsh.queries=4", "lsh.tolerance=0", "lsh.update_every=1"]
        alone = self.path("alone")
        self.train(alone, *exact)
        without = self.path("without")
        self.train(without)
        two = self.path("two")
        self.train(two, "--nodes", "2", *exact)
        want = self.export(alone)
        self.assertLess(distance(self.export(two), want), 1e-4)
        self.assertGreater(distance(self.export(without), want), 1e-3)

    # Two steps in flight train the same with any number of nodes, and something else than one step in flight.
    def test_staleness(self):
        runs = {}
        for name, more in (("prompt", ["1"]), ("one", ["1", "cluster.staleness=1"]), ("three", ["3", "cluster.staleness=1"])):
            out = self.path(name)
            self.train(out, "--nodes", *more)
            runs[name] = self.export(out)
        self.assertLess(distance(runs["three"], runs["one"]), 1e-4)
        self.assertGreater(distance(runs["prompt"], runs["one"]), 1e-3)

    # The run goes on after kill -9 of one node of four in the middle, and ends as an undisturbed run does.
    def test_a_killed_node_costs_nothing(self):
        steps = 1500
        f32 = "optimizer.moments=element"  # rounding of others' bf16 adds up to 1e-3, in one process, too
        alone = self.path("alone")
        want = self.train(alone, f32, steps=steps)
        out = self.path("four")
        running = self.begin(out, 4, steps, f32)
        self.lose(out, "3")
        done = running.finish()
        self.assertEqual(done.status, 0, done.err)
        self.assertIn("node 3 was killed; the others go on", done.err)
        got = json.loads(done.out)
        self.assertEqual(got["steps"], steps)
        self.assertAlmostEqual(got["final_loss"], want["final_loss"], delta=1e-4)
        self.assertLess(distance(self.export(out), self.export(alone)), 1e-4)
        with open(f"{out}/nodes/coordinator/events.jsonl", encoding="utf-8") as file:
            self.assertIn("lost", [json.loads(line)["event"] for line in file])
        self.expect_one_recovery(done, out, got["recoveries"])

    def expect_one_recovery(self, done, out, recoveries):
        """The summary, the run's events and the user's text report it, in plausible parts."""
        (one,) = recoveries
        self.assertEqual(one["cause"], "node 3 was killed")
        parts = [one[f"{part}_seconds"] for part in ("detect", "agree", "load", "replay")]
        self.assertGreaterEqual(min(parts), 0, one)  # a node with copies of all that it is to hold loads nothing
        self.assertGreater(min(one["detect_seconds"], one["agree_seconds"], one["replay_seconds"]), 0, one)
        self.assertGreater(one["seconds"], 0.5 * sum(parts), one)
        self.assertLess(one["seconds"], 60, one)
        self.assertGreater(one["step"], 50)
        anew = one["steps_replayed"]  # none if a snapshot was just done
        self.assertLessEqual(anew, 3 * 16)
        message = r"node 3 was killed: it cost \d+\.\d\d s"
        self.assertRegex(done.err, message + (f", and {anew} steps? (was|were) computed anew" if anew else ""))
        with open(f"{out}/events.jsonl", encoding="utf-8") as file:
            (event,) = [line for line in map(json.loads, file) if line["event"] == "recovery"]
        self.assertEqual({key: event[key] for key in one}, one)

    # The summary has the bytes that a node sends for a step; they follow from cluster.codec. There are as many copies
    # as asked for, but at most one on each other node. Each costs bytes beside the steps.
    def test_keys_of_the_fleet(self):
        step_bytes = {}
        background = {}
        for codec, copies, every in (("f32", 1, 16), ("bf16", 0, 16), ("int8", 5, 4)):
            with self.subTest(codec=codec):
                out = self.path(codec)
                more = [f"cluster.codec={codec}", f"cluster.copies={copies}", f"cluster.snapshot_every={every}"]
                got = self.train(out, "--nodes", 3, *more)
                self.assertEqual(got["recoveries"], [])
                step_bytes[codec] = got["bytes_sent_per_node_per_step"]
                background[copies] = got["background_bytes_per_node_per_step"]
                with open(f"{out}/run.toml", encoding="utf-8") as file:
                    text = file.read()
                for line in (f'codec = "{codec}"', f"copies = {copies}", f"snapshot_every = {every}"):
                    self.assertIn(line, text)
        # h goes to two others, and a third of dh to each of them: 32 samples, 64 columns; sums of 8 bytes for each
        # sample.
        numbers = 2 * 32 * 64 / 3 * 2
        sums = 2 * 32 * 8
        for codec, size in (("f32", 4), ("bf16", 2), ("int8", 1.125)):
            least = numbers * size + sums
            self.assertGreater(step_bytes[codec], 0.9 * least)
            self.assertLess(step_bytes[codec], 1.1 * least + 6 * 100)
        self.assertLess(background[0], background[1])
        self.assertLess(background[1], background[5])

    # D-SLIDE's exchange trains the same. It sends 8 bytes for each score of a node's rows to each other node, not 8 a
    # sample.
    def test_exchange_of_dslide(self):
        got = {}
        for exchange in ("shares", "dslide"):
            out = self.path(exchange)
            got[exchange] = self.train(out, "--nodes", 3, f"cluster.exchange={exchange}", "optimizer.moments=element")
        self.assertLess(distance(self.export(self.path("dslide")), self.export(self.path("shares"))), 1e-4)
        sent = {exchange: one["bytes_sent_per_node_per_step"] for exchange, one in got.items()}
        # 32 samples have most of the 25 labels between them. A node has a third of these rows, and counts them for each
        # sample.
        more = 2 * 32 * (8 * 25 / 3 + 4 - 8)
        self.assertGreater(sent["dslide"] - sent["shares"], 0.4 * more)
        self.assertLess(sent["dslide"] - sent["shares"], 1.05 * more)

    # A run of one process has none of these figures.
    def test_one_process_sends_nothing(self):
        got = self.train(self.path("alone"), steps=20)
        self.assertEqual(got["bytes_sent_per_node_per_step"], 0)
        self.assertEqual(got["background_bytes_per_node_per_step"], 0)
        self.assertEqual(got["recoveries"], [])

    # The coordinator reports progress and costs while it runs, to people and to programs.
    def test_status(self):
        out = self.path("two")
        running = self.begin(out, 2, LONG)
        self.wait_for("loss", lambda: self.status(out).get("loss") is not None)
        status = self.status(out)
        self.assertGreater(status["loss"], 0)
        self.assertLess(status["loss"], 20)
        self.wait_for("bytes", lambda: self.status(out).get("bytes_sent_per_node_per_step"))
        status = self.status(out)
        self.assertGreater(status["bytes_sent_per_node_per_step"], 32 * 64 * 4)
        self.assertGreater(status["background_bytes_per_node_per_step"], 0)
        for member in status["members"]:
            self.assertGreater(member["step_bytes"], 0)
        text = program.run("status", f"{out}/nodes/coordinator").out
        self.assertRegex(text, r"step \d+ of 30000  loss \d+\.\d{3}")
        self.assertRegex(text, r"each node sends \d.* for a step, and \d.* beside it")
        running.signal(signal.SIGINT)
        self.assertEqual(running.finish().status, 130)

    def status(self, out):
        return program.run("status", f"{out}/nodes/coordinator", "--json").json()

    # Data that were imported before are found by a path relative to the user's directory. Standard input works, too.
    def test_other_ways_of_data(self):
        done = program.run("data", "import", "xmc", self.train_path, "--out", self.path("imported"))
        self.assertEqual(done.status, 0, done.err)
        want = self.train(self.path("usual"), steps=50)
        with open(self.train_path, encoding="utf-8") as file:
            text = file.read()
        for name, data, stdin in (("relative", "imported", ""), ("stdin", "-", text)):
            with self.subTest(data=data):
                done = program.run("train", "xmc", f"data.train={data}", "data.format=xmc", f"data.test={self.test_path}", *KEYS, "train.steps=50",
                                   "--nodes", "2", "--out", name, "--json", stdin=stdin, cwd=self.root)  # fmt: skip
                self.assertEqual(done.status, 0, done.err)
                self.assertAlmostEqual(done.json()["final_loss"], want["final_loss"], delta=1e-4)

    # The summary has the time of all processes.
    def test_cost(self):
        def used():
            use = resource.getrusage(resource.RUSAGE_CHILDREN)
            return use.ru_utime + use.ru_stime

        before = used()
        got = self.train(self.path("two"), "--nodes", "2", steps=600)
        all_of_it = used() - before
        told = got["cpu_seconds"] + got["eval_cpu_seconds"]
        self.assertLess(told, all_of_it + 0.1)
        self.assertGreater(told, 0.7 * all_of_it)
        self.assertGreater(got["peak_rss_bytes"], 1 << 20)

    # Wrong and impossible wishes are refused before anything is made.
    def test_refusals(self):
        for more, words in (
            (["--nodes", "0"], "--nodes"),
            (["--nodes", "65"], "--nodes"),
            (["--nodes", "2", "train.bacth=3"], "train.batch"),
            (["--nodes", "2", "cluster.copys=1"], "cluster.copies"),
            (["--nodes", "2", "cluster.codec=f16"], "f32, bf16 or int8"),
            (["--nodes", "2", "cluster.snapshot_every=0"], "cluster.snapshot_every"),
            (["--nodes", "2", "cluster.exchange=all"], "shares or dslide"),
            (["--nodes", "2", "cluster.microbatches=1"], "leave cluster.microbatches out"),
            (["--nodes", "2", "cluster.exchange=dslide", "train.hard_negatives=8"], "lsh.sets = own"),
        ):
            with self.subTest(more=more):
                out = self.path("refused")
                done = program.run(*self.command(out, *more))
                self.assertEqual(done.status, 2, done.err)
                self.assertIn(words, done.err)
                self.assertFalse(os.path.exists(out))

    # A coordinator wants a config that names data.
    def test_coordinator_wants_a_config(self):
        for config, words in (
            (self.path("nothing/run.toml"), "nothing/run.toml"),
            ("xmc", "there is nothing to train on"),
            ("xcm", "such as 'xmc'"),
        ):
            with self.subTest(config=config):
                done = program.run("coordinator", config, "--listen", "127.0.0.1:0", "--out", self.path("lead"))
                self.assertIn(done.status, (1, 2), done.err)
                self.assertIn(words, done.err)


if __name__ == "__main__":
    unittest.main()
