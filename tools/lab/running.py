# SPDX-License-Identifier: Apache-2.0
"""For test_lab.py: runs the lab and programs on its nodes, and looks at what a lab leaves in the kernel.

Nothing sleeps: every wait is for a line, a name or the end of a process, with a timeout that only a failure
reaches.
"""

import itertools
import json
import os
import subprocess
import sys
import threading
import unittest

import cgroups
import namespaces
import plans

FOLDER = os.path.dirname(os.path.abspath(__file__))
LAB = os.path.join(FOLDER, "lab")
PATIENCE = 120
_counter = itertools.count(1)


def lab(*words, environment=None, **options):
    """Runs `lab WORDS` to its end."""
    return subprocess.run(
        [LAB, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, **(environment or {})},
        **options,
    )


def kernel_objects(name):
    """Everything of the lab that can be seen on this machine, but processes."""
    hierarchy = cgroups.Hierarchy.find()
    files = os.listdir(plans.FOLDER) if os.path.isdir(plans.FOLDER) else []
    with open("/proc/mounts", encoding="utf-8") as mounts:
        mounted = [line for line in mounts if f"gossamer.{name}." in line]
    return {
        "namespaces": namespaces.of_lab(name),
        "mounts": mounted,
        "groups": hierarchy.of_lab(name) if hierarchy else [],
        "files": [file for file in files if file.startswith(name + ".")],
    }


NOTHING = {"namespaces": [], "mounts": [], "groups": [], "files": []}


class OnNode:
    """Runs `lab exec` of a role of peer.py, and reads its lines as they come."""

    def __init__(self, name, node, *words):
        self.process = subprocess.Popen(
            [
                LAB,
                "exec",
                "--name",
                name,
                str(node),
                "--",
                sys.executable,
                "-B",
                os.path.join(FOLDER, "peer.py"),
                *map(str, words),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.timer = threading.Timer(PATIENCE, self.process.kill)
        self.timer.start()

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def heard(self):
        """The next line's value; a failure where there is none."""
        line = self.process.stdout.readline()
        assert line, f"{self.process.args[6:]} ended, status {self.process.wait()}"
        return json.loads(line)

    def started(self):
        assert self.heard() == "ready"
        return self

    def close(self):
        self.timer.cancel()
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class LabCase(unittest.TestCase):
    """up() makes labs that are gone when the test ends, and checks that they are."""

    def new_name(self):
        return f"test-{os.getpid()}-{next(_counter)}"

    def up(self, *words, name=None):
        """Makes a lab with these options. Returns its plan."""
        name = name or self.new_name()
        done = lab("up", "--name", name, "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(self.down, name)
        return json.loads(done.stdout)

    def down(self, name):
        if name in plans.names():
            done = lab("down", name)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(kernel_objects(name), NOTHING)

    def on_node(self, plan, node, *words):
        peer = OnNode(plan["name"], node, *words)
        self.addCleanup(peer.close)
        return peer

    def measure(self, plan, node, *words):
        """Runs a role to its end. Returns the one value that it says."""
        peer = self.on_node(plan, node, *words)
        value = peer.heard()
        self.assertEqual(peer.process.wait(timeout=PATIENCE), 0)
        return value

    def traffic(self, plan):
        """The output of `lab bytes`, by node."""
        done = lab("bytes", plan["name"])
        self.assertEqual(done.returncode, 0, done.stderr)
        return {node["node"]: node for node in json.loads(done.stdout)["nodes"]}

    def address(self, plan, node):
        return plan["nodes"][node - 1]["address"]
