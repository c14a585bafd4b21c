# SPDX-License-Identifier: Apache-2.0
"""A network larger than the memory of any node. Four members and their coordinator are each in a control group that
holds less than its weights. They train it, measure it, put it together on the disk, and serve it.

If control groups cannot limit memory, or this user may not make one, these tests say so and are skipped.
"""

import ctypes
import json
import os
import re
import sys
import unittest

import program
import test_train_nodes
import test_training

FEATURES = 100_000
LABELS = 400_000
HIDDEN = 128
WEIGHTS = 4 * (FEATURES + LABELS) * HIDDEN  # bytes, 244 MiB; moments are half as much again
LIMIT = 243 << 20  # of each process
KEYS = [f"model.hidden={HIDDEN}", "train.batch=32", "train.steps=150", "seed=5", "predict.instances=false",
        "optimizer.moments=block"]  # fmt: skip
# Shards of this network are smaller than a huge page, which would bring others' rows into memory, too.
_WITHOUT_HUGE_PAGES = 41  # PR_SET_THP_DISABLE


class MemoryGroup:
    """A control group that limits memory, of version 1 or 2."""

    def __init__(self, folder, version):
        self.folder = folder
        self.version = version

    @classmethod
    def make(cls, name, limit):
        """Makes the group; None if that is not possible."""
        with open("/proc/mounts", encoding="ascii") as file:
            rows = [line.split() for line in file]
        for _, top, kind, options, *_ in rows:
            controls = cls._controls(top, kind, options)
            if not controls:
                continue
            group = cls(os.path.join(top, name), 1 if kind == "cgroup" else 2)
            try:
                if group.version == 2:
                    group.write("+memory", os.path.join(top, "cgroup.subtree_control"))
                os.mkdir(group.folder)
                group.write(str(limit), group.file("limit_in_bytes", "max"))
                return group
            except OSError:
                group.remove()
        return None

    @staticmethod
    def _controls(top, kind, options):
        if kind == "cgroup":
            return "memory" in options.split(",")
        if kind != "cgroup2":
            return False
        with open(os.path.join(top, "cgroup.controllers"), encoding="ascii") as file:
            return "memory" in file.read().split()

    def file(self, first, second):
        return os.path.join(self.folder, f"memory.{first if self.version == 1 else second}")

    @staticmethod
    def write(text, path):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    def enter(self):
        """A command that enters the group, and execs the command that follows it."""
        procs = os.path.join(self.folder, "cgroup.procs")
        program_text = (
            "import ctypes, os, sys\n"
            f"ctypes.CDLL(None).prctl({_WITHOUT_HUGE_PAGES}, 1, 0, 0, 0)\n"
            f"open({procs!r}, 'w').write(str(os.getpid()))\n"
            "os.execv(sys.argv[1], sys.argv[1:])\n"
        )
        return [sys.executable, "-c", program_text]

    def remove(self):
        """Removes the group once all of its processes have ended."""
        if os.path.isdir(self.folder):
            os.rmdir(self.folder)


def may_limit():
    group = MemoryGroup.make(f"gossamer.test.{os.getpid()}", LIMIT)
    if group is None:
        return False
    group.remove()
    return hasattr(ctypes.CDLL(None), "prctl")


def widen(path, wider):
    """The same records, with the header of a data set with many more features and labels."""
    with open(path, encoding="utf-8") as file:
        records = file.readlines()
    with open(wider, "w", encoding="utf-8") as file:
        file.write(f"{len(records) - 1} {FEATURES} {LABELS}\n")
        file.writelines(records[1:])


@unittest.skipUnless(may_limit(), "limiting memory needs control groups of memory: run as root")
class LargeModel(test_training.WithData):
    end = test_train_nodes.TrainNodes.end

    def setUp(self):
        super().setUp()
        self.wide_path = self.path("wide.txt")
        widen(self.train_path, self.wide_path)

    def start(self, name, *arguments):
        group = MemoryGroup.make(f"gossamer.test.{os.getpid()}.{name}", LIMIT)
        self.assertIsNotNone(group)
        self.addCleanup(group.remove)
        process = program.Running(*arguments, through=group.enter(), environment={"XDG_STATE_HOME": self.path("state")})
        self.addCleanup(self.end, process)
        return process

    def lead(self, *more):
        return self.start("lead", "coordinator", "xmc", f"data.train={self.wide_path}", f"data.test={self.test_path}",
                          *KEYS, *more, "--listen", "127.0.0.1:0", "--first", 4, "--out", self.out)  # fmt: skip

    # Four limited members measure, to the last digit, what one unlimited process measures of the model. The limited
    # coordinator has put that model together. One process trains an equally good model.
    def test_nodes_train_and_measure_what_none_can_hold(self):
        self.assertLess(LIMIT, WEIGHTS)
        leader = self.lead()
        line = leader.process.stdout.readline()
        found = re.fullmatch(r"gossamer join (\S+) --token (\S+)\n", line)
        if found is None:
            self.fail(leader.finish().err)
        members = [self.start(name, "join", found[1], "--token", found[2], "--name", name, "--in-place",
                              "--cores", "1", "--memory", "400M", "--dir", self.path(name))
                   for name in ("one", "two", "three", "four")]  # fmt: skip
        done = leader.finish()
        self.assertEqual(done.status, 0, done.err)
        for member in members:
            ended = member.finish()
            self.assertEqual(ended.status, 0, ended.err)
        with open(f"{self.out}/summary.json", encoding="utf-8") as file:
            got = json.load(file)
        self.assertEqual(got["steps"], 150)
        self.assertEqual(got["nodes"], 4)
        self.assertGreater(got["parameters"], WEIGHTS / 4)
        self.assertFalse(os.path.exists(f"{self.out}/nodes/parts"))

        self.served_by_members()
        measured = program.run("eval", self.out, "--data", self.test_path, "--json")
        self.assertEqual(measured.status, 0, measured.err)
        self.assertEqual(measured.json()["metrics"], got["metrics"])
        self.assertGreater(got["metrics"]["P@1"], 60)

        alone = self.path("alone")
        want = program.run("train", "xmc", f"data.train={self.wide_path}", f"data.test={self.test_path}", *KEYS,
                           "--out", alone, "--json")  # fmt: skip
        self.assertEqual(want.status, 0, want.err)
        self.assertAlmostEqual(got["metrics"]["P@1"], want.json()["metrics"]["P@1"], delta=2)
        self.assertGreater(measured.json()["peak_rss_bytes"], LIMIT)
        self.assertGreater(want.json()["peak_rss_bytes"], LIMIT)

    # Four limited members answer a limited process with the predictions of one unlimited process.
    def served_by_members(self):
        with open(self.test_path, encoding="utf-8") as file:
            queries = [line.split(" ", 1)[1].strip() for line in file.readlines()[1:]]
        answered = self.by_members("predict", self.out, *queries[:20])
        want = program.run("predict", self.out, *queries[:20])
        self.assertEqual(answered.out, want.out, want.err)

    def by_members(self, *arguments):
        front = self.start(f"{arguments[0]}.front", *arguments, "--nodes", 4, "--join-at", "127.0.0.1:0")
        found = re.fullmatch(r"gossamer join (\S+) --token (\S+) --in-place\n", front.wait_for_line("gossamer join"))
        members = [self.start(f"{arguments[0]}.{name}", "join", found[1], "--token", found[2], "--name", name,
                              "--in-place", "--cores", "1", "--memory", "400M", "--dir", self.path(f"{arguments[0]}.{name}"))
                   for name in ("one", "two", "three", "four")]  # fmt: skip
        done = front.finish()
        self.assertEqual(done.status, 0, done.err)
        for member in members:
            ended = member.finish()
            self.assertEqual(ended.status, 0, ended.err)
        return done

    # A model that keeps its training records is too large for one member, too. Each holds a share of both.
    def test_nodes_serve_with_training_records(self):
        keys = [key for key in KEYS if not key.startswith("predict.instances")]
        done = program.run("train", "xmc", f"data.train={self.wide_path}", *keys, "--out", self.out)
        self.assertEqual(done.status, 0, done.err)
        self.assertLess(LIMIT, WEIGHTS)
        self.served_by_members()
        measured = self.by_members("eval", self.out, "--data", self.test_path, "--json")
        want = program.run("eval", self.out, "--data", self.test_path, "--json")
        self.assertEqual(measured.json()["metrics"], want.json()["metrics"])
        self.assertGreater(want.json()["peak_rss_bytes"], LIMIT)

    # With training rows the lead needs the network in its memory. It says before the first step that it has too little.
    def test_what_would_not_fit_is_refused(self):
        leader = self.lead("predict.instances=true")
        done = leader.finish()
        self.assertEqual(done.status, 1, done.err)
        self.assertIn("the run would not fit", done.err)
        self.assertIn("would fit: predict.instances=false", done.err)


if __name__ == "__main__":
    unittest.main()
