# SPDX-License-Identifier: Apache-2.0
"""`train --nodes N`: how its processes end, and what the user is told: Ctrl-C, stop, kill -9 of the command or of nodes."""

import os
import re
import signal
import time
import unittest

import program
from test_train_nodes import LONG, WithNodes, pid_of, processes

GIVE_UP = 9  # s, before which nodes that find no coordinator do not end by themselves


class NodesEnd(WithNodes):
    # Ctrl-C ends all nodes. The command says what is left, and there is no model yet.
    def test_ctrl_c(self):
        out = self.path("two")
        running = self.begin(out, 2, LONG)
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertEqual(done.status, 130, done.err)
        self.assertRegex(done.err, r"stopped after step \d+; continue with: gossamer")
        self.assertEqual(processes(out), [])
        self.assertFalse(os.path.exists(f"{out}/model"))

    # Ctrl-C before the nodes have joined ends them, too: nobody waits until they give up. The run can go on.
    def test_ctrl_c_at_once(self):
        out = self.path("two")
        running = self.running(self.command(out, "--nodes", 2, steps=LONG))
        running.wait_for_line("2 nodes, ")
        signalled = time.monotonic()
        running.signal(signal.SIGINT)
        done = running.finish()
        self.assertLess(time.monotonic() - signalled, GIVE_UP)
        self.assertEqual(done.status, 130, done.err)
        self.assertRegex(done.err, r"stopped after step \d+; continue with: gossamer")
        self.assertEqual(processes(out), [])
        again = self.running(["train", "--resume", "--out", out, "--nodes", 2])
        self.wait_for("steps", lambda: again.process.poll() is not None or self.steps(out) > 5)
        self.assertIsNone(again.process.poll(), "ended too soon")

    # No process outlives the command, even when it is killed.
    def test_nodes_end_with_the_command(self):
        out = self.path("two")
        running = self.begin(out, 2, LONG)
        self.assertEqual(len(processes(out)), 2)
        running.signal(signal.SIGKILL)
        running.finish()
        self.expect_no_processes(out)

    # A run without any node left ends with an error. The token of the nodes is in a file that only the user can read,
    # and nowhere else: in no argument, error or log.
    def test_all_nodes_are_gone(self):
        out = self.path("two")
        running = self.begin(out, 2, LONG)
        place = f"{out}/nodes/token"
        self.assertEqual(os.stat(place).st_mode & 0o777, 0o600)
        with open(place, encoding="utf-8") as file:
            token = file.read()
        self.assertTrue(token.startswith("gossamer1."), "no token")
        told = [b"\0".join(word.encode() for word in words) for _, words in processes(out)]
        self.assertEqual(len(told), 2)
        for pid, _ in processes(out):
            with open(f"/proc/{pid}/environ", "rb") as file:
                told.append(file.read())
        for node in ("1", "2"):
            os.kill(pid_of(out, node), signal.SIGKILL)
        done = running.finish()
        self.assertEqual(done.status, 1, done.err)
        self.assertIn("all nodes are gone", done.err)
        self.assertEqual(processes(out), [])
        told += [done.out.encode(), done.err.encode()]
        for folder, _, names in os.walk(out):
            for path in (os.path.join(folder, name) for name in names):
                if path != place:
                    with open(path, "rb") as file:
                        told.append(file.read())
        self.assertFalse(any(token.encode() in one for one in told))

    # 'gossamer stop' ends the nodes with a checkpoint, and the command with status 0.
    def test_stop(self):
        out = self.path("two")
        running = self.begin(out, 2, LONG)
        stopped = program.run("stop", out)
        self.assertEqual(stopped.status, 0, stopped.err)
        done = running.finish()
        self.assertEqual(done.status, 0, done.err)
        said = re.search(r"stopped after step (\d+); continue with: gossamer", done.err)
        self.assertTrue(said, done.err)
        self.assertIn(f"step-{int(said[1]):012}", " ".join(os.listdir(f"{out}/checkpoints")))
        self.assertFalse(os.path.exists(f"{out}/model"))

    # Steps of the checkpoints that are whole.
    @staticmethod
    def checkpoints(out):
        names = os.listdir(f"{out}/checkpoints") if os.path.isdir(f"{out}/checkpoints") else []
        return {int(found[1]) for found in (re.match(r"step-(\d+)\.run$", name) for name in names) if found}

    # A killed node takes a part along if there are no copies. The error names the key.
    def test_no_copies(self):
        out = self.path("four")
        running = self.begin(out, 4, LONG, "cluster.copies=0", "checkpoint.every_steps=50")
        self.wait_for("a checkpoint", lambda: self.checkpoints(out))
        self.lose(out, "3")
        done = running.finish()
        self.assertEqual(done.status, 1, done.err)
        # Nobody saves a network whose lost part is as at the start: `--resume` would go on with it.
        self.assertEqual([step for step in self.checkpoints(out) if step % 50 != 0], [])
        self.assertIn("a part of what the run has learnt is lost", done.err)
        self.assertIn("cluster.copies=1", done.err)


if __name__ == "__main__":
    unittest.main()
