# SPDX-License-Identifier: Apache-2.0
"""A member's engine hangs while its process beats on. It takes four minutes: `make test-all` sets GOSSAMER_HANG."""

import contextlib
import ctypes
import os
import threading
import unittest

import fleet
import program

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
STANDS_STILL = 300  # seconds; three minutes without a step, 30 s to come to rest, and what a slow machine adds


@contextlib.contextmanager
def stopped(pid, name):
    """Stops one thread of a process. Only the thread that stopped it can let it go on, so both happen on one."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as file:
            if file.read().strip() == name:
                found.append(int(tid))
    assert len(found) == 1, f"{len(found)} threads of the name {name}"
    seized, ends, wrong = threading.Event(), threading.Event(), []

    def hold():
        for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
            if libc.ptrace(request, found[0], None, None) != 0:
                wrong.append(os.strerror(ctypes.get_errno()))
        seized.set()
        ends.wait()
        libc.ptrace(PTRACE_DETACH, found[0], None, None)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    seized.wait()
    try:
        if wrong:
            raise OSError(f"cannot stop a thread: {wrong[0]}")
        yield
    finally:
        ends.set()
        holder.join()


@unittest.skipUnless("GOSSAMER_HANG" in os.environ, "takes four minutes; set GOSSAMER_HANG=1")
class Hang(unittest.TestCase):
    def setUp(self):
        # The wait for a status is as long as a run may stand still.
        before, fleet.DEADLINE = fleet.DEADLINE, STANDS_STILL
        self.addCleanup(setattr, fleet, "DEADLINE", before)

    # Claim: a run whose steps wait for an engine that hangs brings all to rest, says for which member it waits, and goes
    # on without it. The other members have said so after a minute. Once the engine goes on, its node comes back.
    def test_goes_on_without(self):
        run = fleet.Fleet(self)
        program.write_xmlc(run.path("train.txt"), 600, seed=1)
        run.CONFIG = ("xmc", f"data.train={run.path('train.txt')}", "model.hidden=32", "train.batch=32",
                      "train.steps=1000000")  # fmt: skip
        run.lead("--listen", "127.0.0.1:0", "--first", "3")
        for name in ("a", "b", "c"):
            run.join(name)
        run.wait_for_members(3)
        run.wait_for_steps(20)
        number = fleet.by_name(run.wait_for("any status", lambda _: True))["b"]["node"]
        with stopped(run.members["b"].process.pid, "work"):
            waits = run.wait_for("b is named", lambda status: status["shortage"] == f"node {number} has not come to rest")
            went_on = run.wait_for("the others go on", lambda status: (status["step"] or 0) > waits["step"] + 20)
            # Whether both of the others hold something is for the placement to say.
            holders = {one["name"] for one in went_on["members"] if one["things"] > 0}
            self.assertTrue(holders and holders <= {"a", "c"}, f"{holders} go on")
            for name in ("a", "c"):
                awaited = {one["node"] for one in run.events(name) if one["event"] == "awaits"}
                self.assertEqual(awaited, {number}, f"{name} waits for another\n{run.words()}")
        run.wait_for_members(3)
        for name in ("a", "b", "c"):
            self.assertIsNone(run.members[name].process.poll(), f"{name} has ended\n{run.words()}")


if __name__ == "__main__":
    unittest.main()
